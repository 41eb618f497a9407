"""Aggregates: what the columns of conversations come to. Each is one figure of a measure's value, under its
name in JSON.

A conversation has columns: numbers, truths, texts, lists of these, or mappings from a key to one of these.
An aggregate reads one column, and a second one that it is a share or a mean of, and says how the figure is
worded (see `rows`).
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Literal, Protocol

import msgspec

import edgen.stats.required  # noqa: F401 - first: where numpy is missing, it says which extra has it
from edgen.evaluation.sample import DataSet, Sample
from edgen.stats.distributions import Distribution, summarize_counts, summarize_shares
from edgen.stats.intervals import Estimate, ShareCount, average

Columns = Mapping[str, Any]
Keys = Iterable[str] | Callable[[DataSet], Iterable[str]]
MOST_NUMBER = 10**9  # of a file that anybody may have written


class Sum(Protocol):
    """An aggregate at work on one data set."""

    def add(self, sample: Sample, value: Any, of: Any) -> None:
        """Count a conversation: its column, and the column that it is a share or mean of, None where there
        is none."""

    def result(self) -> Any:
        """Return the figure, once everything was added."""


class _Wording(msgspec.Struct, frozen=True, kw_only=True):
    label: str = ""
    """Its row on the terminal; "" for no row of its own. `{key}` stands for the key of one that is by key."""
    says: str = ""
    """The row's text, with figures of the value in braces; `{it}` is this one. "" for the usual text of
    its class."""
    if_any: bool = False
    """Whether the row is left out where the figure rests on nothing."""
    title: str = ""
    """Its words in pictures, with `{key}` as in `label`. "": the name of the arm or the run."""


class Aggregate(_Wording, frozen=True):
    """One figure of a measure. Conversations without the column do not count. One of no class of its own
    counts nothing: the measure's `finish` says what it comes to, or a count of its own."""

    name: str
    """The figure's name in the measure's value, and its key in JSON."""
    column: str = ""
    """The column that is read; "" for the column of the same name."""
    of: str = ""
    """The column with the number of things that it is a share or a mean of; "" for conversations."""

    usual: ClassVar[str] = "{it}"

    @property
    def reads(self) -> str:
        """The name of the column."""
        return self.column or self.name

    def start(self, data: DataSet) -> Sum:  # noqa: ARG002
        """Start a count over one data set."""
        return _Nothing()


class Total(Aggregate, frozen=True):
    """The sum of a number."""

    def start(self, data: DataSet) -> Sum:  # noqa: ARG002
        return _Adding()


class Share(Aggregate, frozen=True, kw_only=True):
    """A share with its interval, scenarios as clusters: of conversations, where the column is a truth, or
    of the things that `of` counts. `by_key`: of each key of the mappings that both columns are, the key
    with the most things first."""

    by_key: bool = False
    usual: ClassVar[str] = "{it} of {it:n}"

    def start(self, data: DataSet) -> Sum:  # noqa: ARG002
        if self.by_key:
            return _SharesByKey()
        return _Sharing() if self.of else _SharingOfConversations()


class Mean(Aggregate, frozen=True):
    """A mean of numbers with its interval, scenarios as clusters."""

    usual: ClassVar[str] = "{it:number} of {it:n}"

    def start(self, data: DataSet) -> Sum:  # noqa: ARG002
        return _Averaging(sized=bool(self.of))


class Histogram(Aggregate, frozen=True, kw_only=True):
    """A distribution of numbers, or of lists of them; whole ones, unless they are `shares` in [0, 1].
    `by_key`: a distribution for each key of the (key, number) that the column lists, those of `keys` first,
    whether they occur or not. `line`: words for its bars on the terminal."""

    shares: bool = False
    by_key: bool = False
    keys: Keys = ()
    line: str = ""

    def start(self, data: DataSet) -> Sum:
        if self.by_key:
            return _CountingByKey(_keys_of(self.keys, data))
        return _Spreading() if self.shares else _Counting()


