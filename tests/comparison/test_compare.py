"""Arms in memory compared: what the numbers must be, and what is not compared."""

from __future__ import annotations

import random
from typing import Any

import pytest

from edgen.comparison.arms import Arm, Outcome
from edgen.comparison.compare import compared
from edgen.comparison.model import Comparison, Difference, Metric
from edgen.comparison.render import rendered
from edgen.errors import ShortError
from tests.comparison.values import accepted, arm, refused


def compare(*arms: Arm, **more: Any) -> Comparison:
    return compared("t", arms, **{"resamples": 999, **more})


def metric(comparison: Comparison, name: str) -> Metric:
    return next(m for m in comparison.metrics if m.name == name)


def difference(comparison: Comparison, name: str) -> Difference:
    (found,) = metric(comparison, name).differences
    return found


def talk(seed: int, words: int = 12) -> tuple[str, str, str]:
    """Three turns of made-up words."""
    draw = random.Random(seed)
    return tuple(" ".join(f"w{draw.randrange(400)}" for _ in range(words)) for _ in range(3))  # type: ignore[return-value]


def test_values_and_differences_are_ratios_of_sums() -> None:
    a = arm("a", [accepted(0, "one two", "three"), accepted(1, "one", "two"), refused(2)])
    b = arm("b", [accepted(0, "one two three four", "five"), refused(1), accepted(2, "one", "two")])
    found = compare(a, b)
    assert metric(found, "accepted").arms["a"].value == pytest.approx(2 / 3, rel=1e-5)
    assert metric(found, "teacher_words").arms["a"].value == 1.5
    assert metric(found, "tokens").arms["b"].value == 150
    # Only scenario 0 was accepted in both.
    words = difference(found, "teacher_words")
    assert (words.value, words.n, words.changed, words.low, words.p) == (2.0, 1, 1, None, None)
    assert difference(found, "accepted").value == 0
    assert (found.baseline, found.shared) == ("a", 3)
    assert [facts.rejected for facts in found.arms] == [{"refused": 1}, {"refused": 1}]


def test_arms_that_are_the_same_differ_in_nothing() -> None:
    outcomes: list[Outcome] = [
        refused(i) if i % 9 == 0 else accepted(i, *talk(i), probability=0.25, ended_by="Teacher")
        for i in range(200)
    ]
    found = compare(arm("a", outcomes), arm("b", outcomes))
    for each in found.metrics:
        (same,) = each.differences
        assert (same.value, same.low, same.high, same.p, same.changed) == (0, 0, 0, 1, 0), each.name
    assert any("say the same to the letter in 177 of 177" in caveat for caveat in found.caveats)


def test_a_difference_that_is_there_is_found_and_holds_after_adjustment() -> None:
    draw = random.Random(5)
    a = arm("a", [refused(i) if draw.random() < 0.02 else accepted(i) for i in range(1000)])
    b = arm("b", [refused(i) if draw.random() < 0.08 else accepted(i) for i in range(1000)])
    lost = difference(compare(a, b, resamples=9999), "rejected_refused")
    assert lost.low is not None
    assert lost.p_holm is not None
    assert lost.low > 0
    assert lost.p_holm < 0.01


def test_the_same_arms_and_seed_give_the_same_comparison() -> None:
    arms = [arm(k, [accepted(i, *talk(i + 1000 * ord(k))) for i in range(120)]) for k in "ab"]
    assert compare(*arms, seed=3) == compare(*arms, seed=3)
    other = compare(*arms, seed=4)
    assert difference(other, "distinct_2").low != difference(compare(*arms, seed=3), "distinct_2").low


def test_a_rare_event_is_left_to_the_test() -> None:
    """Five scenarios of 1,000 lost, all in one arm: the percentile interval excludes zero, the signs do not."""
    a = arm("a", [accepted(i) for i in range(1000)])
    b = arm("b", [refused(i) if i < 5 else accepted(i) for i in range(1000)])
    found = compare(a, b, resamples=9999)
    lost = difference(found, "accepted")
    assert lost.high is not None
    assert lost.p is not None
    assert (lost.changed, lost.high < 0) == (5, True)
    assert lost.p == pytest.approx(2 / 32, abs=0.01)
    lines = list(rendered(found))
    assert any("only 5 scenarios differ: the interval is too short, go by p = 0.06" in line for line in lines)


def test_all_differences_of_all_arms_are_adjusted_together() -> None:
    arms = [arm(k, [accepted(i, *talk(i + 1000 * ord(k))) for i in range(60)]) for k in "abcd"]
    found = compare(*arms)
    tested = [d for m in found.metrics for d in m.differences if d.p is not None]
    assert {d.arm for d in tested} == {"b", "c", "d"}
    least = min(tested, key=lambda d: d.p or 0)
    assert least.p_holm == pytest.approx(min(1, (least.p or 0) * len(tested)), rel=1e-4)
    assert any(f"{len(tested)} differences are tested" in caveat for caveat in found.caveats)


def test_longer_texts_are_not_punished() -> None:
    """One arm says just what the other says, and then more of the same kind."""
    short = [accepted(i, *talk(i)) for i in range(200)]
    long = [accepted(i, *talk(i), *talk(i + 500)) for i in range(200)]
    found = compare(arm("short", short), arm("long", long))
    for name in ("distinct_1", "distinct_2", "distinct_3", "self_bleu"):
        assert difference(found, name).value == 0, name
        assert metric(found, name).arms["long"].n == 10


