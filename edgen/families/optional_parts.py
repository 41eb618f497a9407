"""Optional parts of families and of other readers of data sets (see `edgen.core.registry`).

`LayoutChecks`, which checking records uses, is in `edgen.validation.layout`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from edgen.core.values import Conversation, Role, Turn
from edgen.families.parts import Recorded, Scenes
from edgen.space.model import Space, SpaceRole
from edgen.validation.stream import Piece


class RecordContents:
    """Contents of records: values of the scenario, end markers, events."""

    marks_ends: ClassVar[bool] = True
    """Whether the layout marks who ended the conversation."""
    holds_events: ClassVar[bool] = True
    """Whether records hold what happened besides turns."""

    def vocabulary(self, space: Space) -> dict[str, frozenset[str]]:
        """Return the values that the space allows in a record, by key of its scenario."""
        return {one.name: frozenset(one.values) for one in space.dimensions}

    def written(self, conversation: Conversation) -> tuple[Turn, ...]:
        """Return the turns as texts of a record: with an end marker if the layout has one."""
        return conversation.turns


class ReportWords:
    """Words for conversations of this kind in cards, reports and comparisons."""

    tags: ClassVar[tuple[str, ...]] = ()
    """Words for the conversations on a card."""
    unit: ClassVar[str] = "conversation"
    """The name of one record, for people."""
    units_depend: ClassVar[str] = ""
    """Why records with one `cluster` depend on each other, as a clause."""
    values_clause: ClassVar[str] = "its values"
    """A clause that names a scenario's values."""
    meanings: ClassVar[Mapping[str, str]] = {}
    """A clause about each dimension that a space need not label."""
    probability_clause: ClassVar[str] = ""
    """The event of a conversation's probability, such as "that the student understood"; empty: unnamed."""
    probability_caveat: ClassVar[str] = ""
    """Sentences of a card about the probability's limits; empty: none."""
    setting: ClassVar[str] = "real conversations"
    """The place of such conversations in reality, such as "classrooms"."""
    group_words: ClassVar[tuple[str, ...]] = ("dimension",)
    """Words for what conversations are grouped by, such as "topic"."""
    hearer: ClassVar[str] = "listener"
    """The word for the role that hears responses which are compared, such as "student"."""
    section_words: ClassVar[Mapping[str, tuple[str, str]]] = {}
    """Titles and first sentences of sections of the report, in place of the general ones, by name."""

    @property
    def probability_words(self) -> str:
        """The name of a conversation's probability."""
        return f"probability {self.probability_clause}".rstrip()


class KindDefaults:
    """Choices for conversations of this kind that a space, a job or a user does not make."""

    roles: ClassVar[tuple[SpaceRole, ...]] = ()
    """The roles that speak where no space names who does."""
    templates: ClassVar[Mapping[str, str]] = {}
    """Shipped templates in place of the general ones, by purpose: `conversation`, `opening`, `judge`."""
    judged: ClassVar[Role | None] = None
    """The role whose responses judges compare; None: any."""
    measures: ClassVar[tuple[str, ...]] = ()
    """The names of the measures that only conversations of this kind have."""
    fields: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Fields of entries, by dimension, that have a column even where no entry has them."""

    def groups(self, dimensions: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return criteria for separating train and test: each is a name, and the dimensions whose values form
        a group."""
        return dimension_groups(dimensions)


def dimension_groups(dimensions: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return each dimension separately, and all of them together."""
    return {**{name: (name,) for name in dimensions}, "all dimensions": tuple(dimensions)}


class ScenesAndPictures:
    """Scenes and pictures of the part of a conversation that a turn belongs to."""

    def scenes(self, space: Space) -> Scenes | None:
        """Return the scenes of conversations on this space; None if a conversation has only one."""
        return None

    def pictures(self, recorded: Recorded, space: Space) -> dict[int, str]:
        """Return pictures for turns, by place: SVG that loads nothing and runs nothing, with escaped
        texts."""
        return {}


class TextLayout:
    """A layout of lines instead of JSON."""

    def recognizes_text(self, head: str) -> bool:
        """Return whether a file that is no JSON has this layout, by its first lines."""
        return False

    def cut_text(self, lines: Iterable[tuple[int, str]]) -> Iterator[Piece]:
        """Yield the records of such a file, from its lines with their numbers. Raises ValueError for a line
        that fits no record."""
        yield from ()
