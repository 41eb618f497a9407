"""What an export format is: what it needs, the rows that it gives, their files, and the words of its card.

A format is one `Format` object, found by the entry points `edgen.formats`. All that most formats use can be imported
from here.
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
from edgen.export.options import ExportOptions
from edgen.export.own_options import FormatOptions, read_options
from edgen.export.rows import DEFAULT, SPLITS, DataTable, Item, LeftOut, Row, SplitName
from edgen.export.tried import Tried, tried
from edgen.space import Space
from edgen.store.layers import LayerFacts
from edgen.store.run_reader import AcceptedConversation, Compared, RunReader

__all__ = [
    "DEFAULT", "SPLITS", "AcceptedConversation", "Chat", "Compared", "DataTable", "Format", "FormatOptions", "Item",
    "LeftOut", "Row", "RunReader", "SplitName", "Tried", "tried",
]  # fmt: skip

Need = Literal["pairs", "pyarrow", "bm25s", "labels", "events"]
Choice = Literal["files", "csv_safe", "masks", "tokenizer", "actions", "alternatives", "agent", "layer"]
Rows = Callable[[RunReader, Chat], Iterator[Item]]
T = TypeVar("T")


def rows_from(read: Callable[[RunReader, Chat], Iterator[T | LeftOut]], make: Callable[[T], Item]) -> Rows:
    """The rows of a format that makes one of each thing that `read` finds in a run."""

    def rows(run: RunReader, chat: Chat) -> Iterator[Item]:
        for found in read(run, chat):
            yield found if isinstance(found, LeftOut) else make(found)

    return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One format.

    `rows` reads the run and `files` opens what the rows are written to. `tables`: the columns of the one table with
    their meanings, several tables, or the one table that a space gives. `use` shows in a few lines how to load the
    files and train, `notes` says what a user has to know.
    `needs`: pairs, a library, or what only some protocols put into records: labels of turns, events.
    `layer_columns`: those that rows have besides for the layers of the run. `token_columns`: those that rows have besides where the user gives a tokenizer.
    `level` is what a preference is shown on: whole conversations or one turn. `chat`: turns become the messages of an
    assistant and a user; else they stay as they are. `options` names what of ExportOptions counts here besides.
    `Options` are those that this format alone has; `rows` find what was chosen of them in `Chat.own`.
    `scenario`: each row has the scenario's values as columns beside its own; its `Row` names the scenario. They are texts.
    `prompts_only`: no row holds what the trained side says last, so none holds its end marker. `tried`: what was run on
    exports in this format.
    `family` is the one whose records it needs, None for any. `tags` and `tasks` are those of the card. `hub`: the
    folder is ready for a hub, so the card is titled as the run and a croissant.json stands beside it.
    """

    name: str
    summary: str
    rows: Rows
    tables: Mapping[str, str] | tuple[DataTable, ...] | Callable[[Space], DataTable]
    use: str
    needs: tuple[Need, ...] = ()
    family: str | None = None
    notes: tuple[str, ...] = ()
    level: Level | None = None
    files: Callable[[Staging], RowFiles] = JsonLines
    chat: bool = True
    options: tuple[Choice, ...] = ()
    Options: type[FormatOptions] | None = None
    tags: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    hub: bool = False
    scenario: bool = False
    prompts_only: bool = False
    tried: tuple[Tried, ...] = ()
    token_columns: Mapping[str, str] = field(default_factory=dict)
    layer_columns: Callable[[Sequence[LayerFacts]], Columns] | None = None

    @property
    def of(self) -> Literal["conversations", "pairs"]:
        """What is counted when something is left out."""
        return "pairs" if "pairs" in self.needs else "conversations"

    @property
    def takes_layer(self) -> bool:
        """Whether its rows tell what labels turns have."""
        told = "labels" in self.needs or "actions" in self.options
        return "layer" in self.options or (told and "pairs" not in self.needs)

    def tables_of(
        self, space: Space, options: ExportOptions | None = None, layers: Sequence[LayerFacts] = ()
    ) -> tuple[DataTable, ...]:
        """The tables of an export of a run about this space, with these layers."""
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
        """What was chosen of the options that this format alone has; None where it has none. Raises UsageError."""
        return read_options(self.name, self.Options, options.own)

    def refuse(self, run: RunReader) -> str | None:
        """Why a run cannot be expressed at all, in a sentence; None where it can."""
        if self.family in (None, run.family.name):
            return None
        roles = ", ".join(role.name for role in run.space.roles)
        return (
            f"{run.name}: {self.name} holds conversations of the family {self.family}, and these are of the family "
            f"{run.family.name} (space {run.space.name}, roles {roles}); hf, csv and convokit take any, "
            "and so do the formats for trainers."
        )

    def check(self, options: ExportOptions) -> None:
        """Raise UsageError for a choice that does not count for this format, and for what its card cannot state."""
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
                f"{self.name} does not say what labels turns have in place of their own{beside}; leave --layer out."
            )
        self.own(options)
        options.check()


# What a format says that lacks a choice, and the options to leave out.
_CHOICES: Mapping[Choice, tuple[str, str]] = {
    "files": ("has one way to be stored", "--files"),
    "csv_safe": ("has no cells", "--csv-safe and --no-csv-safe"),
    "tokenizer": ("holds no tokens", "--tokenizer and --max-tokens"),
    "masks": ("has no mask a message", "--masks and --no-masks"),
    "actions": ("has no prompt of a single response", "--actions"),
    "alternatives": ("has no row for each response", "--alternatives and --no-alternatives"),
    "agent": ("tells no users from agents", "--agent"),
}
_WITH: Mapping[Choice, tuple[str, ...]] = {"tokenizer": ("max_tokens",)}
