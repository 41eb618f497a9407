"""Export formats: requirements, rows, files, and texts of the card.

A format is one `Format` object, found by the entry points `edgen.formats`. Everything that most formats use
can be imported from here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import msgspec

from edgen.core.errors import UsageError
from edgen.core.plugin_checks import find_unfit_fields
from edgen.core.plugins.faults import blame, refuse_value
from edgen.core.registry import find_plugin
from edgen.core.text import describe_type, quantity, shorten
from edgen.core.values import Scenario
from edgen.export.chat import Chat
from edgen.export.conversation_rows import Columns, make_trainer_columns
from edgen.export.evidence import Evidence, Level
from edgen.export.files import JsonLines, RowFiles, Staging
from edgen.export.options import FormatOptions, OptionValues, flag_of, list_flags, read_options
from edgen.export.rows import DEFAULT, REASONS, SPLITS, DataTable, Item, LeftOut, Row, SplitName
from edgen.export.shared_options import (
    ActionOptions,
    ChatOptions,
    ExportOptions,
    LayerOptions,
    PairSetOptions,
    TokenOptions,
)
from edgen.space import Space
from edgen.store.layers import LayerFacts
from edgen.store.run_parts import AcceptedConversation, ComparedPair
from edgen.store.run_reader import RunReader

__all__ = [
    "DEFAULT", "SPLITS", "AcceptedConversation", "Chat", "ComparedPair", "DataTable", "Format",
    "FormatCard", "FormatLayout", "FormatOptions", "Item",
    "LeftOut", "Row", "RunReader", "SplitName", "Tried",
]  # fmt: skip

Rows = Callable[[RunReader, Chat], Iterator[Item]]
T = TypeVar("T")


def rows_from(read: Callable[[RunReader, Chat], Iterator[T | LeftOut]], make: Callable[[T], Item]) -> Rows:
    """Return the rows of a format with one row per item that `read` finds in a run."""

    def make_rows(run: RunReader, chat: Chat) -> Iterator[Item]:
        for found in read(run, chat):
            yield found if isinstance(found, LeftOut) else make(found)

    return make_rows


@dataclass(frozen=True, slots=True)
class Tried:
    """A trial of an export in this format by edgen's authors: the version of a library, a day (ISO 8601), and
    in `what` a sentence on the trial. For a repository without releases, the version is a commit."""

    library: str
    version: str
    day: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatCard:
    """The texts of a card on a format, beyond its columns."""

    notes: tuple[str, ...] = ()
    """Facts that a user has to know, in sentences. `{groups}`: the family's words for groups, such as "topic
    or persona"."""
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
class FormatLayout:
    """Files, columns and rows beyond one table of JSON lines."""

    files: Callable[[Staging], RowFiles] = JsonLines
    """Opens the files for the rows."""
    scenario: bool = False
    """Each row has the scenario's values, as texts, in columns of their own. Its `Row` names the scenario."""
    token_columns: Mapping[str, str] = field(default_factory=dict)
    """Further columns if the user gives a tokenizer."""
    layer_columns: Callable[[Sequence[LayerFacts]], Columns] | None = None
    """Further columns for the layers of the run."""
    by_range: bool = False
    """The rows of a scenario depend only on its conversations and pairs, so several processes can make
    them."""
    prompts_only: bool = False
    """No row has the trained side's last words, so none has an end marker."""
    level: Level | None = None
    """The shown extent of a preference: whole conversations or one turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """An export format. The first five fields are required."""

    name: str
    """The name of its entry point."""
    summary: str
    """A sentence for the list of formats and the card."""
    rows: Rows
    """Reads the run: yields a Row or a LeftOut for each thing in it."""
    tables: Mapping[str, str] | tuple[DataTable, ...] | Callable[[Space], DataTable]
    """The columns of the only table with their meanings, or several tables, or a function from a space to the
    only table."""
    use: str
    """A few lines that load the files and train."""
    needs: tuple[str, ...] = ()
    """`pairs`, contents of only some records (`labels` of turns, `events`), or a library by its name."""
    family: str | None = None
    """The family whose records it needs; None for any."""
    chat: bool = True
    """Turns become the messages of an assistant and a user; else they stay as they are."""
    Options: type[FormatOptions] | None = None
    """Options of this format, which may extend a struct that several formats share, such as MaskOptions;
    `rows` finds their values in `Chat.own`."""
    card: FormatCard = FormatCard()
    """Its texts in the card of an export."""
    layout: FormatLayout = FormatLayout()
    """Its files, columns and rows, if they differ from one table of JSON lines."""

    def __new__(cls, **given: Any) -> Format:
        """Return a new format. Raises TypeError for a field of a part, with the correct spelling."""
        for place, name in _list_misplaced(given):
            raise TypeError(_explain_part(place, name))
        return object.__new__(cls)

    def meaning(self, reason: str) -> str:
        """Return a clause that explains a reason for omissions; empty if there is none."""
        return self.card.reasons.get(reason) or REASONS.get(reason, "")

    @property
    def of(self) -> Literal["conversations", "pairs"]:
        """The unit in which omissions are counted."""
        return "pairs" if "pairs" in self.needs else "conversations"

    @property
    def structs(self) -> tuple[type[FormatOptions], ...]:
        """The structs of all options that the format takes."""
        own = () if self.Options is None else (self.Options,)
        pairs = "pairs" in self.needs
        labelled = not pairs and (
            "labels" in self.needs or any(issubclass(one, ActionOptions) for one in own)
        )
        implied = ((ChatOptions, self.chat), (PairSetOptions, pairs), (LayerOptions, labelled))
        return (ExportOptions, *(kind for kind, taken in implied if taken), *own)

    def tables_of(
        self, space: Space, options: OptionValues | None = None, layers: Sequence[LayerFacts] = ()
    ) -> tuple[DataTable, ...]:
        """Return the tables of an export of a run on this space, with these layers."""
        if callable(self.tables):
            if not _is_table(table := self.tables(space)):
                said = f"returned {shorten(repr(table), 80)} from `tables`, which is {_NO_TABLE}"
                refuse_value("format", self.name, said)
            return (self._with_layers(table, layers),)
        tables = self.tables if isinstance(self.tables, tuple) else (DataTable(self.tables),)
        if options is not None and options.of(TokenOptions).tokenizer is not None:
            tables = tuple(
                DataTable({**table.columns, **self.layout.token_columns}, table.name) for table in tables
            )
        if options is not None and options.own is not None:
            tables = tuple(table for table in tables if table.name not in options.own.left_out())
        if not self.layout.scenario:
            return tables
        more = {name: meaning for name, (_, meaning) in make_trainer_columns(space).columns.items()}
        return tuple(DataTable({**table.columns, **more}, table.name) for table in tables)

    def _with_layers(self, table: DataTable, layers: Sequence[LayerFacts]) -> DataTable:
        more = {} if self.layout.layer_columns is None else self.layout.layer_columns(layers)
        if taken := sorted(more.keys() & table.columns.keys()):
            raise UsageError(
                f"{self.name} would have two columns {taken[0]}, of the space and of a layer; rename the "
                "layer's folder."
            )
        columns = {**table.columns, **{name: meaning for name, (_, meaning) in more.items()}}
        types = {**table.types, **{name: type_ for name, (type_, _) in more.items()}} if table.types else {}
        return DataTable(columns, table.name, types)

    def read(self, given: Mapping[str, Any]) -> OptionValues:
        """Return the values of the format's options; None: the option is not given. Raises UsageError for an
        option that the format does not take, and for an invalid value."""
        given = {name: value for name, value in given.items() if value is not None}
        if "layer" in given and self.layout.layer_columns is not None:
            raise UsageError(f"{self.name} has columns for every layer; leave --layer out.")
        values = read_options(self.name, self.structs, given)
        fields = [name for kind in self.structs for name in kind.__struct_fields__]
        given = {name: given[name] for name in fields if name in given}
        return OptionValues(values, None if self.Options is None else values[-1], given)

    def refuse(self, run: RunReader) -> str | None:
        """Explain in a sentence why a run cannot be exported at all; None if it can."""
        if self.family in (None, run.family.name):
            return None
        roles = ", ".join(role.name for role in run.space.roles)
        return (
            f"{run.name}: {self.name} holds conversations of the family {self.family}, and these are of the "
            "family "
            f"{run.family.name} (space {run.space.name}, roles {roles}); hf, csv and convokit take any, "
            "and so do the formats for trainers."
        )


def iterate_items(run: RunReader, format_: Format, chat: Chat) -> Generator[Item, None, None]:
    """Yield the rows and omissions of a run, the rows with the scenario's columns if the format has them."""
    columns = make_trainer_columns(run.space)
    for item in _iterate_items(run, format_, chat):
        if isinstance(item, Row) and format_.layout.scenario and item.scenario is not None:
            item.value.update(columns.read_texts(item.scenario))
        yield item


