"""How far annotators agree beyond chance about units that each carry a set of labels: Cohen's kappa and Krippendorff's alpha.

Cohen 1960, Educ. Psychol. Meas. 20, of every two annotators over the units that both label, a set being one category.
Krippendorff 2011, Computing Krippendorff's Alpha-Reliability, over the units that two or more label: nominal, where sets are the
same or not; and by the MASI distance of sets (Passonneau 2006). Where all say the
same there is no chance to correct for, and the value is None. Memory: some numbers for every two sets that occur.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence

import msgspec

LabelSetOf = frozenset[str]
Distance = Callable[[LabelSetOf, LabelSetOf], float]


class Kappa(msgspec.Struct, frozen=True):
    """Two annotators: how many units both label, the share of them that they label alike, and kappa."""

    annotators: tuple[str, str]
    n: int
    observed: float
    kappa: float | None


class AnnotatorAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """`units` that two annotators or more label; alpha over all annotators, nominal and by MASI; kappa of every two."""

    units: int
    alpha: float | None
    alpha_masi: float | None
    between: tuple[Kappa, ...]


class AgreementCounts:
    """Counts that agreement is made of, unit by unit."""

    def __init__(self) -> None:
        self._units = 0
        self._together: defaultdict[tuple[LabelSetOf, LabelSetOf], float] = defaultdict(float)
        self._pairs: dict[tuple[str, str], Counter[tuple[LabelSetOf, LabelSetOf]]] = {}

    def add(self, said: Mapping[str, Sequence[str]]) -> None:
        """A unit: what each annotator says of it."""
        sets = {name: frozenset(labels) for name, labels in sorted(said.items())}
        if len(sets) < 2:
            return
        self._units += 1
        for (one, a), (other, b) in itertools.combinations(sets.items(), 2):
            self._pairs.setdefault((one, other), Counter())[a, b] += 1
            weight = 1 / (len(sets) - 1)
            self._together[a, b] += weight
            self._together[b, a] += weight

    def result(self) -> AnnotatorAgreement:
        return AnnotatorAgreement(
            units=self._units,
            alpha=_alpha(self._together, lambda a, b: float(a != b)),
            alpha_masi=_alpha(self._together, masi),
            between=tuple(_kappa(pair, counts) for pair, counts in sorted(self._pairs.items())),
        )


def masi(a: LabelSetOf, b: LabelSetOf) -> float:
    """The distance of two sets, from 0 for the same to 1 for sets that share nothing."""
    shared = len(a & b)
    if a == b:
        return 0.0
    weight = 2 / 3 if shared == min(len(a), len(b)) else 1 / 3 if shared else 0.0
    return 1 - shared / len(a | b) * weight


def _alpha(together: Mapping[tuple[LabelSetOf, LabelSetOf], float], distance: Distance) -> float | None:
    totals: defaultdict[LabelSetOf, float] = defaultdict(float)
    for (a, _), weight in together.items():
        totals[a] += weight
    n = sum(totals.values())
    if len(totals) < 2:
        return None
    expected = sum(totals[a] * totals[b] * distance(a, b) for a, b in itertools.permutations(totals, 2))
    observed = sum(weight * distance(a, b) for (a, b), weight in together.items())
    return round(1 - observed * (n - 1) / expected, 12)


def _kappa(pair: tuple[str, str], counts: Mapping[tuple[LabelSetOf, LabelSetOf], int]) -> Kappa:
    n = sum(counts.values())
    alike = sum(count for (a, b), count in counts.items() if a == b) / n
    first, second = Counter[LabelSetOf](), Counter[LabelSetOf]()
    for (a, b), count in counts.items():
        first[a] += count
        second[b] += count
    chance = sum(first[a] * second[a] for a in first) / n**2
    return Kappa(pair, n, alike, None if chance == 1 else round((alike - chance) / (1 - chance), 12))
