"""How far annotators agree beyond chance about units that each carry a set of labels: kappas and Krippendorff's alpha.

Cohen 1960, Educ. Psychol. Meas. 20, of every two annotators over the units that both label, a set being one category.
Fleiss 1971, Psychol. Bull. 76, over the units that all annotators label. Krippendorff 2011, Computing Krippendorff's
Alpha-Reliability, over the units that two or more label: nominal, where sets are the same or not; and by the MASI distance of
sets (Passonneau 2006). Where all say the same there is no chance to correct for, and the value is None. Intervals are expanded
percentiles of a seeded bootstrap that draws whole scenarios (see `edgen.stats.resampling`), at 95%. Memory: some numbers for
every label of each two annotators, for each cluster of scenarios, of which there are at most 500 (`edgen.stats.clusters`).
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgen.stats.clusters import ClusterSums, Drawn
from edgen.stats.resampling import divide, interval

LabelSetOf = frozenset[str]
Span = tuple[float, float]
Floats = NDArray[np.float64]


class Kappa(msgspec.Struct, frozen=True):
    """Two annotators: how many units both label, the share of them that they label alike, and kappa with its interval."""

    annotators: tuple[str, str]
    n: int
    observed: float
    kappa: float | None
    kappa_interval: Span | None = None


class AnnotatorAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """`units` that two annotators or more label; alpha over all annotators, nominal and by MASI; Fleiss' kappa over the
    `units_by_all` that everybody labels; Cohen's kappa of every two. Intervals are None where there are too few scenarios."""

    units: int
    alpha: float | None
    alpha_masi: float | None
    between: tuple[Kappa, ...]
    alpha_interval: Span | None = None
    alpha_masi_interval: Span | None = None
    units_by_all: int = 0
    fleiss: float | None = None
    fleiss_interval: Span | None = None


class AgreementCounts:
    """Counts that agreement is made of, unit by unit."""

    def __init__(self) -> None:
        self._units = 0
        self._all: frozenset[str] = frozenset()  # annotators so far
        self._sets: dict[LabelSetOf, None] = {}
        self._pairs: dict[tuple[str, str], None] = {}
        self._sums = ClusterSums()
        self._by_all = ClusterSums()

    def add(self, said: Mapping[str, Sequence[str]], cluster: int = 0) -> None:
        """A unit: what each annotator says of it; and the cluster of its scenario."""
        sets = {name: frozenset(labels) for name, labels in sorted(said.items())}
        if not self._all >= sets.keys():  # what was counted is not by everybody
            self._all |= sets.keys()
            self._by_all = ClusterSums()
        if len(sets) < 2:
            return
        self._units += 1
        self._sets.update(dict.fromkeys(sets.values()))
        alike, apart = 0, 0.0
        for (one, a), (other, b) in itertools.combinations(sets.items(), 2):
            pair = (one, other)
            self._pairs[pair] = None
            self._sums.add(cluster, (pair, "n"))
            self._sums.add(cluster, (pair, one, a))
            self._sums.add(cluster, (pair, other, b))
            if a == b:
                self._sums.add(cluster, (pair, "alike"))
            alike += a == b
            apart += masi(a, b)
        pairs = len(sets) * (len(sets) - 1) / 2
        # of m annotators each pair counts twice, by 1 / (m - 1)
        self._sums.add(cluster, "apart", (pairs - alike) * 2 / (len(sets) - 1))
        self._sums.add(cluster, "masi", apart * 2 / (len(sets) - 1))
        everybody = len(sets) == len(self._all)
        for labels in sets.values():
            self._sums.add(cluster, ("given", labels))
            if everybody:
                self._by_all.add(cluster, ("given", labels))
        if everybody:
            self._by_all.add(cluster, "n")
            self._by_all.add(cluster, "alike", alike / pairs)

    def result(self) -> AnnotatorAgreement:
        sets, drawn, by_all = [*self._sets], self._sums.draw(), self._by_all.draw()
        given: list[Hashable] = [("given", one) for one in sets]
        distances = np.array([[masi(a, b) for b in sets] for a in sets]).reshape(len(sets), len(sets))
        totals = drawn.columns(given)
        fleiss = _fleiss(by_all, by_all.columns(given))
        alpha, alpha_interval = _told(
            _alpha(totals, drawn.column("apart"), 1.0 - np.eye(len(sets))), drawn.clusters
        )
        alpha_masi, masi_interval = _told(_alpha(totals, drawn.column("masi"), distances), drawn.clusters)
        value, span = _told(fleiss, by_all.clusters)
        return AnnotatorAgreement(
            units=self._units,
            alpha=alpha,
            alpha_interval=alpha_interval,
            alpha_masi=alpha_masi,
            alpha_masi_interval=masi_interval,
            between=tuple(_between(pair, drawn, sets) for pair in sorted(self._pairs)),
            units_by_all=int(by_all.column("n")[0]),
            fleiss=value,
            fleiss_interval=span,
        )


def masi(a: LabelSetOf, b: LabelSetOf) -> float:
    """The distance of two sets, from 0 for the same to 1 for sets that share nothing."""
    shared = len(a & b)
    if a == b:
        return 0.0
    weight = 2 / 3 if shared == min(len(a), len(b)) else 1 / 3 if shared else 0.0
    return 1 - shared / len(a | b) * weight


def _alpha(totals: Floats, observed: Floats, distances: Floats) -> Floats:
    """Alpha of each draw: how often each set was given (draws, sets), the distances observed (draws), those of every two sets."""
    n = totals.sum(axis=1)
    expected = ((totals @ distances) * totals).sum(axis=1)
    return 1 - divide(observed * (n - 1), expected, np.nan)


def _fleiss(drawn: Drawn, totals: Floats) -> Floats:
    shares = divide(totals, np.broadcast_to(totals.sum(axis=1, keepdims=True), totals.shape))
    chance = (shares**2).sum(axis=1)
    alike = divide(drawn.column("alike"), drawn.column("n"), np.nan)
    return divide(alike - chance, _above_rounding(1 - chance), np.nan)


def _between(pair: tuple[str, str], drawn: Drawn, sets: Sequence[LabelSetOf]) -> Kappa:
    n = drawn.column((pair, "n"))
    first, second = (drawn.columns([(pair, name, one) for one in sets]) for name in pair)
    alike = divide(drawn.column((pair, "alike")), n, np.nan)
    chance = divide((first * second).sum(axis=1), n**2, np.nan)
    kappa, span = _told(divide(alike - chance, _above_rounding(1 - chance), np.nan), drawn.clusters)
    return Kappa(pair, int(n[0]), float(alike[0]), kappa, span)


def _above_rounding(values: Floats) -> Floats:
    """The values, 0 for what only rounding keeps from it."""
    return np.where(values > 1e-12, values, 0.0)


def _told(values: Floats, clusters: int) -> tuple[float | None, Span | None]:
    """What was seen, and its interval."""
    if np.isnan(values[0]):
        return None, None
    return round(float(values[0]), 12), interval(values[1:], clusters) if len(values) > 1 else None