class Tally(Aggregate, frozen=True, kw_only=True):
    """Number of conversations with each text."""

    keys: Keys = ()  # texts that come first, present or not
    order: Literal["size", "name", "seen"] = "size"  # of the other texts: by size, by name, or as first seen
    last: tuple[str, ...] = ()  # texts that come at the end
    names: Mapping[str, str] = {}  # other words for texts
    most: int | None = None  # texts named on the terminal, where zeros are left out; None: all
    rest: str = ""  # the name of the row for the others

    def start(self, data: DataSet) -> Sum:
        return _Tallying([*_keys_of(self.keys, data)], self.order, self.last)


class Crossed(Aggregate, frozen=True, kw_only=True):
    """A table: of each row how many things there are, and the shares of them that are in each column. The
    column of a conversation is a list of (row, columns that the thing is in). `columns`: their order, else
    the largest first; rows are in `order`. `heads` name both in a report."""

    columns: tuple[str, ...] = ()
    order: Literal["size", "key"] = "size"
    heads: tuple[str, str] = ("", "")
    usual: ClassVar[str] = "{it}"

    def start(self, data: DataSet) -> Sum:  # noqa: ARG002
        return _Crossing(self.columns, self.order)


class ByKey(Aggregate, frozen=True, kw_only=True):
    """Values by key, each shown by the figures in `each`. The measure's own count makes them. In the words
    of a figure that is by key itself, `{key}` is its own key; in those of the others, the key of the
    value."""

    each: tuple[Aggregate, ...] = ()


class Examples(Aggregate, frozen=True, kw_only=True):
    """The ids of the first `most` conversations whose column is true or holds anything; `why` they are
    worth reading."""

    most: int = 10
    why: str = ""

    def start(self, data: DataSet) -> Sum:  # noqa: ARG002
        return _Naming(self.most)


