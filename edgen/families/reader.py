"""Readers of data sets: each declares a layout of records in files, wherever they come from.

A family reads the records that it writes. Any other layout, such as one of a published data set, is a
`DataSetReader` of its own, found by the entry point group `edgen.readers`. Nothing else names a layout, so a
domain that is deleted takes its readers with it.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

from edgen.core import registry
from edgen.core.plugin_checks import find_misplaced_names
from edgen.core.registry import part_of
from edgen.core.version import DISTRIBUTION
from edgen.families.optional_parts import (
    KindDefaults,
    RecordContents,
    ReportWords,
    ScenesAndPictures,
    TextLayout,
)
from edgen.families.parts import FiledRecord
from edgen.validation.layout import LayoutChecks
from edgen.validation.schema import find_schema_flaw


class DataSetReader(ABC):
    """A reader of one layout of records.

    Required are `name`, `title`, `schema`, `recognizes` and `read_file`. What else a reader can do is in
    PARTS.
    """

    name: ClassVar[str]
    """The name of its entry point."""
    title: ClassVar[str]
    """The data set or layout, for people. Records under one title may stand in one file."""
    schema: ClassVar[str]
    """The file of its JSON Schema: a name in validators/, or a path."""
    precedence: ClassVar[int] = 0
    """Of edgen's own families and readers that fit a space or know a record, the lowest is taken."""

    @abstractmethod
    def recognizes(self, record: Any) -> bool:
        """Return whether a decoded JSON value has this layout, valid or not."""

    @abstractmethod
    def read_file(self, record: Any) -> FiledRecord:
        """Read the conversation in a decoded record of a file of any origin. Raises ValueError with the
        reason as a clause if it is invalid."""


PARTS = (LayoutChecks, RecordContents, ReportWords, KindDefaults, ScenesAndPictures, TextLayout)
"""The optional parts of a reader, and so of a family."""


def list_flaws(reader: DataSetReader) -> Iterator[str]:
    """Yield what keeps an object from being used as a reader, as clauses."""
    schema = getattr(reader, "schema", None)
    if not isinstance(schema, str):
        yield "has no `schema`: name the file of the JSON Schema that its records satisfy"
    elif flaw := find_schema_flaw(schema):
        yield flaw
    yield from find_misplaced_names(reader, PARTS)
    measures = part_of(reader, KindDefaults).measures
    if not isinstance(measures, tuple) or not all(isinstance(one, str) for one in measures):
        yield f"has `measures` that are no tuple of names: {measures!r}"


def schema_of_record(reader: DataSetReader, record: Any) -> str:
    """Return the file of the JSON Schema for a decoded record of a reader's layout."""
    return part_of(reader, LayoutChecks).schema_of(record) or reader.schema


@functools.cache
def list_own_readers() -> tuple[DataSetReader, ...]:
    """Return edgen's own families and readers, in the order in which they are asked."""
    own = [
        registry.find(plugin.kind, plugin.name)
        for plugin in registry.every_plugin()
        if plugin.kind in ("family", "reader") and plugin.package == DISTRIBUTION
    ]
    return tuple(sorted(own, key=lambda reader: reader.precedence))


@functools.cache
def list_other_readers() -> tuple[DataSetReader, ...]:
    """Return the families and readers of other packages."""
    found = (*registry.find_all("family"), *registry.find_all("reader"))
    return tuple(reader for reader in found if reader not in list_own_readers())


def reader_of_record(record: Any) -> DataSetReader | None:
    """Return the family or reader that recognises a decoded record, edgen's own first; None if none does."""
    for readers in (list_own_readers, list_other_readers):
        if found := next((reader for reader in readers() if reader.recognizes(record)), None):
            return found
    return None


def reader_of_text(head: str) -> DataSetReader | None:
    """Return the family or reader that recognises the first lines of a file that is no JSON."""
    for readers in (list_own_readers, list_other_readers):
        for reader in readers():
            if part_of(reader, TextLayout).recognizes_text(head):
                return reader
    return None


def list_known_titles() -> list[str]:
    """Return the titles of all layouts that can be read, each once, in alphabetical order."""
    return sorted({reader.title for reader in (*list_own_readers(), *list_other_readers())}, key=str.casefold)
