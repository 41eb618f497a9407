"""Optional abilities of families, one class per purpose, with defaults that suit most families.

`Family` inherits from all of them. A family overrides a method of the group that it needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from edgen.core.values import Conversation, Turn
from edgen.families.parts import Recorded, Scenes
from edgen.space.model import Space, SpaceRole


class LayoutChecks:
    """Checks of a record beyond its schema."""

    schema: ClassVar[str]

    def schema_of(self, record: Any) -> str:
        """Return the file of the JSON Schema for a decoded record, if the family knows several layouts."""
        return self.schema

    def more_findings(self, record: Any) -> Iterator[tuple[str, str]]:
        """Yield problems of a decoded record that its schema cannot express: (path, problem), each an
        error."""
        yield from ()

    def begins_anew(self, turn: Any) -> bool:
        """Return whether a turn of a decoded record begins a new part, so that it may follow one of the same
        role."""
        return False

    def vocabulary(self, space: Space) -> dict[str, frozenset[str]]:
        """Return the values that the space allows in a record, by key of its scenario."""
        return {one.name: frozenset(one.values) for one in space.dimensions}

    def written(self, conversation: Conversation) -> tuple[Turn, ...]:
        """Return the turns as texts of a record: with an end marker if the layout has one."""
        return conversation.turns


class ScenesAndPictures:
    """Scenes and pictures of the part of a conversation that a turn belongs to."""

    def scenes(self, space: Space) -> Scenes | None:
        """Return the scenes of conversations on this space; None if a conversation has only one."""
        return None

    def pictures(self, recorded: Recorded, space: Space) -> dict[int, str]:
        """Return pictures for turns, by place: SVG that loads nothing and runs nothing, with escaped
        texts."""
        return {}


class SplitGroups:
    """Criteria for separating train and test, beyond single dimensions."""

    def groups(self, dimensions: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return criteria for separating train and test: each is a name, and the dimensions whose values form
        a group."""
        return dimension_groups(dimensions)


class FamilyWords:
    """Words for conversations of this kind in cards, reports and comparisons."""

    tags: ClassVar[tuple[str, ...]] = ()
    """Words for the conversations on a card."""
    measures: ClassVar[tuple[str, ...]] = ()
    """The names of the measures that only conversations of this kind have."""
    roles: ClassVar[tuple[SpaceRole, ...]] = ()
    """The roles that speak where no space names who does."""
    precedence: ClassVar[int] = 0
    """Of edgen's own families that fit a space or know a record, the lowest is taken."""
    probability_clause: ClassVar[str] = ""
    """The event of a conversation's probability, such as "that the student understood"; empty: unnamed."""
    holds_events: ClassVar[bool] = True
    """Whether records hold what happened besides turns."""

    @property
    def probability_words(self) -> str:
        """The name of a conversation's probability."""
        return f"probability {self.probability_clause}".rstrip()


def dimension_groups(dimensions: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return each dimension separately, and all of them together."""
    return {**{name: (name,) for name in dimensions}, "all dimensions": tuple(dimensions)}