def test_an_arm_that_repeats_itself_is_less_distinct() -> None:
    varied = arm("varied", [accepted(i, *talk(i)) for i in range(200)])
    dull = arm("dull", [accepted(i, *talk(i % 3)) for i in range(200)])
    found = compare(varied, dull)
    for name, sign in (("distinct_2", -1), ("self_bleu", 1), ("near_duplicates", 1)):
        apart = difference(found, name)
        assert apart.low is not None
        assert apart.high is not None
        assert apart.low * sign > 0 < apart.high * sign, name
    assert difference(found, "near_duplicates").value == 1


def test_few_blocks_have_no_interval() -> None:
    arms = [arm(k, [accepted(i, *talk(i + 1000 * ord(k))) for i in range(60)]) for k in "ab"]
    found = compare(*arms)
    assert difference(found, "self_bleu").value is not None
    assert difference(found, "self_bleu").low is None
    assert any("3 blocks of 20 conversations are too few" in caveat for caveat in found.caveats)


def test_a_price_that_is_missing_is_said() -> None:
    priced = [accepted(i, cost=0.01) for i in range(30)]
    found = compare(arm("a", priced), arm("b", [accepted(i) for i in range(30)]))
    assert metric(found, "cost").arms["a"].value == 0.01
    assert metric(found, "cost").arms["b"].value is None
    assert difference(found, "cost").value is None
    assert [(n.what, n.arms) for n in found.not_compared if n.what == "cost"] == [("cost", ("b",))]
    assert [facts.cost_usd for facts in found.arms] == [pytest.approx(0.3), None]


def test_probabilities_asked_for_in_another_way_are_not_compared() -> None:
    outcomes = [accepted(i, probability=i / 30) for i in range(30)]
    found = compare(arm("a", outcomes, asking="oneshot"), arm("b", outcomes, asking="selfplay, student"))
    assert metric(found, "probability").arms["b"].value is not None
    assert difference(found, "probability").value is None
    assert "probability" in [n.what for n in found.not_compared]


def test_an_arm_without_accepted_conversations() -> None:
    found = compare(arm("a", [accepted(i) for i in range(30)]), arm("b", [refused(i) for i in range(30)]))
    assert difference(found, "accepted").value == -1
    assert difference(found, "turns").value is None
    assert metric(found, "tokens").arms["b"].value is None
    assert any(n.arms == ("b",) and "none was accepted" in n.why for n in found.not_compared)
    assert all(isinstance(line, str) for line in rendered(found))


def test_what_is_pending_is_left_out_and_said() -> None:
    a = arm("a", [accepted(i) for i in range(40)])
    b = arm("b", [accepted(i) for i in range(0, 40, 2)], scenarios=40, pending=20)
    found = compare(a, b)
    assert (found.shared, difference(found, "accepted").n) == (20, 20)
    assert any(caveat.startswith("b: 20 planned conversations") for caveat in found.caveats)


def test_runs_of_other_lengths_share_their_first_scenarios() -> None:
    a = arm("a", [accepted(i, *talk(i)) for i in range(100)])
    b = arm("b", [accepted(i, *talk(i)) for i in range(140)])
    found = compare(a, b)
    assert found.shared == 100
    assert metric(found, "accepted").arms["b"].n == 140
    assert difference(found, "turns").n == 100
    assert any("not planned alike" in caveat for caveat in found.caveats)


def test_arms_with_other_scenarios_are_independent_samples() -> None:
    draw = random.Random(2)
    a = arm("a", [accepted(i, *talk(i)) for i in range(300)])
    b = arm("b", [accepted(i, *talk(draw.randrange(10**6))) for i in range(250)], draws="other")
    c = arm("c", [refused(i) if i % 4 else accepted(i) for i in range(300)], draws="other")
    found = compare(a, b, c)
    turns, lost = metric(found, "student_words").differences[0], metric(found, "accepted").differences[1]
    assert turns.p is not None
    assert turns.p > 0.01
    assert lost.high is not None
    assert lost.high < -0.6
    assert [facts.paired for facts in found.arms] == [True, False, False]
    assert sum("independent samples" in caveat for caveat in found.caveats) == 2


def test_who_made_it_and_who_paid_for_it_is_said() -> None:
    outcomes = [accepted(i, *talk(i)) for i in range(10)]
    found = compare(
        arm("real", outcomes),
        arm("made", outcomes, simulated=True, branching=True),
        arm("old", outcomes, earlier=True),
    )
    for said in (
        "a simulator had a part in made",
        "In made conversations branch",
        "The ledger of old holds answers",
    ):
        assert any(said in caveat for caveat in found.caveats), said


def test_nothing_settled_is_short() -> None:
    with pytest.raises(ShortError, match="nothing is settled"):
        compare(arm("a", [accepted(0)]), arm("b", [], scenarios=1))
    with pytest.raises(ShortError, match="no scenario is settled in all"):
        compare(arm("a", [accepted(0)], scenarios=2), arm("b", [accepted(1)]))


@pytest.mark.parametrize("label", ["x" * 90, "学生先生" * 8, "a\x1b[31m"])
def test_any_label_and_any_text_is_shown(label: str) -> None:
    outcomes = [accepted(i, "\x00", "", "🙂" * 50) for i in range(25)]
    found = compare(arm(label, outcomes), arm("b", [accepted(i, "") for i in range(25)]))
    assert any("near-duplicates" in line for line in rendered(found))


def test_a_line_fits_eighty_columns() -> None:
    arms = [
        arm(k, [accepted(i, *talk(i + 1000 * ord(k)), cost=1e-4 * (1 + ord(k) * i % 7)) for i in range(120)])
        for k in "ab"
    ]
    assert max(map(len, rendered(compare(*arms)))) <= 80
