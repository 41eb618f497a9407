"""Variables of templates for any space: the roles, and the dimensions that each may see, in the space's own
words.

A role sees its dimensions and no others.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from edgen.core.text import join_list
from edgen.core.values import Scenario
from edgen.reading.roles import side_of
from edgen.space.model import Space, SpaceRole

Labels = Mapping[str, str]  # what people call each dimension

TURN_VARIABLES = ("role", "others", "brief")
CONVERSATION_VARIABLES = ("space_roles", "space_goal", "scenario_lines", "roles", "probability")


def labels_of(space: Space) -> dict[str, str]:
    """Return what people call each dimension of a space, in the space's order."""
    return {one.name: one.label or one.name.replace("_", " ") for one in space.dimensions}


def describe_values(scenario: Scenario, names: Collection[str], labels: Labels) -> str:
    """Return a line for each of these dimensions: its label, its value and what the value says of itself."""
    return "\n".join(
        f"- {labels.get(name, name.replace('_', ' '))}: {scenario.values[name]}{_fields(scenario, name)}"
        for name in scenario.values
        if name in names
    )


def _fields(scenario: Scenario, name: str) -> str:
    said = [
        f"{field.replace('_', ' ')}: {_worded(value)}"
        for field, value in scenario.fields.get(name, {}).items()
        if is_worded(value) and value is not None
    ]
    return f" ({'; '.join(said)})" if said else ""


def is_worded(value: Any) -> bool:
    """Return whether what an entry says of itself can stand in a line: a text, a number, a list of these, or
    nothing."""
    if isinstance(value, list | tuple):
        return all(isinstance(one, str | int | float) for one in value)
    return value is None or isinstance(value, str | int | float)


def _worded(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def turn_variables(
    scenario: Scenario, roles: Sequence[SpaceRole], role: SpaceRole, labels: Labels
) -> dict[str, str]:
    """Return the variables of a template for one role's turns, in addition to the dimensions that the role
    sees."""
    return {
        "role": role.name,
        "others": join_list(other.name for other in roles if other.name != role.name),
        "brief": describe_values(scenario, role.sees, labels),
    }


def conversation_variables(
    scenario: Scenario, roles: Sequence[SpaceRole], labels: Labels, goal: str
) -> dict[str, Any]:
    """Return the variables of a template for whole conversations, in addition to the dimensions.

    `roles` says by name what each role sees; `probability` names the event, and is empty without a
    learner.
    """
    seen = {
        role.name: ", ".join(
            labels.get(name, name.replace("_", " ")) for name in scenario.values if name in role.sees
        )
        for role in roles
    }
    return {
        "space_roles": join_list(seen),
        "space_goal": goal,
        "scenario_lines": describe_values(scenario, scenario.values, labels),
        "roles": seen,
        "probability": f"the {taught} understood the material" if (taught := learner(roles)) else "",
    }


def learner(roles: Sequence[SpaceRole]) -> str | None:
    """Return the role that learns, None if no role teaches another one."""
    sides = {role.name: side_of(role.name) for role in roles}
    taught = (name for name, side in sides.items() if side == "Student")
    return next(taught, None) if "Teacher" in sides.values() else None
