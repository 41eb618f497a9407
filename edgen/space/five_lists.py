"""Education Dialogue's space: five lists in a file for five dimensions, and the roles Teacher and Student.

Also template variables of any space: the index, every dimension, and the current names of ED's topics.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from edgen.core.values import Scenario
from edgen.space.model import Dimension, Space, SpaceRole
from edgen.space.text_rules import text_problems

# A file's name of each list, by dimension.
LISTS = {
    "topic": "topics",
    "student_preference": "student_preferences",
    "student_reaction": "student_reactions",
    "teacher_preference": "teacher_preferences",
    "teacher_reaction": "teacher_reactions",
}
DIMENSIONS = tuple(LISTS)
TOPIC_FIELDS = ("subject", "level")  # possible fields of a topic
DEFAULT_VARIABLES = ("index", *DIMENSIONS, *TOPIC_FIELDS)
ROLES = (
    SpaceRole("Teacher", ("topic", "teacher_preference", "teacher_reaction")),
    SpaceRole("Student", ("topic", "student_preference", "student_reaction")),
)


def has_five_dimensions(space: Space) -> bool:
    """Return whether the space has the five dimensions, possibly with others, and the roles Teacher and
    Student."""
    names = [role.name for role in space.roles]
    return {*DIMENSIONS} <= {*space.names} and names == [role.name for role in ROLES]


def has_list_content(space: Space) -> bool:
    """Return whether five lists can express everything that determines the space's scenarios."""
    return space.names == DIMENSIONS and not space.conditional and all(map(_is_list, space.dimensions))


def is_five_lists(space: Space) -> bool:
    """Return whether five lists can express the whole space."""
    labelled = any(dimension.label is not None for dimension in space.dimensions)
    return has_list_content(space) and space.roles == ROLES and not labelled and space.knowledge is None


def _is_list(dimension: Dimension) -> bool:
    allowed = TOPIC_FIELDS if dimension.name == "topic" else ()
    return all(
        name in allowed and isinstance(said, str) and not [*text_problems(said, "$")]
        for entry in dimension.entries
        for name, said in entry.fields.items()
    )


def five_list_scenario(
    index: int, values: Mapping[str, str], subject: str | None = None, level: str | None = None
) -> Scenario:
    """Return the scenario with these values of the five dimensions, and its topic's fields."""
    said = {name: text for name, text in zip(TOPIC_FIELDS, (subject, level), strict=True) if text is not None}
    return Scenario(index, {name: values[name] for name in DIMENSIONS}, {"topic": said} if said else {})


def template_variables(space: Space, sees: Collection[str] | None = None) -> tuple[str, ...]:
    """Return the variables of a template, all or those of a role that sees these dimensions. The index comes
    first."""
    seen = [name for name in space.names if sees is None or name in sees]
    said = TOPIC_FIELDS if "topic" in seen and {*DIMENSIONS} <= {*space.names} else ()
    return tuple(dict.fromkeys(("index", *seen, *said)))


def template_fields(space: Space) -> dict[str, tuple[str, ...]]:
    """Return the fields of entries, by dimension: `{{ topic.grade }}`."""
    return {dimension.name: dimension.fields for dimension in space.dimensions}
