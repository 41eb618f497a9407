"""Accuracy of each credit method in finding the better of two turns: figures on planted truth, and a note on
them.

The figures are only in credit_figures.json. `python -m bench credit` measures them on the simulator's planted
worths (`edgen.simulator.planted`) and rewrites the file; cards and bench/README.md quote it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

import msgspec

from edgen.export.evidence import Evidence, Level

FILE = Path(__file__).with_name("credit_figures.json")
ALL, CUT = "all", "min_turns_left 1"  # the cases in a note


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """Labels of one kind of pairs, by the number of turns after they part. `right`: the share whose preferred
    turn is truly better, with a 95% interval that allows for correlated pairs of a scenario; `alike`: how
    many of the `n` have no better one, and so cannot be right."""

    where: str
    n: int
    right: float
    low: float
    high: float
    alike: int


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One credit method: its source `by`, `k` rollouts of each response (None: none), `calls` per label."""

    credit: Literal["whole", "response", "rollouts"]
    by: Literal["oracle", "probability"]
    k: int | None
    calls: float
    cases: tuple[Case, ...]

    @property
    def name(self) -> str:
        """The method's name in a table."""
        by = "judge" if self.by == "oracle" else "probability"
        return f"{self.credit}, by {by}" + ("" if self.k is None else f", k = {self.k}")

    def case(self, where: str) -> Case:
        """Return the case of that name."""
        return next(case for case in self.cases if case.where == where)


class CreditFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one measurement: its numbers of conversations and scenarios, with worths planted from
    `planted`."""

    date: str
    edgen: str
    planted: int
    scenarios: int
    conversations: int
    figures: tuple[Figure, ...]


@functools.cache
def read_figures() -> CreditFigures:
    """Return the shipped figures."""
    return msgspec.json.decode(FILE.read_bytes(), type=CreditFigures)


def table(figures: CreditFigures) -> Iterator[str]:
    """Yield all figures as a table in Markdown: one row per method, one column per case."""
    cases = [case.where for case in figures.figures[0].cases]
    yield f"| credit | calls a label | {' | '.join(cases)} |"
    yield "|---" * (len(cases) + 2) + "|"
    for figure in figures.figures:
        shares = " | ".join(_describe(figure.case(where)) for where in cases)
        yield f"| {figure.name} | {figure.calls:.1f} | {shares} |"


def _describe(case: Case) -> str:
    alike = f", {case.alike} alike" if case.alike else ""
    return f"{_share(case)} (n {case.n}{alike})"


def _share(case: Case) -> str:
    return f"{case.right:.0%} ({case.low:.0%} to {case.high:.0%})"


def credit_notes(level: Level | None, evidence: Iterable[Evidence]) -> Iterator[str]:
    """Yield the card's notes on the credit of rows by turn, one line per method; empty if no row has a label
    by a judge or a probability."""
    if level != "turn" or not any(one.by in ("oracle", "probability") for one in evidence):
        return
    known = read_figures()
    yield (
        "A label of one turn is right as far as what it rests on tells the turn from the others (`edgen pairs --credit`). "
        f"On planted truth, {known.scenarios} simulated scenarios in which each turn's worth is known ({known.date}), the "
        "preferred turn truly was the better one of so many labelled pairs, with 95% intervals. That compares the ways; "
        "how right the labels of this data are it does not say:"
    )
    for figure in known.figures:
        every, cut = figure.case(ALL), figure.case(CUT)
        yield (
            f"{figure.name}: {_share(every)}; {_share(cut)} with --min-turns-left 1; {figure.calls:.1f} calls a label"
        )
