"""Sums by scenario, for bootstraps over whole scenarios, in bounded memory.

Each of the first MOST scenarios is its own cluster; a later scenario joins one of these, by hash. Clusters
may hold any number of scenarios (Cochran 1977, Sampling Techniques, chapter 9A); with MOST clusters,
intervals are hardly longer.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from edgen.core.digest import hash64
from edgen.stats.resampling import Floats, resample_sums

MOST = 500


class Clusters:
    """A mapping of scenarios to clusters, numbered from 0 in order of first appearance."""

    def __init__(self) -> None:
        self._known: dict[int, int] = {}

    def of(self, scenario: int) -> int:
        """Return the cluster of a scenario."""
        known = self._known.get(scenario)
        if known is None and len(self._known) < MOST:
            known = self._known[scenario] = len(self._known)
        return hash64(f"cluster/{scenario}") % MOST if known is None else known


class ClusterSums:
    """Sums in columns of any name, one row per cluster."""

    def __init__(self) -> None:
        self._columns: dict[Hashable, int] = {}
        self._rows: list[list[float]] = []  # one row per cluster, of varying length

    def add(self, cluster: int, column: Hashable, value: float = 1.0) -> None:
        """Add to a column of a cluster."""
        at = self._columns.setdefault(column, len(self._columns))
        while cluster >= len(self._rows):
            self._rows.append([])
        row = self._rows[cluster]
        if at >= len(row):
            row.extend([0.0] * (len(self._columns) - len(row)))
        row[at] += value

    def find_column(self, column: Hashable) -> Floats:
        """Return a column's sums (clusters); 0 if nothing was added."""
        at = self._columns.get(column)
        return np.array([0.0 if at is None or at >= len(row) else row[at] for row in self._rows])

    def draw(self) -> ResampledSums:
        """Return the totals over all clusters, and over seeded bootstraps of the clusters."""
        table = np.zeros((len(self._rows), len(self._columns)))
        for row, found in zip(table, self._rows, strict=True):
            row[: len(found)] = found
        return ResampledSums(resample_sums(table), self._columns, len(table))


class ResampledSums:
    """Sums of columns (1 + draws): first the observed one, then one per draw."""

    def __init__(self, sums: Floats, columns: dict[Hashable, int], clusters: int) -> None:
        self._sums = sums
        self._columns = columns
        self.clusters = clusters

    def find_column(self, column: Hashable) -> Floats:
        """Return one column (1 + draws)."""
        return self.find_columns([column])[:, 0]

    def find_columns(self, columns: Sequence[Hashable]) -> Floats:
        """Return several columns (1 + draws, columns); 0 if nothing was added."""
        found = np.zeros((len(self._sums), len(columns)))
        for place, column in enumerate(columns):
            if (at := self._columns.get(column)) is not None:
                found[:, place] = self._sums[:, at]
        return found
