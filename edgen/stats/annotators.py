"""Agreement of annotators beyond chance on units with sets of labels: kappas and Krippendorff's alpha.

Cohen's kappa (1960, Educ. Psychol. Meas. 20) is for every two annotators over the units that both label; each
set is one category. Fleiss' kappa (1971, Psychol. Bull. 76) is over the units that all annotators label.
Krippendorff's alpha (2011, Computing Krippendorff's Alpha-Reliability) is over the units that at least two
annotators label: nominal, with sets equal or not; and by the MASI distance of sets (Passonneau 2006). If all
labels are equal, chance cannot be corrected for, and the value is None. Intervals are expanded 95%
percentiles of a seeded bootstrap over whole scenarios (see `edgen.stats.resampling`). Memory: some numbers
per label and pair of annotators for each cluster of scenarios, of which there are at most 500
(`edgen.stats.clusters`).
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping, Sequence

import msgspec
import numpy as np

from edgen.stats.agreement import alphas, correct_for_chance, kappas, masi
from edgen.stats.clusters import ClusterSums, ResampledSums
from edgen.stats.resampling import Floats, divide, interval

LabelSetOf = frozenset[str]
Span = tuple[float, float]


class Kappa(msgspec.Struct, frozen=True):
    """Two annotators: number of units that both label, share of equal labels, and kappa with its interval."""

    annotators: tuple[str, str]
    n: int
    observed: float
    kappa: float | None
    kappa_interval: Span | None = None


class AnnotatorAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """The agreement of annotators. Intervals are None with too few scenarios."""

    units: int
    """Units that at least two annotators label."""
    alpha: float | None  # Krippendorff's, nominal; None if undefined
    alpha_masi: float | None  # Krippendorff's for sets, with the MASI distance; None if undefined
    between: tuple[Kappa, ...]  # each pair of annotators
    alpha_interval: Span | None = None  # 95% interval
    alpha_masi_interval: Span | None = None  # 95% interval
    units_by_all: int = 0
    """Units that all annotators label."""
    fleiss: float | None = None  # kappa of units that all annotators label; None if undefined
    fleiss_interval: Span | None = None  # 95% interval


class AgreementCounts:
    """Counts for agreement, unit by unit."""

    def __init__(self) -> None:
        self._units = 0
        self._all: frozenset[str] = frozenset()  # annotators so far
        self._sets: dict[LabelSetOf, None] = {}
        self._pairs: dict[tuple[str, str], None] = {}
        self._sums = ClusterSums()
        self._by_all = ClusterSums()

    def add(self, said: Mapping[str, Sequence[str]], cluster: int = 0) -> None:
        """Add a unit: each annotator's labels, and the cluster of its scenario."""
        sets = {name: frozenset(labels) for name, labels in sorted(said.items())}
        if not self._all >= sets.keys():  # counts of units by all annotators start again with a new annotator
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
        # Krippendorff's weights for m annotators: both orders of a pair, each 1 / (m - 1)
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
        totals = drawn.find_columns(given)
        fleiss = _fleiss(by_all, by_all.find_columns(given))
        alpha, alpha_interval = _summarize_resamples(
            alphas(drawn.find_column("apart"), totals, 1.0 - np.eye(len(sets))), drawn.clusters
        )
        alpha_masi, masi_interval = _summarize_resamples(
            alphas(drawn.find_column("masi"), totals, distances), drawn.clusters
        )
        value, span = _summarize_resamples(fleiss, by_all.clusters)
        return AnnotatorAgreement(
            units=self._units,
            alpha=alpha,
            alpha_interval=alpha_interval,
            alpha_masi=alpha_masi,
            alpha_masi_interval=masi_interval,
            between=tuple(_compare_pair(pair, drawn, sets) for pair in sorted(self._pairs)),
            units_by_all=int(by_all.find_column("n")[0]),
            fleiss=value,
            fleiss_interval=span,
        )


def _fleiss(drawn: ResampledSums, totals: Floats) -> Floats:
    shares = divide(totals, np.broadcast_to(totals.sum(axis=1, keepdims=True), totals.shape))
    chance = (shares**2).sum(axis=1)
    alike = divide(drawn.find_column("alike"), drawn.find_column("n"), np.nan)
    return correct_for_chance(alike, chance)


def _compare_pair(pair: tuple[str, str], drawn: ResampledSums, sets: Sequence[LabelSetOf]) -> Kappa:
    n = drawn.find_column((pair, "n"))
    first, second = (drawn.find_columns([(pair, name, one) for one in sets]) for name in pair)
    alike = drawn.find_column((pair, "alike"))
    kappa, span = _summarize_resamples(kappas(alike, first, second), drawn.clusters)
    return Kappa(pair, int(n[0]), float(alike[0] / n[0]), kappa, span)


def _summarize_resamples(values: Floats, clusters: int) -> tuple[float | None, Span | None]:
    """Return the observed value and its interval."""
    if np.isnan(values[0]):
        return None, None
    return round(float(values[0]), 12), interval(values[1:], clusters) if len(values) > 1 else None