_TABLE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,59}")  # a table's name, which is that of a folder
_NO_TABLE = "not a DataTable whose name has letters, digits, _ and -"


def _is_table(given: Any) -> bool:
    return isinstance(given, DataTable) and isinstance(given.name, str) and bool(_TABLE.fullmatch(given.name))


LEAST_ITEMS = 1_000_000  # rows and omissions that a plugin may give for any run
_LONGEST_REASON = 200  # characters of a reason for an omission
_MOST_ITEMS = 10_000  # the same for each conversation of a larger run


def _iterate_items(run: RunReader, format_: Format, chat: Chat) -> Iterator[Any]:
    """Yield the items of a format. Raises FaultyPluginError for any error of a plugin's code, and for far
    more items than a run can have."""
    try:
        if find_plugin("format", format_.name) is None:
            yield from format_.rows(run, chat)
            return
        most = max(LEAST_ITEMS, _MOST_ITEMS * run.accepted)
        for number, item in enumerate(format_.rows(run, chat)):
            if number == most:
                said = f"gave {most:,} rows for {quantity(run.accepted, 'conversation')} and did not end"
                refuse_value("format", format_.name, said)
            if (flaw := _find_item_flaw(item, format_)) is not None:
                refuse_value("format", format_.name, flaw)
            yield item
    except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 - raised again
        blame("format", format_.name, error)


