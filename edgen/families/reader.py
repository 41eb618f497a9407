"""Readers of data sets: each declares a layout of records in files of any origin.

A family reads the records that it writes. Any other layout, such as one of a published data set, has a
`DataSetReader`, found by the entry point group `edgen.readers`. Nothing else names a layout, so deleting a
domain deletes its readers.

The optional parts of readers, and so of families, are here, too; `LayoutChecks`, which checking records uses,
is in `edgen.validation.layout`.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from edgen.core import registry
from edgen.core.plugin_checks import find_misplaced_names
from edgen.core.registry import part_of
from edgen.core.values import Conversation, Recorded, Role, Turn
from edgen.core.version import DISTRIBUTION
from edgen.families.parts import FiledRecord, Scenes
from edgen.space.model import Space, SpaceRole
from edgen.validation.layout import LayoutChecks
from edgen.validation.schema import find_schema_flaw
from edgen.validation.stream import Piece


class DataSetReader(ABC):
    """A reader of one layout of records.

    Required are `name`, `title`, `schema`, `recognizes` and `read_file`. Optional abilities are in PARTS.
    """

    name: ClassVar[str]
    """The name of its entry point."""
    title: ClassVar[str]
    """The data set or layout, for people. One file may hold records of several readers with the same
    title."""
    schema: ClassVar[str]
    """The file of its JSON Schema: a name in validators/, or a path."""
    precedence: ClassVar[int] = 0
    """Rank among edgen's own families and readers: of several that fit a space or recognise a record, the
    lowest is used."""

    @abstractmethod
    def recognizes(self, record: Any) -> bool:
        """Return whether a decoded JSON value has this layout, valid or not."""

    @abstractmethod
    def read_file(self, record: Any) -> FiledRecord:
        """Read the conversation in a decoded record of a file of any origin. Raises ValueError with the
        reason as a clause if it is invalid."""


class RecordContents:
    """Contents of records: values of the scenario, end markers, events, scenes and pictures."""

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

    def scenes(self, space: Space) -> Scenes | None:
        """Return the scenes of conversations on this space; None if a conversation has only one."""
        return None

    def pictures(self, recorded: Recorded, space: Space) -> dict[int, str]:
        """Return pictures for turns, by place: SVG that loads nothing and runs nothing, with escaped
        texts."""
        return {}


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
    probability_of: ClassVar[str] = ""
    """The same in short, after the word "probability", such as "of understanding"; empty: unnamed."""
    probability_caveat: ClassVar[str] = ""
    """Sentences of a card about the probability's limits; empty: none."""
    setting: ClassVar[str] = "real conversations"
    """The place where such conversations happen, such as "classrooms"."""
    group_words: ClassVar[tuple[str, ...]] = ("dimension",)
    """Words for the groups of conversations, such as "topic"."""
    hearer: ClassVar[str] = "listener"
    """The word for the role that hears the compared responses, such as "student"."""
    section_words: ClassVar[Mapping[str, tuple[str, str]]] = {}
    """Titles and first sentences of sections of the report, in place of the general ones, by name."""

    @property
    def probability_words(self) -> str:
        """The name of a conversation's probability."""
        return f"probability {self.probability_clause}".rstrip()


class KindDefaults:
    """Choices for conversations of this kind that a space, a job or a user does not make."""

    roles: ClassVar[tuple[SpaceRole, ...]] = ()
    """The roles of conversations whose space names none."""
    templates: ClassVar[Mapping[str, str]] = {}
    """Shipped templates in place of the general ones, by purpose: `conversation`, `opening`, `judge`."""
    judged: ClassVar[Role | None] = None
    """The role whose responses judges compare; None: any."""
    measures: ClassVar[tuple[str, ...]] = ()
    """The names of the measures that only conversations of this kind have."""
    fields: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Fields of entries, by dimension, that get a column even if no entry has them."""

    def groups(self, dimensions: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return ways to separate train and test: the dimensions whose values form a group, by a name."""
        return group_dimensions(dimensions)


def group_dimensions(dimensions: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return a group for each dimension, and one for all dimensions together."""
    return {**{name: (name,) for name in dimensions}, "all dimensions": tuple(dimensions)}


class TextLayout:
    """A layout of lines instead of JSON."""

    def recognizes_text(self, head: str) -> bool:
        """Return whether a file that is no JSON has this layout, by its first lines."""
        return False

    def cut_text(self, lines: Iterable[tuple[int, str]]) -> Iterator[Piece]:
        """Yield the records of such a file, from its lines with their numbers. Raises ValueError for a line
        that fits no record."""
        yield from ()


PARTS = (LayoutChecks, RecordContents, ReportWords, KindDefaults, TextLayout)
"""The optional parts of a reader, and so of a family."""


def list_flaws(reader: DataSetReader) -> Iterator[str]:
    """Yield the reasons why an object cannot be used as a reader, as clauses."""
    schema = getattr(reader, "schema", None)
    if not isinstance(schema, str):
        yield "has no `schema`: name the file of the JSON Schema that its records satisfy"
    elif flaw := find_schema_flaw(schema):
        yield flaw
    yield from find_misplaced_names(reader, PARTS)
    measures = part_of(reader, KindDefaults).measures
    if not isinstance(measures, tuple) or not all(isinstance(one, str) for one in measures):
        yield f"has `measures` that are not a tuple of names: {measures!r}"


def find_schema_of_record(reader: DataSetReader, record: Any) -> str:
    """Return the file of the JSON Schema for a decoded record of a reader's layout."""
    return part_of(reader, LayoutChecks).schema_of(record) or reader.schema


@functools.cache
def list_own_readers() -> tuple[DataSetReader, ...]:
    """Return edgen's own families and readers, by precedence."""
    own = [
        registry.find(plugin.kind, plugin.name)
        for plugin in registry.list_all_plugins()
        if plugin.kind in ("family", "reader") and plugin.package == DISTRIBUTION
    ]
    return tuple(sorted(own, key=lambda reader: reader.precedence))


@functools.cache
def list_other_readers() -> tuple[DataSetReader, ...]:
    """Return the families and readers of other packages."""
    found = (*registry.find_all("family"), *registry.find_all("reader"))
    return tuple(reader for reader in found if reader not in list_own_readers())


def find_reader_of_record(record: Any) -> DataSetReader | None:
    """Return the family or reader that recognises a decoded record, edgen's own first; None if none does."""
    for readers in (list_own_readers, list_other_readers):
        if found := next((reader for reader in readers() if reader.recognizes(record)), None):
            return found
    return None


def find_reader_of_text(head: str) -> DataSetReader | None:
    """Return the family or reader that recognises the first lines of a file that is no JSON; None if none
    does."""
    for readers in (list_own_readers, list_other_readers):
        for reader in readers():
            if part_of(reader, TextLayout).recognizes_text(head):
                return reader
    return None


def list_known_titles() -> list[str]:
    """Return the titles of all layouts that edgen reads, each once, in alphabetical order."""
    return sorted({reader.title for reader in (*list_own_readers(), *list_other_readers())}, key=str.casefold)
