"""Prompt templates: from a Jinja file and a scenario to the messages of a request.

Templates may have any origin. They run in a sandbox that cannot reach Python or read another file, with
bounded time and memory; a scenario's values are data and are printed exactly. Every problem of a template is
a TemplateError that names the file and the line.
"""

from __future__ import annotations

from edgen.core.values import ValueWithFields
from edgen.prompting.front_matter import FrontMatter
from edgen.prompting.prompt import Prompt, load_prompt, scenario_variables

__all__ = [
    "FrontMatter",
    "Prompt",
    "ValueWithFields",
    "load_prompt",
    "scenario_variables",
]
