"""The running sums of aggregates, each over one column of a data set."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from edgen.evaluation.sample import Sample
from edgen.stats.distributions import Distribution, summarize_counts, summarize_shares
from edgen.stats.intervals import Estimate, ShareCount, average

MOST_NUMBER = 10**9  # largest number that is counted, since a file may come from anybody


def sort_counts(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the counts in descending order, equal counts by name."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


class NoSum:
    def add(self, sample: Sample, value: Any, of: Any) -> None:
        pass

    def result(self) -> None:
        return None


class NumberSum:
    def __init__(self) -> None:
        self._total = 0

    def add(self, sample: Sample, value: Any, of: Any) -> None:  # noqa: ARG002
        self._total += value

    def result(self) -> int:
        return self._total


class ShareSum:
    """Things among `of`, or, without `of`, conversations whose value is true."""

    def __init__(self) -> None:
        self._count = ShareCount()

    def add(self, sample: Sample, value: Any, of: Any) -> None:
        if of is None:
            value, of = bool(value), 1
        self._count.add(sample.scenario.index, value, of)

    def result(self) -> Estimate | None:
        return self._count.result()


class KeyShareSum:
    def __init__(self) -> None:
        self._by_key: defaultdict[str, ShareCount] = defaultdict(ShareCount)

    def add(self, sample: Sample, value: Any, of: Any) -> None:
        for key, hits in value.items():
            self._by_key[key].add(sample.scenario.index, hits, of[key])

    def result(self) -> dict[str, Estimate]:
        largest = sorted(self._by_key.items(), key=lambda one: (-one[1].of, one[0]))
        return {key: found for key, count in largest if (found := count.result()) is not None}


class MeanSum:
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


class NumberCounts:
    """Counts of each number."""

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


class KeyNumberCounts:
    def __init__(self, keys: Iterable[str]) -> None:
        self._by_key: defaultdict[str, Counter[int]] = defaultdict(
            Counter, {key: Counter[int]() for key in keys}
        )

    def add(self, sample: Sample, value: Any, of: Any) -> None:  # noqa: ARG002
        for key, each in value:
            self._by_key[key][each] += 1

    def result(self) -> dict[str, Distribution]:
        return {key: summarize_counts(counts) for key, counts in self._by_key.items()}


class ShareSpread:
    """A list of all shares."""

    def __init__(self) -> None:
        self._values = array("d")

    def add(self, sample: Sample, value: Any, of: Any) -> None:  # noqa: ARG002
        self._values.append(value)

    def result(self) -> Distribution:
        return summarize_shares(self._values)


class TextCounts:
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


class CrossCounts:
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
        return {str(row): (count, self._compute_shares(self._in[row], count)) for row, count in rows}

    def _compute_shares(self, counts: Counter[str], of: int) -> dict[str, float]:
        columns = self._columns or [column for column, _ in counts.most_common()]
        return {column: counts[column] / of for column in columns if counts[column]}


class FirstIds:
    def __init__(self, most: int) -> None:
        self._most = most
        self._ids: list[str] = []

    def add(self, sample: Sample, value: Any, of: Any) -> None:  # noqa: ARG002
        if value and len(self._ids) < self._most:
            self._ids.append(sample.id)

    def result(self) -> tuple[str, ...]:
        return tuple(self._ids)
