"""The report on a judge's log probabilities, on pairs whose truth is planted."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import pytest

from edgen.core.pair import OracleSignal, Order, Pair, SideName, Verdict
from edgen.preferences.bias import make_bias_report
from edgen.preferences.labels import LabelRules, label_scenario
from edgen.preferences.render import render
from edgen.preferences.signals import make_logprob_signal, make_oracle_signal
from tests.preferences.values import JUDGE, OTHER_JUDGE, oracle, pair


def logit(p: float) -> float:
    return math.log(p / (1 - p))


def told(
    p: float, *, temper: float = 1.0, slot: float = 0.0, votes: int = 1, rng: Random | None = None
) -> OracleSignal:
    """Return the signal of a judge who prefers side a with probability p, shown first or second.

    `temper` multiplies its logits, `slot` is added to those of the text shown first. It answers the likelier
    side, or draws.
    """
    verdicts = []
    orders: tuple[tuple[Order, float], ...] = (("ab", slot), ("ba", -slot))
    for vote in range(votes):
        for order, shift in orders:
            share = 1 / (1 + math.exp(-temper * logit(p) - shift))
            drawn = (1 / (1 + math.exp(-logit(p) - shift)) > rng.random()) if rng else share > 0.5
            choice: SideName = "a" if drawn else "b"
            verdicts.append(Verdict(order=order, vote=vote, choice=choice, logprob_p=share))
    return make_oracle_signal(JUDGE, "judge-1", "conversation", verdicts)


def planted(count: int = 600, **how: Any) -> list[tuple[Pair, dict[Any, Any]]]:
    """Return pairs of which side a was understood in a share p, and a judge who knows p."""
    rng = Random(5)
    made = []
    for scenario in range(count):
        p = 1 / (1 + math.exp(-rng.gauss(0, 1.5)))
        won = rng.random() < p
        said = (0.9, 0.2) if won else (0.1, 0.3)
        one = pair(0, 1, told(p, **how), scenario=scenario, said=said, human="a" if won else "b")
        made += [(labelled, {}) for labelled in label_scenario([one], LabelRules(by="oracle"))]
    return made


def report(rows: Any) -> Any:
    (judge,) = make_bias_report(rows)["judges"]
    return judge["logprobs"]


def test_a_judge_that_is_as_sure_as_it_should_be() -> None:
    found = report(planted())
    assert [held["truth"] for held in found["against"]] == ["probability", "human"]
    for held in found["against"]:
        assert held["slope"]["low"] < 1 < held["slope"]["high"]
        assert held["slope"]["high"] - held["slope"]["low"] < 0.6
        errors = {name: held[name]["brier"]["value"] for name in ("logprobs", "verdicts", "strengths")}
        assert errors["logprobs"] < errors["strengths"] < errors["verdicts"]
        assert held["logprobs"]["expected_calibration_error"] < 0.06
        assert held["verdicts"]["expected_calibration_error"] > 0.15


@pytest.mark.parametrize(("temper", "slope"), [(3.0, 1 / 3), (0.5, 2.0)])
def test_the_slope_says_how_far_it_is_off(temper: float, slope: float) -> None:
    found = report(planted(temper=temper))
    assert found["against"][0]["slope"]["value"] == pytest.approx(slope, rel=0.25)


def test_what_the_slot_makes_a_tie_the_probabilities_decide() -> None:
    found = report(planted(slot=1.0))
    assert found["first_slot"]["value"] > 0.6
    assert found["ties"]["verdicts"] > 120
    assert found["ties"]["logprobs"] == 0
    decided = found["ties"]["decided"]["probability"]
    assert decided["low"] > 0.5
    assert found["agreement"]["value"] == 1
    assert found["against"][0]["n"] == 600


def test_votes_that_are_drawn_bear_it_out() -> None:
    found = report(planted(votes=4, rng=Random(3)))
    votes = found["against"][-1]
    assert (votes["truth"], votes["n"]) == ("votes", 600 * 8)
    assert votes["slope"]["low"] < 1 < votes["slope"]["high"]
    assert votes["logprobs"]["brier"]["value"] < votes["verdicts"]["brier"]["value"]
    assert "strengths" not in votes


def test_both_orders_weigh_the_same_and_one_alone_says_nothing() -> None:
    def verdict(order: Order, p: float | None) -> Verdict:
        return Verdict(order=order, vote=0, choice="a", logprob_p=p)

    signal: Any = make_logprob_signal([verdict("ab", 0.9), verdict("ab", 0.7), verdict("ba", 0.4)])
    assert (signal.p_ab, signal.p_ba, signal.p, signal.known) == (0.8, 0.4, 0.6, 3)
    signal = make_logprob_signal([verdict("ab", 0.9), verdict("ba", None)])
    assert (signal.p_ab, signal.p_ba, signal.p, signal.known) == (0.9, None, None, 1)


def test_reasons_are_counted_and_worded() -> None:
    verdicts = [
        Verdict(order="ab", vote=0, choice="a", logprob_p=0.8),
        Verdict(order="ba", vote=0, choice="a", logprob_p=None, logprob_gap="not_told"),
    ]
    one = make_oracle_signal(JUDGE, "judge-1", "conversation", verdicts)
    rows: list[Any] = [(pair(0, 1, one, scenario=i), {}) for i in range(3)]
    found = report(rows)
    assert (found["pairs"], found["known"], found["gaps"]) == (3, 0, {"not_told": 3})
    assert found["against"] == []
    text = "\n".join(render(make_bias_report(rows)))
    assert "3 not_told: the service returned no log probabilities" in text
    assert "As a forecast of" not in text


def test_judges_that_were_not_asked_have_no_such_part() -> None:
    rows: list[Any] = [
        (pair(0, 1, oracle("a", "a"), oracle("a", "b", OTHER_JUDGE), scenario=i), {}) for i in range(3)
    ]
    assert all("logprobs" not in judge for judge in make_bias_report(rows)["judges"])
    mixed: list[Any] = [*rows, (pair(0, 1, told(0.7), scenario=9, said=(0.9, 0.1)), {})]
    (judge, other) = make_bias_report(mixed)["judges"]
    assert (judge["logprobs"]["pairs"], judge["pairs"]) == (1, 4)
    assert "logprobs" not in other


def test_the_text_says_each_figure() -> None:
    text = "\n".join(render(make_bias_report(planted(200, slot=0.5, votes=2, rng=Random(1)))))
    for words in ("Soft preferences by log probabilities", "log probabilities  Brier 0.", "share of verdicts  Brier 0.",
                  "strengths          Brier 0.", "slope              ", "of the verdicts' ties go to"):  # fmt: skip
        assert words in text, words
