"""Aggregates: figures computed from the columns of conversations. Each is one figure of a measure's value,
under its name in JSON.

A conversation has columns: numbers, truths, texts, lists of these, or mappings from a key to one of these. An
aggregate reads one column and, for a share or mean of things, a second column with their number. It also
declares how its figure is worded: `rows` makes the terminal's lines from this, `panels` the report's
pictures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Literal, Protocol

import msgspec

import edgen.stats.required  # noqa: F401 - first: where numpy is missing, it says which extra has it
from edgen.evaluation.aggregate_sums import (
    CrossCounts,
    FirstIds,
    KeyNumberCounts,
    KeyShareSum,
    MeanSum,
    NoSum,
    NumberCounts,
    NumberSum,
    ShareSpread,
    ShareSum,
    TextCounts,
)
from edgen.evaluation.sample import DataSet, Sample
from edgen.stats.distributions import Distribution

Columns = Mapping[str, Any]
Keys = Iterable[str] | Callable[[DataSet], Iterable[str]]


class Sum(Protocol):
    """The running sum of an aggregate over one data set."""

    def add(self, sample: Sample, value: Any, of: Any) -> None:
        """Count a conversation. `value`: its column. `of`: the column with the number of things, None without
        one."""

    def result(self) -> Any:
        """Return the figure, after all conversations were added."""


class _Wording(msgspec.Struct, frozen=True, kw_only=True):
    label: str = ""
    """Its row on the terminal; "" for no row of its own. `{key}` stands for the key of a figure by key."""
    says: str = ""
    """The row's text, with figures of the value in braces; `{it}` is this figure. "" for the usual text of
    its class."""
    if_any: bool = False
    """Whether row and note are left out if the figure has no data."""
    note: str = ""
    """A paragraph below its row, with figures in braces as in `says`; also shown without a row."""
    title: str = ""
    """Its label in pictures, with `{key}` as in `label`; "" for the name of the arm or run."""
    drawn: str = ""
    """Its text next to a bar or dot of a picture, as in `says`; "" for the usual text of its class."""
    names: Mapping[str, str] | Callable[[str], str] = {}
    """Display names of its keys, on the terminal and in the report."""
    required: bool = False
    """Whether the whole measure is hidden if this figure has no data."""

    def rename(self, key: str) -> str:
        """Return the display name of a key."""
        return self.names(key) if callable(self.names) else self.names.get(key, key)


class Aggregate(_Wording, frozen=True):
    """One figure of a measure. Conversations without the column do not count. This base class counts nothing:
    the measure's `finish`, or its own count, gives the value."""

    name: str
    """The figure's name in the measure's value, and its key in JSON."""
    column: str = ""
    """The column to read; "" for the column of the figure's name."""
    of: str = ""
    """The column with the number of things that a share or mean is over; "" for conversations."""

    usual: ClassVar[str] = "{it}"

    @property
    def reads(self) -> str:
        """The name of the column."""
        return self.column or self.name

    def start(self, data: DataSet) -> Sum:  # noqa: ARG002
        """Start a count over one data set."""
        return NoSum()


class Total(Aggregate, frozen=True):
    """The sum of a number."""

    def start(self, data: DataSet) -> Sum:  # noqa: ARG002
        return NumberSum()


class Share(Aggregate, frozen=True, kw_only=True):
    """A share with its interval, with scenarios as clusters: of conversations, if the column is true or
    false, or of the things that `of` counts. `by_key`: both columns are mappings, and each key gets a share;
    keys with the most things come first."""

    by_key: bool = False
    usual: ClassVar[str] = "{it} of {it:n}"

    def start(self, data: DataSet) -> Sum:  # noqa: ARG002
        return KeyShareSum() if self.by_key else ShareSum()


class Mean(Aggregate, frozen=True):
    """A mean of numbers with its interval, with scenarios as clusters."""

    usual: ClassVar[str] = "{it:number} of {it:n}"

    def start(self, data: DataSet) -> Sum:  # noqa: ARG002
        return MeanSum(sized=bool(self.of))


