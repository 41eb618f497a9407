"""Comparison of arms in memory: the expected numbers, and what is left out."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from edgen.core.errors import ShortError
from edgen.evaluation.comparison.arms import (
    Arm,
    ArmSums,
    SettledConversation,
    count_near_duplicates,
    number_groups,
)
from edgen.evaluation.comparison.compare import compare_arms
from edgen.evaluation.comparison.render import render_comparison
from edgen.evaluation.comparison.result import ComparisonResult, Difference, Metric
from tests.evaluation.comparison.values import accepted, arm, refused


def compare(*arms: Arm, **more: Any) -> ComparisonResult:
    return compare_arms("t", arms, **{"resamples": 999, **more})


def metric(comparison: ComparisonResult, name: str) -> Metric:
    return next(m for m in comparison.metrics if m.name == name)


def difference(comparison: ComparisonResult, name: str) -> Difference:
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
    # Only scenario 0 was accepted in both arms.
    words = difference(found, "teacher_words")
    assert (words.value, words.n, words.changed, words.low, words.p) == (2.0, 1, 1, None, None)
    assert difference(found, "accepted").value == 0
    assert (found.baseline, found.shared) == ("a", 3)
    assert [facts.rejected for facts in found.arms] == [{"refused": 1}, {"refused": 1}]


def test_arms_that_are_the_same_differ_in_nothing() -> None:
    outcomes: list[SettledConversation] = [
        refused(i) if i % 9 == 0 else accepted(i, *talk(i), probability=0.25, ended_by="Teacher")
        for i in range(200)
    ]
    found = compare(arm("a", outcomes), arm("b", outcomes))
    for each in found.metrics:
        (same,) = each.differences
        assert (same.value, same.low, same.high, same.p, same.changed) == (0, 0, 0, 1, 0), each.name
    assert any("say exactly the same in 177 of 177" in caveat for caveat in found.caveats)


def test_a_difference_that_is_there_is_found_and_holds_after_adjustment() -> None:
    draw = random.Random(5)
    a = arm("a", [refused(i) if draw.random() < 0.02 else accepted(i) for i in range(1000)])
    b = arm("b", [refused(i) if draw.random() < 0.08 else accepted(i) for i in range(1000)])
    lost = difference(compare(a, b), "rejected_refused")
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
    """With five of 1,000 scenarios lost in one arm, the interval excludes zero and the sign test does not."""
    a = arm("a", [accepted(i) for i in range(1000)])
    b = arm("b", [refused(i) if i < 5 else accepted(i) for i in range(1000)])
    found = compare(a, b, resamples=2999)
    lost = difference(found, "accepted")
    assert lost.high is not None
    assert lost.p is not None
    assert (lost.changed, lost.high < 0) == (5, True)
    assert lost.p == pytest.approx(2 / 32, abs=0.01)
    lines = list(render_comparison(found))
    assert any("only 5 scenarios differ: the interval is too short, rely on p" in line for line in lines)


def test_all_differences_of_all_arms_are_adjusted_together() -> None:
    arms = [
        arm(
            k,
            [refused(i) if i == ord(k) % 7 else accepted(i, *talk(i, 9 + i * ord(k) % 5)) for i in range(60)],
        )
        for k in "abcd"
    ]
    found = compare(*arms)
    tested = [d for m in found.metrics for d in m.differences if d.p_holm is not None]
    assert {d.arm for d in tested} == {"b", "c", "d"}
    assert all(d.changed for d in tested)
    assert all(d.p == 1 for m in found.metrics for d in m.differences if d.p is not None and not d.changed)
    least = min(tested, key=lambda d: d.p or 0)
    # Accepted and the only reason of rejection are one test, with one p-value.
    kept, lost = (metric(found, name).differences for name in ("accepted", "rejected_refused"))
    assert [d.p_holm for d in kept] == [d.p_holm for d in lost]
    tests = len(tested) - sum(d.p_holm is not None for d in lost)
    assert 3 <= tests < len(tested)
    assert least.p_holm == pytest.approx(min(1, (least.p or 0) * tests), rel=1e-4)
    assert any(f"{tests} differences are tested" in caveat for caveat in found.caveats)


def test_the_more_is_tested_the_more_is_asked_of_each() -> None:
    """The correction grows with the number of tests; mirror images are not counted."""
    a = [accepted(i, cost=0.1) for i in range(40)]
    b = [refused(i, cost=0.1) if i < 6 else accepted(i, cost=0.1) for i in range(40)]
    found = difference(compare(arm("a", a), arm("b", b)), "rejected_refused")
    # Tested: accepted with its mirror image, and tokens and cost for each.
    assert found.p is not None
    assert found.p_holm == pytest.approx(3 * found.p, rel=1e-4)


def test_near_duplicates_count_by_the_groups_that_they_link() -> None:
    """Six near-duplicate pairs count as six signs, not twelve."""
    varied = arm("varied", [accepted(i, *talk(i)) for i in range(60)])
    paired = arm("paired", [accepted(i, *talk(i // 2 if i < 12 else 100 + i)) for i in range(60)])
    found = difference(compare(varied, paired, resamples=2999), "near_duplicates")
    assert (found.value, found.n, found.changed) == (0.2, 54, 6)
    assert found.p == pytest.approx(2 / 64, abs=0.008)


def test_near_duplicates_are_looked_for_among_as_many() -> None:
    """Of three scenarios twice, the first two once: the rest is neither counted nor compared."""
    outcomes = [
        accepted(i, *talk(7 if i < 2 and not r else 50 + 2 * i + r), replicate=r)
        for i in range(3)
        for r in range(2)
    ]
    table = ArmSums(arm("a", outcomes, replicates=2))
    count_near_duplicates(table, 2, 1)
    assert (table.find_total("compared"), table.find_total("near_duplicates"), table.linked) == (
        2,
        2,
        [(0, 1)],
    )
    one, *others, other, last = number_groups(5, [(0, 3), (3, 4)])
    assert one == other == last
    assert len({one, *others}) == 3


@pytest.mark.parametrize(("events", "said"), [(1, True), (9, True), (10, False)])
def test_few_events_are_said(events: int, said: bool) -> None:
    a = arm("a", [accepted(i) for i in range(100)])
    b = arm("b", [refused(i) if i < events else accepted(i) for i in range(100)])
    caveats = compare(a, b).caveats
    assert any(caveat.startswith("Where fewer than 10 scenarios") for caveat in caveats) == said


def test_one_event_against_one_is_few_however_many_scenarios_differ_in_their_number() -> None:
    """Every scenario adds a little to the difference where one arm accepts more."""
    full = [accepted(i, replicate=r, repairs=("x",) * (i == 5)) for i in range(100) for r in range(2)]
    half = [
        refused(i, 1) if r and i % 2 else accepted(i, replicate=r, repairs=("x",) * (i == 8 and not r))
        for i in range(100)
        for r in range(2)
    ]
    found = compare(*(arm(k, outcomes, replicates=2) for k, outcomes in (("full", full), ("half", half))))
    mended = difference(found, "repaired")
    assert mended.changed > 90
    assert (mended.events, mended.evidence) == (3, 3)
    assert mended.p is not None
    assert mended.p > 0.05
    assert any(caveat.startswith("Where fewer than 10 scenarios") for caveat in found.caveats)


def test_zeros_on_both_sides_differ_in_nothing_paired_or_not() -> None:
    outcomes = [accepted(i, *talk(i)) for i in range(40)]
    found = compare(
        arm("a", outcomes), arm("b", outcomes, draws="other"), arm("c", outcomes[:30], scenarios=40)
    )
    rows = [line for line in render_comparison(found) if line.startswith("  repaired  ") and "pp" in line]
    assert [row.split()[1:] for row in rows] == 2 * [["0", "pp", "none", "differs"]]


def test_a_difference_that_rounds_to_nothing_has_no_minus() -> None:
    found = compare(*(arm(k, [accepted(i, *talk(i)) for i in range(30)]) for k in "ab"))
    turns = metric(found, "turns")
    (none,) = turns.differences
    tiny = msgspec.structs.replace(none, value=-0.001, low=-0.9, high=0.9, p=0.9, changed=30)
    lines = list(
        render_comparison(
            msgspec.structs.replace(found, metrics=(msgspec.structs.replace(turns, differences=(tiny,)),))
        )
    )
    assert any("+0.00   [-0.90, +0.90]" in line for line in lines), lines


def test_differences_are_rounded_last() -> None:
    """With a hundred million tokens, and one more in each, the values are the same to six digits."""
    a, b = (arm(k, [accepted(i, tokens=10**8 + k_) for i in range(20)]) for k, k_ in (("a", 0), ("b", 1)))
    assert difference(compare(a, b), "tokens").value == 1


def test_each_arms_interval_is_printed() -> None:
    a = arm("a", [accepted(i, probability=(i % 5) / 4) for i in range(100)])
    b = arm("b", [refused(i) if i % 2 else accepted(i, probability=0.5) for i in range(100)])
    found = compare(a, b)
    lines = list(render_comparison(found))
    value = metric(found, "accepted").arms["b"]
    assert value.low is not None
    assert value.high is not None
    shown = f"50.0% [{100 * value.low:.1f}, {100 * value.high:.1f}]"
    assert any(line.startswith("  accepted") and line.endswith(shown) for line in lines), lines


def test_labels_that_are_long_get_a_letter_and_titles_a_line() -> None:
    repairs = ("probability_unclosed_bracket_of_the_list",)
    labels = "experiment_of_the_first_week.plain", "experiment_of_the_first_week.other"
    found = compare(*(arm(label, [accepted(i, repairs=repairs) for i in range(20)]) for label in labels))
    for width in (80, 120):
        lines = list(render_comparison(found, width))
        assert f"A is {labels[0]}" in lines
        assert "  repair: probability_unclosed_bracket_of_the_list" in lines
        assert max(map(len, lines)) <= width
    assert f"{labels[1]} against {labels[0]} (paired by scenario)" in lines
    assert lines[2:4] == [f"A is {labels[0]}", f"B is {labels[1]}"]


def test_longer_texts_are_not_punished() -> None:
    """One arm has the other's texts, followed by more of the same kind."""
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
    for name, sign in (("distinct_2", -1), ("self_bleu", 1)):
        apart = difference(found, name)
        assert apart.low is not None
        assert apart.high is not None
        assert apart.low * sign > 0 < apart.high * sign, name
    # Identical texts are no evidence by themselves: there are only three groups.
    alike = difference(found, "near_duplicates")
    assert (alike.value, alike.n, alike.low, alike.p) == (1, 3, None, None)
    assert any("they link the scenarios into 3 of the 5 groups" in caveat for caveat in found.caveats)


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
    assert any(n.arms == ("b",) and "no conversation was accepted" in n.why for n in found.not_compared)
    assert all(isinstance(line, str) for line in render_comparison(found))


