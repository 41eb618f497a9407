"""Results of rollouts: means with their standard errors, and labels that rest on them."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from edgen.core.pair import JudgeDirected, Pair, RolloutSignal
from edgen.preferences.labels import LabelRules, label_scenario
from edgen.preferences.rollout_signals import make_signal_by_judge, make_signal_by_probability
from edgen.preferences.rollouts import DivergingTurn, read_rollout
from tests.preferences.values import oracle, pair

RULES = {by: LabelRules(by=by, rollouts=True) for by in ("oracle", "probability")}  # type: ignore[arg-type]


def resting(found: RolloutSignal, a: int = 0, b: int = 1, prefix: int = 4, **more: Any) -> Pair:
    """Return a pair whose rollouts favour one side, and whose whole conversations favour the other."""
    made = pair(a, b, oracle("b", "b"), said=(0.1, 0.9), **more)
    signals = msgspec.structs.replace(made.signals, rollouts=(found,))
    return msgspec.structs.replace(made, signals=signals, prefix_turns=prefix)


def test_stored_digests_name_a_response_as_before() -> None:
    """Another text would make new calls for the rollouts of existing runs, or replay them."""
    assert DivergingTurn("quick-r0", 3).render_for_digest() == "PartingTurn(name='quick-r0', turns=3)"


class TestMeans:
    def test_probabilities_give_the_difference_of_their_means_and_its_error(self) -> None:
        found = make_signal_by_probability([0.2, 0.4, 0.6], [0.1, 0.1, 0.4], 3, simulated=False)
        assert (found.a, found.b) == pytest.approx((0.4, 0.2))
        assert found.p == pytest.approx(0.6)
        assert found.se == pytest.approx(math.sqrt(0.04 / 3 + 0.03 / 3) / 2)
        assert (found.counted, found.tie, found.abstain) == (3, False, False)

    def test_half_of_them_are_too_few(self) -> None:
        assert make_signal_by_probability([0.2, 0.4], [0.1, 0.1, 0.4, 0.2], 4, simulated=False).abstain
        three = make_signal_by_probability([0.2, 0.4, 0.3], [0.1, 0.1, 0.4, 0.2], 4, simulated=False)
        assert (three.abstain, three.counted) == (False, 3)
        assert make_signal_by_judge([oracle("a", "a")], 2, simulated=False).abstain
        assert make_signal_by_judge([], 1, simulated=False).p is None

    def test_of_one_nobody_knows_the_error(self) -> None:
        assert make_signal_by_probability([0.2], [0.4], 1, simulated=False).se is None
        assert make_signal_by_judge([oracle("a", "a")], 1, simulated=False).se is None

    def test_a_judges_preferences_are_averaged_and_disagreement_counts_half(self) -> None:
        said = [oracle("a", "a"), oracle("a", "b"), oracle("a", "a"), None]
        found = make_signal_by_judge(said, 4, simulated=False)
        assert (found.p, found.a, found.b) == (0.75, 0.75, 0.25)
        assert found.se == pytest.approx(math.sqrt((2 * 0.0625 + 2 * 0.0625) / 3 / 4))
        assert (found.verdicts, found.judge, found.model) == (6, "0123456789abcdef", "judge-1")
        assert make_signal_by_judge([oracle("a", "a"), oracle("b", "b")], 2, simulated=False).tie

    def test_what_is_simulated_is_marked(self) -> None:
        assert make_signal_by_probability([0.2], [0.4], 1, simulated=True).simulated
        assert make_signal_by_judge([oracle("a", "a")], 1, simulated=True).simulated


class TestLabels:
    def test_the_mean_of_probabilities_makes_the_label(self) -> None:
        found = make_signal_by_probability([0.8, 0.6], [0.2, 0.4], 2, simulated=False)
        (labelled,) = label_scenario([resting(found)], RULES["probability"])
        assert labelled.label is not None
        assert (labelled.label.chosen, labelled.label.k, labelled.label.judge) == ("a", 2, None)
        assert (labelled.label.p, labelled.label.margin) == pytest.approx((0.7, 0.4))
        assert labelled.label.se == found.se
        assert labelled.a.strength is None

    def test_more_rollouts_that_agree_make_a_judges_label_stronger(self) -> None:
        few, many = (make_signal_by_judge([oracle("a", "a")] * k, k, simulated=False) for k in (1, 8))
        labels = [label_scenario([resting(found)], RULES["oracle"])[0].label for found in (few, many)]
        assert labels[0] is not None
        assert labels[1] is not None
        assert labels[0].chosen == labels[1].chosen == "a"
        assert 0 < labels[0].margin < labels[1].margin < 1

    def test_strengths_are_of_responses_behind_the_same_turns(self) -> None:
        """A conversation that parts from two others at two turns has a strength at each."""
        wins = make_signal_by_judge([oracle("a", "a")] * 2, 2, simulated=False)
        loses = make_signal_by_judge([oracle("b", "b")] * 2, 2, simulated=False)
        first, second = label_scenario(
            [resting(wins, 0, 1, prefix=2), resting(loses, 0, 2, prefix=6)], RULES["oracle"]
        )
        assert first.a.strength is not None
        assert second.a.strength is not None
        assert first.a.strength.value > 0 > second.a.strength.value
        assert first.label is not None
        assert second.label is not None

    def test_a_margin_that_is_asked_for_leaves_out_what_cannot_be_told_apart(self) -> None:
        found = make_signal_by_probability([0.5, 0.52], [0.5, 0.5], 2, simulated=False)
        rules = msgspec.structs.replace(RULES["probability"], min_margin=0.1)
        (left,) = label_scenario([resting(found)], rules)
        assert left.left_out == "margin"

    def test_without_rollouts_it_was_not_judged(self) -> None:
        (left,) = label_scenario([pair(0, 1, oracle("a", "a"))], RULES["oracle"])
        assert left.left_out == "not_judged"

    def test_text_that_speaks_to_a_judge_counts_here_too(self) -> None:
        found = make_signal_by_judge([oracle("a", "a")], 1, simulated=False)
        (left,) = label_scenario(
            [resting(found, directed=JudgeDirected(a="Note to the judge:", b=None))], RULES["oracle"]
        )
        assert (left.left_out, left.a.strength) == ("judge_directed", None)


def test_a_rollout_is_named_by_conversation_turns_and_number() -> None:
    for name in ("r1", "hot.r12"):
        response = DivergingTurn(name, 7)
        assert read_rollout(response.name_rollout(12)) == (response, 12)
