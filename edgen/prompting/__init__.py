"""Prompt templates: a Jinja file and a scenario to the messages of a request.

Templates come from anybody. They run in a sandbox that cannot reach Python, read another file, or use more than bounded
time and memory; what a scenario holds is data and comes out to the letter. Everything wrong with a template is a
TemplateError that names the file and the line.
"""

from __future__ import annotations

from edgen.prompting.front_matter import FrontMatter
from edgen.prompting.prompt import Prompt, load_prompt, scenario_variables

__all__ = [
    "FrontMatter",
    "Prompt",
    "load_prompt",
    "scenario_variables",
]
