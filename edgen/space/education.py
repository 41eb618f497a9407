"""Education Dialogue's space: five lists in a file, which mean five dimensions, and the roles Teacher and Student."""

from __future__ import annotations

from collections.abc import Mapping

from edgen.core.values import Scenario
from edgen.space.model import Dimension, Space, SpaceRole
from edgen.space.text_rules import text_problems

# What a file calls each list, by the dimension that it is.
LISTS = {
    "topic": "topics",
    "student_preference": "student_preferences",
    "student_reaction": "student_reactions",
    "teacher_preference": "teacher_preferences",
    "teacher_reaction": "teacher_reactions",
}
DIMENSIONS = tuple(LISTS)
TOPIC_FIELDS = ("subject", "level")  # what a topic may say of itself
ROLES = (
    SpaceRole("Teacher", ("topic", "teacher_preference", "teacher_reaction")),
    SpaceRole("Student", ("topic", "student_preference", "student_reaction")),
)


def is_education(space: Space) -> bool:
    """Whether the space has the five dimensions, among others or not, and the roles Teacher and Student."""
    names = [role.name for role in space.roles]
    return {*DIMENSIONS} <= {*space.names} and names == [role.name for role in ROLES]


def has_list_content(space: Space) -> bool:
    """Whether five lists can say what the space's scenarios depend on."""
    return space.names == DIMENSIONS and not space.conditional and all(map(_is_list, space.dimensions))


def is_five_lists(space: Space) -> bool:
    """Whether five lists can say all of the space."""
    labelled = any(dimension.label is not None for dimension in space.dimensions)
    return has_list_content(space) and space.roles == ROLES and not labelled


def _is_list(dimension: Dimension) -> bool:
    allowed = TOPIC_FIELDS if dimension.name == "topic" else ()
    return all(
        name in allowed and isinstance(said, str) and not [*text_problems(said, "$")]
        for entry in dimension.entries
        for name, said in entry.fields.items()
    )


def education_scenario(
    index: int, values: Mapping[str, str], subject: str | None = None, level: str | None = None
) -> Scenario:
    """The scenario with these values of the five dimensions, and what is said of its topic."""
    said = {name: text for name, text in zip(TOPIC_FIELDS, (subject, level), strict=True) if text is not None}
    return Scenario(index, {name: values[name] for name in DIMENSIONS}, {"topic": said} if said else {})
