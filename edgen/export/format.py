"""Export formats: requirements, rows, files, and texts of the card.

A format is one `Format` object, found by the entry points `edgen.formats`. Everything that most formats use
can be imported from here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from edgen.core.errors import UsageError
from edgen.export.chat import Chat
from edgen.export.conversation_rows import Columns, columns_for_trainers
from edgen.export.evidence import Level
from edgen.export.files import JsonLines, RowFiles, Staging
from edgen.export.options import ExportOptions, FormatOptions, read_options
from edgen.export.rows import DEFAULT, REASONS, SPLITS, DataTable, Item, LeftOut, Row, SplitName
from edgen.space import Space
from edgen.store.layers import LayerFacts
from edgen.store.run_parts import AcceptedConversation, ComparedPair
from edgen.store.run_reader import RunReader

__all__ = [
    "DEFAULT", "SPLITS", "AcceptedConversation", "Chat", "ComparedPair", "DataTable", "Format", "FormatOptions", "Item",
    "LeftOut", "Row", "RunReader", "SplitName", "Tried",
]  # fmt: skip

Choice = Literal["files", "csv_safe", "masks", "tokenizer", "actions", "alternatives", "agent", "layer"]
Rows = Callable[[RunReader, Chat], Iterator[Item]]
T = TypeVar("T")


def rows_from(read: Callable[[RunReader, Chat], Iterator[T | LeftOut]], make: Callable[[T], Item]) -> Rows:
    """Return the rows of a format with one row per item that `read` finds in a run."""

    def rows(run: RunReader, chat: Chat) -> Iterator[Item]:
        for found in read(run, chat):
            yield found if isinstance(found, LeftOut) else make(found)

    return rows


@dataclass(frozen=True, slots=True)
class Tried:
    """A trial of such an export by edgen's authors: a version of a library, a day (ISO 8601), and in `what` a
    sentence on what ran. For a repository without releases the version is its commit."""

    library: str
    version: str
    day: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatCard:
    """The texts of a card on a format, beyond its columns."""

    notes: tuple[str, ...] = ()
    """Facts that a user has to know, in sentences."""
    tags: tuple[str, ...] = ()
    """Tags of the card."""
    tasks: tuple[str, ...] = ()
    """Task categories of the card."""
    tried: tuple[Tried, ...] = ()
    """Trials of exports in this format."""
    hub: bool = False
    """The folder is ready for a hub: the card has the run's title, and a croissant.json is included."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """The format's own reasons for omissions, each with a clause that explains it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatChoices(FormatCard):
    """The choices of a user, and the requirements on a run."""

    needs: tuple[str, ...] = ()
    """`pairs`, contents of only some records (`labels` of turns, `events`), or a library by its name."""
    family: str | None = None
    """The family whose records it needs; None for any."""
    options: tuple[Choice, ...] = ()
    """The choices of ExportOptions that count here, beyond those that count for every format."""
    Options: type[FormatOptions] | None = None
    """Options of this format only; `rows` finds their values in `Chat.own`."""
    by_range: bool = False
    """The rows of a scenario depend on its conversations and pairs alone, so processes can make those of
    ranges."""
    chat: bool = True
    """Turns become the messages of an assistant and a user; else they stay as they are."""
    level: Level | None = None
    """The shown extent of a preference: whole conversations or one turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatColumns(FormatChoices):
    """Columns and files beyond one table of JSON lines."""

    files: Callable[[Staging], RowFiles] = JsonLines
    """Opens the files for the rows."""
    scenario: bool = False
    """Each row has the scenario's values as columns of its own, which are texts; its `Row` names the
    scenario."""
    prompts_only: bool = False
    """No row has the trained side's last words, so none has its end marker."""
    token_columns: Mapping[str, str] = field(default_factory=dict)
    """Further columns if the user gives a tokenizer."""
    layer_columns: Callable[[Sequence[LayerFacts]], Columns] | None = None
    """Further columns for the layers of the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Format(FormatColumns):
    """An export format. The five fields here are required; all others have defaults in the classes above, one
    per purpose."""

    name: str
    """The name of its entry point."""
    summary: str
    """A sentence for the list of formats and the card."""
    rows: Rows
    """Reads the run: yields a Row or a LeftOut for each thing in it."""
    tables: Mapping[str, str] | tuple[DataTable, ...] | Callable[[Space], DataTable]
    """The columns of the one table with their meanings, several tables, or the one table that a space
    gives."""
    use: str
    """Shows in a few lines how to load the files and train."""

    def meaning(self, reason: str) -> str:
        """Return a clause that explains a reason for omissions; empty if there is none."""
        return self.reasons.get(reason) or REASONS.get(reason, "")

    @property
    def of(self) -> Literal["conversations", "pairs"]:
        """The unit in which omissions are counted."""
        return "pairs" if "pairs" in self.needs else "conversations"

    @property
    def takes_layer(self) -> bool:
        """True if its rows include the labels of turns."""
        told = "labels" in self.needs or "actions" in self.options
        return "layer" in self.options or (told and "pairs" not in self.needs)

    def tables_of(
        self, space: Space, options: ExportOptions | None = None, layers: Sequence[LayerFacts] = ()
    ) -> tuple[DataTable, ...]:
        """Return the tables of an export of a run on this space, with these layers."""
        if callable(self.tables):
            return (self._with_layers(self.tables(space), layers),)
        tables = self.tables if isinstance(self.tables, tuple) else (DataTable(self.tables),)
        if options is not None and options.tokenizer is not None:
            tables = tuple(DataTable({**table.columns, **self.token_columns}, table.name) for table in tables)
        if options is not None and (own := self.own(options)) is not None:
            tables = tuple(table for table in tables if table.name not in own.left_out())
        if not self.scenario:
            return tables
        beside = {name: meaning for name, (_, meaning) in columns_for_trainers(space).columns.items()}
        return tuple(DataTable({**table.columns, **beside}, table.name) for table in tables)

    def _with_layers(self, table: DataTable, layers: Sequence[LayerFacts]) -> DataTable:
        more = {} if self.layer_columns is None else self.layer_columns(layers)
        if taken := sorted(more.keys() & table.columns.keys()):
            raise UsageError(
                f"{self.name} would have two columns {taken[0]}, of the space and of a layer; rename the layer's folder."
            )
        columns = {**table.columns, **{name: meaning for name, (_, meaning) in more.items()}}
        types = {**table.types, **{name: type_ for name, (type_, _) in more.items()}} if table.types else {}
        return DataTable(columns, table.name, types)

    def own(self, options: ExportOptions) -> FormatOptions | None:
        """Return the values of this format's own options; None if it has none. Raises UsageError."""
        return read_options(self.name, self.Options, options.own)

    def refuse(self, run: RunReader) -> str | None:
        """Explain in a sentence why a run cannot be exported at all; None if it can."""
        if self.family in (None, run.family.name):
            return None
        roles = ", ".join(role.name for role in run.space.roles)
        return (
            f"{run.name}: {self.name} holds conversations of the family {self.family}, and these are of the family "
            f"{run.family.name} (space {run.space.name}, roles {roles}); hf, csv and convokit take any, "
            "and so do the formats for trainers."
        )

    def check(self, options: ExportOptions) -> None:
        """Raise UsageError for a choice that this format does not support, and for one that its card cannot
        state."""
        chosen = {name for name in options.__struct_fields__ if getattr(options, name) is not None}
        if chosen & {"train", "opening", "opening_prompt", "end_marker"} and not self.chat:
            raise UsageError(
                f"{self.name} holds both sides as they are; leave --train, --opening, --opening-prompt and "
                "--end-marker out."
            )
        for choice, (has_none, leave_out) in _CHOICES.items():
            if choice not in self.options and chosen & {choice, *_WITH.get(choice, ())}:
                raise UsageError(f"{self.name} {has_none}; leave {leave_out} out.")
        if "min_turns_left" in chosen and "pairs" not in self.needs:
            raise UsageError(f"{self.name} has no pairs; leave --min-turns-left out.")
        if "layer" in chosen and not self.takes_layer:
            beside = ": it has columns for every layer" if self.layer_columns is not None else ""
            raise UsageError(
                f"{self.name} has no labels of turns for a layer to replace{beside}; leave --layer out."
            )
        self.own(options)
        options.check()


# The message of a format that does not support a choice, and the options to leave out.
_CHOICES: Mapping[Choice, tuple[str, str]] = {
    "files": ("has one way to be stored", "--files"),
    "csv_safe": ("has no cells", "--csv-safe and --no-csv-safe"),
    "tokenizer": ("holds no tokens", "--tokenizer and --max-tokens"),
    "masks": ("has no mask a message", "--masks and --no-masks"),
    "actions": ("has no prompt of a single response", "--actions"),
    "alternatives": ("has no row for each response", "--alternatives and --no-alternatives"),
    "agent": ("does not distinguish users from agents", "--agent"),
}
_WITH: Mapping[Choice, tuple[str, ...]] = {"tokenizer": ("max_tokens",)}
