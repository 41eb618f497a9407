"""How much there is: records by split and by where their end marker stands, debris, repairs.

Debris is counted in records, by the kinds of `edgen validate`; a record with several kinds counts for each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from edgen.quality.model import Sample, Words
from edgen.quality.results import Overview

MARKERS = ("suffix", "own_turn", "inside", "absent")


class OverviewMeasure:
    """`unread`: records that are none, by why; it is looked at when all is told."""

    def __init__(self, unread: Mapping[str, int] | None = None) -> None:
        self._unread = unread if unread is not None else {}
        self._counts: dict[str, Counter[str]] = {
            name: Counter() for name in ("splits", "markers", "ended_by", "defects", "repairs")
        }
        self._records = self._simulated = 0

    def add(self, sample: Sample, words: Words) -> None:  # noqa: ARG002 - as every measure
        self._records += 1
        self._simulated += sample.simulated
        counts = self._counts
        counts["splits"][sample.split or "none"] += 1
        counts["markers"][sample.marker] += 1
        counts["ended_by"][sample.ended_by or "nobody"] += 1
        counts["defects"].update(set(sample.defects))
        counts["repairs"].update(set(sample.repairs))

    def result(self) -> Overview:
        counts = self._counts
        return Overview(
            records=self._records,
            splits={name: counts["splits"][name] for name in ("train", "test", "none")},
            simulated=self._simulated,
            markers={name: counts["markers"][name] for name in MARKERS},
            ended_by={name: counts["ended_by"][name] for name in ("Teacher", "Student", "nobody")},
            defects=_sorted(counts["defects"]),
            repairs=_sorted(counts["repairs"]),
            unread=_sorted(self._unread),
        )


def _sorted(counts: Mapping[str, int]) -> dict[str, int]:
    """The largest first, equal ones by name."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