class Histogram(Aggregate, frozen=True, kw_only=True):
    """A distribution of whole numbers, or of lists of them; `shares`: of numbers in [0, 1]. `by_key`: the
    column lists (key, number), and each key gets a distribution; `keys` come first, even without numbers.
    `line`: words for its bars on the terminal."""

    shares: bool = False
    by_key: bool = False
    keys: Keys = ()
    line: str = ""

    def start(self, data: DataSet) -> Sum:
        if self.by_key:
            return KeyNumberCounts(_list_keys(self.keys, data))
        return ShareSpread() if self.shares else NumberCounts()


class Tally(Aggregate, frozen=True, kw_only=True):
    """Number of conversations with each text."""

    keys: Keys = ()  # texts that come first, present or not
    order: Literal["size", "name", "seen"] = "size"  # of the other texts: by count, name, or first seen
    last: tuple[str, ...] = ()  # texts that come at the end
    most: int | None = None  # maximum texts on the terminal; None: all
    rest: str = ""  # name of the row for the remaining texts

    def start(self, data: DataSet) -> Sum:
        return TextCounts([*_list_keys(self.keys, data)], self.order, self.last)


class Crossed(Aggregate, frozen=True, kw_only=True):
    """A table: for each row the number of things, and their share in each column. A conversation's column is
    a list of (row, columns), one item per thing. `columns`: their order; empty: most things first. `order`:
    of the rows. `heads`: names of rows and columns in a report."""

    columns: tuple[str, ...] = ()
    order: Literal["size", "key"] = "size"
    heads: tuple[str, str] = ("", "")

    def start(self, data: DataSet) -> Sum:  # noqa: ARG002
        return CrossCounts(self.columns, self.order)


class ByKey(Aggregate, frozen=True, kw_only=True):
    """Values by key, each shown by the figures in `each`. The measure's own count makes them, as a mapping or
    a sequence; `name` is "" if they are the measure's whole value. In a figure's words, `{key}` is the key of
    the value, or the figure's own key if the figure is by key."""

    each: tuple[Aggregate, ...] = ()
    key: Callable[[Any], str] = str  # returns a value's key, in a sequence
    most: int | None = None  # maximum values on the terminal; None: all

    def list_parts(self, figure: Any) -> list[tuple[str, Any]]:
        """Return each value with its key."""
        if isinstance(figure, Mapping):
            return [*figure.items()]
        return [(self.key(part), part) for part in figure or ()]


class Examples(Aggregate, frozen=True, kw_only=True):
    """The ids of the first `most` conversations whose column is true or not empty. `why`: the reason to read
    them."""

    most: int = 10
    why: str = ""

    def start(self, data: DataSet) -> Sum:  # noqa: ARG002
        return FirstIds(self.most)


def find_figure(value: Any, name: str) -> Any:
    """Return a figure of a measure's value by name; the whole value for ""."""
    if not name:
        return value
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name)


def has_data(aggregates: Iterable[Aggregate], value: Any) -> bool:
    """Return whether a measure's value is shown: some figure has data, and all required figures have."""
    if value is None:
        return False
    empty = [(one.required, is_empty(find_figure(value, one.name))) for one in aggregates]
    return not any(required and none for required, none in empty) and not (
        empty and all(none for _, none in empty)
    )


def iterate_parts(figure: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (key, figure) of a figure by key; else `key` with the figure itself."""
    if isinstance(figure, Mapping):
        yield from figure.items()
    else:
        yield key, figure


def is_empty(figure: Any) -> bool:
    """Return whether a figure has no data."""
    if isinstance(figure, Mapping):
        return all(map(is_empty, figure.values()))
    return figure.n == 0 if isinstance(figure, Distribution) else not figure


def roles_of(data: DataSet) -> list[str]:
    """Return the roles of a data set, as `keys` of an aggregate."""
    return [role.name for role in data.roles]


def _list_keys(keys: Keys, data: DataSet) -> Iterable[str]:
    return keys(data) if callable(keys) else keys
