"""What templates may use of a space's scenarios: the index, every dimension, and today's names for ED's topics."""

from __future__ import annotations

from collections.abc import Collection

from edgen.space.education import DIMENSIONS, TOPIC_FIELDS
from edgen.space.model import Space

EDUCATION_VARIABLES = ("index", *DIMENSIONS, *TOPIC_FIELDS)


def template_variables(space: Space, sees: Collection[str] | None = None) -> tuple[str, ...]:
    """The variables of a template, all or those of a role that sees these dimensions. The index comes first."""
    seen = [name for name in space.names if sees is None or name in sees]
    said = TOPIC_FIELDS if "topic" in seen and {*DIMENSIONS} <= {*space.names} else ()
    return tuple(dict.fromkeys(("index", *seen, *said)))


def template_fields(space: Space) -> dict[str, tuple[str, ...]]:
    """What entries say of themselves, by dimension: `{{ topic.grade }}`."""
    return {dimension.name: dimension.fields for dimension in space.dimensions}
