"""The policy matrix: a judge's mean preference for the row's conversations, in both orders."""

from __future__ import annotations

from statistics import fmean, stdev
from typing import Any

import msgspec
import pytest

from edgen.core.pair import OracleSignal, Order, Pair, ProbabilitySignal, Side, Signals, Verdict
from edgen.preferences.bias import make_bias_report
from edgen.preferences.policies import PolicyCounts, describe_policies
from edgen.preferences.render import render

NONE = ProbabilitySignal(a=None, b=None, p=None, tie=False, abstain=True)


def signal(ab: float | None, ba: float | None, judge: str = "j") -> OracleSignal:
    p = None if ab is None or ba is None else (ab + ba) / 2
    orders: tuple[Order, Order] = ("ab", "ba")
    verdicts = tuple(Verdict(order=order, vote=0, choice=None) for order in orders)
    return OracleSignal(
        judge=judge, model="m", compare="conversation", verdicts=verdicts, wins_ab=ab, wins_ba=ba, p=p,
        tie=p == 0.5, abstain=p is None,
    )  # fmt: skip


def pair(
    scenario: int, a: tuple[str, int], b: tuple[str, int], *said: OracleSignal, left_out: str | None = None
) -> Pair:
    sides = [Side(id=f"{arm}-{scenario}-r{number}", replicate=number, arm=arm) for arm, number in (a, b)]
    return Pair(
        id=f"t-{scenario}-{a}-{b}", scenario=scenario, split="train", origin="arms", a=sides[0], b=sides[1],
        prefix_turns=0, differs_at=None, texts="", signals=Signals(probability=NONE, oracle=said), label=None,
        left_out=left_out, provenance={"simulated": False},
    )  # fmt: skip


def matrix(*pairs: Pair, order: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    counts = PolicyCounts()
    for one in pairs:
        counts.add(one)
    found: list[dict[str, Any]] = msgspec.to_builtins(counts.report(order))
    return found


def cells(found: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(cell["row"], cell["column"]): cell for cell in found[0]["cells"]}


SOME = [
    pair(0, ("x", 0), ("y", 0), signal(1.0, 1.0)),
    pair(0, ("x", 1), ("y", 1), signal(1.0, 0.0)),
    pair(1, ("x", 0), ("y", 1), signal(0.0, 0.0)),
    pair(1, ("x", 1), ("y", 0), signal(1.0, 0.5)),
]


def test_the_row_beats_the_column_in_so_many_and_the_other_way_round_in_the_rest() -> None:
    found = cells(matrix(*SOME))
    one, other = found["x", "y"], found["y", "x"]
    assert one["preference"]["value"] == pytest.approx(fmean([1, 0.5, 0, 0.75]))
    assert one["preference"]["value"] + other["preference"]["value"] == pytest.approx(1)
    assert one["preference"]["low"] == pytest.approx(1 - other["preference"]["high"])
    assert (one["preference"]["n"], one["preference"]["scenarios"]) == (4, 2)
    assert (one["ties"], other["ties"]) == (1, 1)


def test_both_orders_are_told() -> None:
    found = cells(matrix(*SOME))
    assert found["x", "y"]["shown_first"]["value"] == pytest.approx(fmean([1, 1, 0, 1]))
    assert found["x", "y"]["shown_second"]["value"] == pytest.approx(fmean([1, 0, 0, 0.5]))
    # y is shown first where x is second
    assert found["y", "x"]["shown_first"]["value"] == pytest.approx(1 - fmean([1, 0, 0, 0.5]))
    assert found["y", "x"]["shown_second"]["value"] == pytest.approx(1 - fmean([1, 1, 0, 1]))


def test_sd_is_over_the_rows_replicates() -> None:
    found = cells(matrix(*SOME))
    assert found["x", "y"]["sd"] == pytest.approx(stdev([fmean([1, 0]), fmean([0.5, 0.75])]))
    assert found["y", "x"]["sd"] == pytest.approx(stdev([fmean([0, 0.25]), fmean([0.5, 1])]))
    assert cells(matrix(SOME[0]))["x", "y"]["sd"] is None


def test_equal_conversations_are_ties_and_what_speaks_to_a_judge_counts_for_nobody() -> None:
    more = [
        pair(2, ("x", 0), ("y", 0), left_out="identical"),
        pair(3, ("x", 0), ("y", 0), signal(1.0, 1.0), left_out="judge_directed"),
        pair(4, ("x", 0), ("y", 0), signal(None, 1.0)),
        pair(5, ("x", 0), ("x", 1), signal(1.0, 1.0)),
    ]
    (found,) = matrix(SOME[0], *more)
    one = cells([found])["x", "y"]
    assert (one["preference"]["n"], one["preference"]["value"]) == (2, 0.75)
    assert found["left_out"] == {"abstained": 1, "judge_directed": 1}


def test_each_judge_has_a_matrix_and_the_arms_have_the_runs_order() -> None:
    pairs = [pair(0, ("a", 0), ("c", 0), signal(1.0, 1.0), signal(0.0, 0.0, "k"))]
    pairs.append(pair(0, ("a", 0), ("b", 0), signal(1.0, 1.0)))
    one, other = matrix(*pairs, order=("a", "b", "c"))
    assert (one["arms"], one["judge"], other["judge"]) == (["a", "b", "c"], "j", "k")
    assert [(cell["row"], cell["column"]) for cell in one["cells"]] == [
        ("a", "b"), ("a", "c"), ("b", "a"), ("c", "a"),
    ]  # fmt: skip
    assert {(cell["row"], cell["column"]) for cell in other["cells"]} == {("a", "c"), ("c", "a")}


def test_without_arms_there_is_none() -> None:
    alone = pair(0, ("", 0), ("", 1), signal(1.0, 1.0))
    assert matrix(alone) == []
    assert "policies" not in make_bias_report([(alone, {})])


def test_the_report_prints_it() -> None:
    report = make_bias_report([(one, {}) for one in SOME], ("x", "y"))
    text = " ".join(" ".join(render(report)).split())
    assert "Policy matrix by judge j (m, comparing by conversation)" in text
    assert "x over y: 56.2%" in text
    assert "y over x: 43.8%" in text
    three = [pair(0, ("x", 0), ("z", 0), signal(1.0, 1.0)), *SOME]
    grid = [line.split() for line in describe_policies(matrix(*three, order=("x", "y", "z")))]
    assert ["x", "-", "56.2%", "100.0%"] in grid