def _find_item_flaw(item: Any, format_: Format) -> str | None:
    """Return a clause about a field of a plugin's item that is not of its type; None if all are."""
    if isinstance(item, LeftOut):
        if isinstance(item.reason, str) and item.reason.isprintable() and len(item.reason) <= _LONGEST_REASON:
            return None
        return (
            f"left something out for {shorten(repr(item.reason), 80)}, which is not a name such as too_long"
        )
    if not isinstance(item, Row):
        return f"gave a row that is {describe_type(item)}, not a Row or LeftOut"
    value = dict if format_.layout.scenario else object
    kinds = {"value": value, "scenario": Scenario | None, "evidence": Evidence | None, "files": Mapping}
    for name, kind in kinds.items():
        if not isinstance(given := getattr(item, name), kind):
            return f"gave a Row whose `{name}` is {describe_type(given)}: {shorten(repr(given), 80)}"
    return None


TAKEN = frozenset({"run", "to", "assistant", "output", "workers", "on", "json", "help", "own"})
"""Names that no option of a format can have, besides those of ExportOptions: `edgen export` has them."""


_PARTS: Mapping[str, type[Any]] = {"card": FormatCard, "layout": FormatLayout}


def _list_misplaced(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield (part's field of a format, name) for each name that belongs to that part."""
    for name in names:
        yield from ((place, name) for place, part in _PARTS.items() if name in part.__dataclass_fields__)


def _explain_part(place: str, name: str) -> str:
    part = _PARTS[place].__name__
    return f"`{name}` belongs to {part}; write {place}={part}({name}=…)"


def list_flaws(format_: Format) -> Iterator[str]:
    """Yield the flaws that keep an object from being used as a format, as clauses."""
    classes = (one for one in type(format_).__mro__ if one not in Format.__mro__)
    for place, name in _list_misplaced(dict.fromkeys(name for one in classes for name in vars(one))):
        yield f"has a field in its class that is ignored: {_explain_part(place, name)}"
    for place, kind in _PARTS.items():
        if not isinstance(given := getattr(format_, place), kind):
            yield f"has a `{place}` that is not a {kind.__name__}: {given!r}"
    yield from _list_wrong_types(format_)
    if not callable(format_.layout.files):
        yield f"has a `layout` whose `files` cannot be called: {format_.layout.files!r}"
    if not callable(format_.rows):
        yield f"has `rows` that cannot be called: {format_.rows!r}"
    own = format_.Options
    if own is None:
        return
    if not isinstance(own, type) or not issubclass(own, FormatOptions):
        yield f"has `Options` that are not a class derived from edgen.plugin.FormatOptions: {own!r}"
        return
    taken = {*TAKEN}
    for struct in (ExportOptions, ChatOptions, PairSetOptions, LayerOptions):
        taken |= {*struct.__struct_fields__}
    taken |= {f"no_{name}" for name in taken}
    for base in own.__mro__:
        if base.__module__.startswith("edgen."):  # fields inherited from a struct of edgen's own
            taken -= {*getattr(base, "__struct_fields__", ())}
    for option in msgspec.structs.fields(own):
        if option.name in taken:
            yield (
                f"has an option `{option.name}`, and `edgen export` has an option {flag_of(option.name)} of "
                "its own; give it another name"
            )
        if option.required:
            yield f"has an option `{option.name}` without a default"
    try:
        list(list_flags(own))
    except Exception as error:  # noqa: BLE001 - a plugin may have fields of any type
        yield f"has `Options` that cannot become flags ({type(error).__name__}: {error})"
        return
    yield from find_unfit_fields(own, said="`Options`", holder="no flag can give")


def _list_wrong_types(format_: Format) -> Iterator[str]:
    """Yield the fields of a format that have no text, or no texts, where a card needs them, as clauses."""
    card = format_.card if isinstance(format_.card, FormatCard) else FormatCard()
    for name in ("summary", "use"):
        if not isinstance(given := getattr(format_, name), str):
            yield f"has a `{name}` that is not text: {given!r}"
    each = {"needs": format_.needs, "notes": card.notes, "tags": card.tags, "tasks": card.tasks}
    for name, given in each.items():
        if not isinstance(given, tuple | list) or not all(isinstance(one, str) for one in given):
            yield f"has `{name}` that are not a tuple of texts: {given!r}"
    for name, given in {"reasons": card.reasons, "tables": format_.tables}.items():
        if name == "tables" and isinstance(given, tuple):
            if wrong := [one for one in given if not _is_table(one)]:
                yield f"has {shorten(repr(wrong[0]), 80)} among its `tables`, which is {_NO_TABLE}"
            continue
        if name == "tables" and callable(given):
            continue
        texts = isinstance(given, Mapping) and all(
            isinstance(one, str) for pair in given.items() for one in pair
        )
        if not texts:
            yield f"has `{name}` that are not a mapping from names to texts: {given!r}"
