"""What a scenario holds and a job's templates never say: values that are drawn and shape nothing."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from edgen.core import resources
from edgen.planning.plan import Plan
from edgen.space.education import TOPIC_FIELDS


class UnusedVariable(NamedTuple):
    """A variable that the template of a use never reads. `use` and `source` are "" where no template may read it."""

    name: str
    use: str = ""
    source: str = ""


def find_unused(plan: Plan) -> list[UnusedVariable]:
    """The variables of a scenario that a template might read and never does, by template; and the dimensions that no
    template may read, as no role sees them. A closing question answers for none."""
    fields = plan.space["topic"].fields if "topic" in plan.space.names else ()
    absent = {*TOPIC_FIELDS} - {*fields, *plan.space.names}
    found = [
        UnusedVariable(name, use, plan.prompts[use].source)
        for use, template in plan.templates.items()
        for name in plan.prompts[use].unused(template.reports)
        if name not in absent
    ]
    seen = {name for template in plan.templates.values() for name in template.variables}
    if plan.space.exercises is not None:  # what roles see of these are the exercises
        seen |= {name for tier in plan.space.exercises.tiers.values() for name in tier.concepts}
    return found + [UnusedVariable(name) for name in plan.space.names if name not in seen]


def describe_unused(variable: UnusedVariable) -> str:
    """What a person is told about it."""
    if not variable.use:
        return f"`{variable.name}` is seen by no role, so no template can use it"
    path = Path(variable.source)
    name = path.stem if path.parent == resources.folder("prompts") else variable.source
    side = "" if variable.use == "default" else f" (the {variable.use}'s side)"
    return f"`{variable.name}` is never used by {name}{side}"
