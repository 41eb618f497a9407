"""Unused variables: values that are drawn but appear in no template of a job."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from edgen.core import resources
from edgen.core.space_layouts import map_bare_fields
from edgen.planning.plan import Plan
from edgen.space.model import iterate_sections


class UnusedVariable(NamedTuple):
    """A variable that a template never reads. `use`, `source`: the template's; "" if no template may read
    it."""

    name: str
    use: str = ""
    source: str = ""


def find_unused(plan: Plan) -> list[UnusedVariable]:
    """Return, by template, the variables of a scenario that it could read but does not; and the dimensions
    that no template may read, since no role sees them. Closing questions are exempt."""
    stated = {field for one in plan.space.dimensions for field in one.fields}
    absent = {*map_bare_fields()} - {*stated, *plan.space.names}
    found = [
        UnusedVariable(name, use, plan.prompts[use].source)
        for use, template in plan.templates.items()
        if not plan.prompts[use].variables_used.intersection(template.wholes)
        for name in plan.prompts[use].list_unused_variables(template.reports)
        if name not in absent
    ]
    seen = {name for template in plan.templates.values() for name in template.variables}
    for section, said in iterate_sections(plan.space):  # roles see these dimensions through the section
        seen |= section.dimensions(said)
    return found + [UnusedVariable(name) for name in plan.space.names if name not in seen]


def describe_unused(variable: UnusedVariable) -> str:
    """Describe an unused variable for the user."""
    if not variable.use:
        return f"`{variable.name}` is seen by no role, so no template can use it"
    path = Path(variable.source)
    name = path.stem if resources.is_shipped("prompts", path) else variable.source
    side = "" if variable.use == "default" else f" (the {variable.use}'s side)"
    return f"`{variable.name}` is never used by {name}{side}"