def parts_of(figure: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """(key, figure) of one that is by key; else the figure under this key."""
    if isinstance(figure, Mapping):
        yield from figure.items()
    else:
        yield key, figure


def is_empty(figure: Any) -> bool:
    """Return whether a figure has no data."""
    if isinstance(figure, Mapping):
        return all(map(is_empty, figure.values()))
    return figure.n == 0 if isinstance(figure, Distribution) else not figure


def sort_counts(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the counts, the largest first, equal ones by name."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def roles_of(data: DataSet) -> list[str]:
    """Return the roles of a data set, as `keys` of an aggregate."""
    return [role.name for role in data.roles]


def _keys_of(keys: Keys, data: DataSet) -> Iterable[str]:
    return keys(data) if callable(keys) else keys


class _Nothing:
    def add(self, sample: Sample, value: Any, of: Any) -> None:
        pass

    def result(self) -> None:
        return None


class _Adding:
    def __init__(self) -> None:
        self._total = 0

    def add(self, sample: Sample, value: Any, of: Any) -> None:  # noqa: ARG002
        self._total += value

    def result(self) -> int:
        return self._total


class _Sharing:
    def __init__(self) -> None:
        self._count = ShareCount()

    def add(self, sample: Sample, value: Any, of: Any) -> None:
        self._count.add(sample.scenario.index, value, of)

    def result(self) -> Estimate | None:
        return self._count.result()


class _SharingOfConversations(_Sharing):
    def add(self, sample: Sample, value: Any, of: Any) -> None:  # noqa: ARG002
        self._count.add(sample.scenario.index, bool(value))


class _SharesByKey:
    def __init__(self) -> None:
        self._by_key: defaultdict[str, ShareCount] = defaultdict(ShareCount)

    def add(self, sample: Sample, value: Any, of: Any) -> None:
        for key, hits in value.items():
            self._by_key[key].add(sample.scenario.index, hits, of[key])

    def result(self) -> dict[str, Estimate]:
        largest = sorted(self._by_key.items(), key=lambda one: (-one[1].of, one[0]))
        return {key: found for key, count in largest if (found := count.result()) is not None}


class _Averaging:
    def __init__(self, *, sized: bool) -> None:
        self._values, self._scenarios = array("d"), array("q")
        self._sizes = array("I") if sized else None

    def add(self, sample: Sample, value: Any, of: Any) -> None:
        self._values.append(value)
        self._scenarios.append(sample.scenario.index)
        if self._sizes is not None:
            self._sizes.append(of)

    def result(self) -> Estimate | None:
        return average(self._values, self._scenarios, self._sizes)


class _Counting:
    """Keeps how often each number occurred."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()

    def add(self, sample: Sample, value: Any, of: Any) -> None:  # noqa: ARG002
        if isinstance(value, int):
            self._counts[value] += 1
        elif isinstance(value, float):
            self._counts[round(min(value, MOST_NUMBER))] += 1
        else:
            for each in value:
                self._counts[each] += 1

    def result(self) -> Distribution:
        return summarize_counts(self._counts)


class _CountingByKey:
    def __init__(self, keys: Iterable[str]) -> None:
        self._by_key: defaultdict[str, Counter[int]] = defaultdict(
            Counter, {key: Counter[int]() for key in keys}
        )

    def add(self, sample: Sample, value: Any, of: Any) -> None:  # noqa: ARG002
        for key, each in value:
            self._by_key[key][each] += 1

    def result(self) -> dict[str, Distribution]:
        return {key: summarize_counts(counts) for key, counts in self._by_key.items()}


class _Spreading:
    """Keeps every share."""

    def __init__(self) -> None:
        self._values = array("d")

    def add(self, sample: Sample, value: Any, of: Any) -> None:  # noqa: ARG002
        self._values.append(value)

    def result(self) -> Distribution:
        return summarize_shares(self._values)


class _Tallying:
    def __init__(self, keys: Iterable[str], order: str, last: tuple[str, ...]) -> None:
        self._first, self._order, self._last = tuple(dict.fromkeys(keys)), order, last
        self._counts: Counter[str] = Counter()

    def add(self, sample: Sample, value: Any, of: Any) -> None:  # noqa: ARG002
        if isinstance(value, str):
            self._counts[value] += 1
        elif value:
            self._counts.update(value)

    def result(self) -> dict[str, int]:
        fixed = {*self._first, *self._last}
        others = {key: count for key, count in self._counts.items() if key not in fixed}
        if self._order == "size":
            others = sort_counts(others)
        elif self._order == "name":
            others = dict(sorted(others.items()))
        return {key: self._counts[key] for key in (*self._first, *others, *self._last)}


class _Crossing:
    def __init__(self, columns: tuple[str, ...], order: str) -> None:
        self._columns, self._order = columns, order
        self._things: Counter[Any] = Counter()
        self._in: defaultdict[Any, Counter[str]] = defaultdict(Counter)

    def add(self, sample: Sample, value: Any, of: Any) -> None:  # noqa: ARG002
        for row, columns in value:
            self._things[row] += 1
            self._in[row].update(columns)

    def result(self) -> dict[str, tuple[int, dict[str, float]]]:
        rows = sorted(self._things.items()) if self._order == "key" else self._things.most_common()
        return {str(row): (count, self._shares(self._in[row], count)) for row, count in rows}

    def _shares(self, counts: Counter[str], of: int) -> dict[str, float]:
        columns = self._columns or [column for column, _ in counts.most_common()]
        return {column: counts[column] / of for column in columns if counts[column]}


class _Naming:
    def __init__(self, most: int) -> None:
        self._most = most
        self._ids: list[str] = []

    def add(self, sample: Sample, value: Any, of: Any) -> None:  # noqa: ARG002
        if value and len(self._ids) < self._most:
            self._ids.append(sample.id)

    def result(self) -> tuple[str, ...]:
        return tuple(self._ids)
