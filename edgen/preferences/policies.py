"""The policy matrix: how often a judge prefers the conversations of one arm to those of another.

This is the metric of MTPO (Shani et al. 2024, arXiv 2405.14655). Two policies answer the same scenarios, and
the judge compares their conversations in both orders. A cell is the mean preference for the row's
conversations. A verdict counts as the share of its votes. Orders that disagree average to a tie, and two
equal conversations are a tie. Intervals are at 95%, with scenarios as clusters (`edgen.stats.intervals`).
`sd` is the standard deviation of the cell over the row's replicates, which have different seeds.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from statistics import stdev
from typing import Any

import edgen.stats.required  # noqa: F401 - first: without numpy, it names the extra that installs it

# isort: split
import numpy as np

from edgen.core.pair import OracleSignal, Pair
from edgen.core.text import format_interval
from edgen.stats.intervals import share

_TIE = 0.5
Between = tuple[str, str]  # two arms, side a's first


class _Column:
    """The preferences for one arm over another. Columns: scenario, both replicates, and side a's share: mean
    of both orders, shown first, shown second."""

    def __init__(self) -> None:
        self.places, self.shares = array("q"), array("d")

    def add(self, pair: Pair, p: float, ab: float, ba: float) -> None:
        self.places.extend((pair.scenario, pair.a.replicate, pair.b.replicate))
        self.shares.extend((p, ab, ba))

    def make_cell(self, row: str, column: str, *, reverse: bool) -> dict[str, Any]:
        """Return the cell of the matrix. `reverse`: the row is side b."""
        scenario, *replicates = np.array(self.places, dtype=np.int64).reshape(-1, 3).T
        p, ab, ba = np.array(self.shares).reshape(-1, 3).T
        first, second = ab, ba
        if reverse:  # in the order ba side b is shown first
            p, first, second = 1 - p, 1 - ba, 1 - ab
        own = replicates[1] if reverse else replicates[0]
        seeds = [float(p[own == one].mean()) for one in np.unique(own)]
        return {
            "row": row,
            "column": column,
            "preference": share(p, scenario),
            "shown_first": share(first, scenario),
            "shown_second": share(second, scenario),
            "ties": int(np.sum(p == _TIE)),
            "replicates": len(seeds),
            "sd": stdev(seeds) if len(seeds) > 1 else None,
        }


class _JudgeMatrix:
    """The preferences of one judge."""

    def __init__(self, signal: OracleSignal) -> None:
        self.about = {"judge": signal.judge, "model": signal.model, "compare": signal.compare}
        self.columns: dict[Between, _Column] = {}
        self.abstained = 0

    def add(self, between: Between, pair: Pair, *shares: float) -> None:
        self.columns.setdefault(between, _Column()).add(pair, *shares)


class PolicyCounts:
    """Counts of the pairs between arms, with a few numbers of each."""

    def __init__(self) -> None:
        self._judges: dict[str, _JudgeMatrix] = {}
        self._equal: list[tuple[Between, Pair]] = []
        self._arms: dict[str, None] = {}
        self._directed = 0

    def add(self, pair: Pair) -> None:
        """Count a pair if it is between arms."""
        a, b = pair.a.arm or "", pair.b.arm or ""
        if a == b:
            return
        self._arms.update(dict.fromkeys((a, b)))
        if pair.left_out == "judge_directed":  # such a text is evidence about itself, not about a policy
            self._directed += 1
        elif pair.left_out == "identical":
            self._equal.append(((a, b), pair))
        else:
            for signal in pair.signals.oracle:
                self._add(signal, (a, b), pair)

    def _add(self, signal: OracleSignal, between: Between, pair: Pair) -> None:
        judge = self._judges.setdefault(signal.judge, _JudgeMatrix(signal))
        if signal.p is None or signal.wins_ab is None or signal.wins_ba is None:
            judge.abstained += 1
        else:
            judge.add(between, pair, signal.p, signal.wins_ab, signal.wins_ba)

    def report(self, order: Sequence[str] = ()) -> list[dict[str, Any]]:
        """Return a matrix for each judge; none without pairs between arms. `order`: the order of the arms."""
        arms = [arm for arm in order if arm in self._arms]
        arms += [arm for arm in self._arms if arm not in arms]
        for judge in self._judges.values():
            for between, pair in self._equal:
                judge.add(between, pair, _TIE, _TIE, _TIE)
        return [
            {
                **judge.about,
                "arms": arms,
                "left_out": {"abstained": judge.abstained, "judge_directed": self._directed},
                "cells": [*_list_cells(judge, arms)],
            }
            for judge in self._judges.values()
        ]


def _list_cells(judge: _JudgeMatrix, arms: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the cells row by row, without pairs of arms that the judge did not compare."""
    for row in arms:
        for column in arms:
            for (a, b), found in judge.columns.items():
                if {a, b} == {row, column} and row != column:
                    yield found.make_cell(row, column, reverse=row == b)


def describe_policies(matrices: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield the matrices as lines of text."""
    for one in matrices:
        yield ""
        yield f"Policy matrix by judge {one['judge']} ({one['model']}, comparing by {one['compare']})"
        yield "  preference for the row over the column, the mean of both orders; 50% is no preference"
        yield from _render_grid(one["arms"], one["cells"])
        for cell in one["cells"]:
            yield f"  {cell['row']} over {cell['column']}: {_format_estimate(cell)}"
        left_out = one["left_out"]
        if any(left_out.values()):
            yield (
                f"  left out: {left_out['abstained']:,} that the judge abstained on, "
                f"{left_out['judge_directed']:,} with a text that speaks to a judge"
            )


def _render_grid(arms: Sequence[str], cells: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the matrix as a grid, if it fits a terminal."""
    wide = max(9, *(len(arm) + 2 for arm in arms)) if arms else 0
    if len(arms) < 3 or wide * (len(arms) + 1) > 76:
        return
    known = {(cell["row"], cell["column"]): cell["preference"]["value"] for cell in cells}
    yield f"  {'':{wide}}" + "".join(f"{arm:>{wide}}" for arm in arms)
    for row in arms:
        shown = (known.get((row, column)) for column in arms)
        yield f"  {row:{wide}}" + "".join(f"{'-' if p is None else f'{p:.1%}':>{wide}}" for p in shown)


def _format_estimate(cell: dict[str, Any]) -> str:
    one, first, second = cell["preference"], cell["shown_first"], cell["shown_second"]
    span = format_interval(one["low"], one["high"], "{:.1%}".format) or " (no interval from one scenario)"
    sd = "" if cell["sd"] is None else f", sd {cell['sd']:.3f} over {cell['replicates']} replicates"
    return (
        f"{one['value']:.1%}{span}{sd}; {first['value']:.1%} when shown first, {second['value']:.1%} when "
        f"shown second; {one['n']:,} pairs, {cell['ties']:,} ties"
    )
