"""Confusion of annotators: counts over units that both label.

Memory: one number per pair of labels and pair of annotators.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import msgspec


class TwoByTwo(msgspec.Struct, frozen=True):
    """Numbers of units with a label by both annotators, by the first only, by the second only, by neither."""

    both: int
    first: int
    second: int
    neither: int


class Confusion(msgspec.Struct, frozen=True, kw_only=True):
    """Two annotators over the `n` units that both label. `pairs`: (label, label, number of units with these
    by the first and the second), most frequent first. For units with one label it is the confusion matrix;
    for several it shows which labels go together. `labels`: each label separately."""

    annotators: tuple[str, str]
    n: int
    pairs: tuple[tuple[str, str, int], ...]
    labels: dict[str, TwoByTwo]


class ConfusionCounts:
    """Counts of every two annotators, unit by unit."""

    def __init__(self) -> None:
        self._n: Counter[tuple[str, str]] = Counter()
        self._pairs: defaultdict[tuple[str, str], Counter[tuple[str, str]]] = defaultdict(Counter)
        self._given: defaultdict[tuple[str, str], Counter[tuple[str, bool, bool]]] = defaultdict(Counter)

    def add(self, labels: Mapping[str, Sequence[str]]) -> None:
        """Add a unit with each annotator's labels."""
        for (one, a), (other, b) in itertools.combinations(sorted(labels.items()), 2):
            pair = (one, other)
            self._n[pair] += 1
            self._pairs[pair].update(itertools.product(a, b))
            self._given[pair].update((label, label in a, label in b) for label in {*a, *b})

    def result(self, order: Sequence[str]) -> tuple[Confusion, ...]:
        """Return the confusion of every two annotators, with labels in the order of `order`."""
        place = {label: number for number, label in enumerate(order)}

        def rank(label: str) -> tuple[int, str]:
            return place.get(label, len(place)), label

        found = []
        for pair, n in sorted(self._n.items()):
            counts = sorted(
                self._pairs[pair].items(), key=lambda one: (-one[1], rank(one[0][0]), rank(one[0][1]))
            )
            labels = sorted({label for label, _, _ in self._given[pair]}, key=rank)
            found.append(
                Confusion(
                    annotators=pair,
                    n=n,
                    pairs=tuple((a, b, count) for (a, b), count in counts),
                    labels={label: self._count_two_by_two(pair, label, n) for label in labels},
                )
            )
        return tuple(found)

    def _count_two_by_two(self, pair: tuple[str, str], label: str, n: int) -> TwoByTwo:
        given = self._given[pair]
        both, first, second = given[label, True, True], given[label, True, False], given[label, False, True]
        return TwoByTwo(both, first, second, n - both - first - second)