def test_what_is_pending_is_left_out_and_said() -> None:
    a = arm("a", [accepted(i) for i in range(40)])
    b = arm("b", [accepted(i) for i in range(0, 40, 2)], scenarios=40, pending=20)
    found = compare(a, b)
    assert (found.shared, difference(found, "accepted").n) == (20, 20)
    assert "b: 20 planned conversations left out, not settled yet." in found.caveats
    one = compare(arm("a", [accepted(0)]), arm("b", [accepted(0)], scenarios=2, pending=1))
    assert "b: 1 planned conversation left out, not settled yet." in one.caveats
    assert next(render_comparison(one)).endswith(", 1 scenario shared")


def test_runs_of_other_lengths_share_their_first_scenarios() -> None:
    a = arm("a", [accepted(i, *talk(i)) for i in range(100)])
    b = arm("b", [accepted(i, *talk(i)) for i in range(140)])
    found = compare(a, b)
    assert found.shared == 100
    assert metric(found, "accepted").arms["b"].n == 140
    assert difference(found, "turns").n == 100
    assert any("have different plans" in caveat for caveat in found.caveats)


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
        "a simulator took part in made",
        "Conversations branch in made",
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
    assert any("near-duplicates" in line for line in render_comparison(found))


def test_a_line_fits_eighty_columns() -> None:
    arms = [
        arm(k, [accepted(i, *talk(i + 1000 * ord(k)), cost=1e-4 * (1 + ord(k) * i % 7)) for i in range(120)])
        for k in "ab"
    ]
    assert max(map(len, render_comparison(compare(*arms)))) <= 80
