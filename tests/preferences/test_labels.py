"""Every pair ends with a label that its source supports, or with the reason why it has none."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgen.core.pair import JudgeDirected, Pair
from edgen.preferences.labels import UNLABELLED, LabelRules, label_scenario
from tests.dose import dose
from tests.preferences.values import JUDGE, OTHER_JUDGE, oracle, pair


def one(given_pair: Pair, by: Any, **options: Any) -> Pair:
    (labelled,) = label_scenario([given_pair], LabelRules(by=by, **options))
    return labelled


def ends(pairs: list[Pair]) -> list[str | None]:
    return [p.left_out if p.label is None else p.label.chosen for p in pairs]


@pytest.mark.parametrize(
    ("ab", "ba", "end", "p"),
    [
        ("a", "a", "a", 1.0),
        ("b", "b", "b", 1.0),
        ("aaab", "aaaa", "a", 0.875),
        ("aa?", "aaa", "a", 1.0),
        ("a", "b", "tie", None),
        ("ab", "aa", "tie", None),
        ("a", "?", "abstained", None),
        ("a??", "aaa", "abstained", None),
    ],
)
def test_an_oracle_with_two_candidates(ab: str, ba: str, end: str, p: float | None) -> None:
    labelled = one(pair(0, 1, oracle(ab, ba, compare="response")), "oracle")
    assert ends([labelled]) == [end]
    if end == "abstained":
        assert labelled.a.strength is None
    else:
        assert labelled.a.strength is not None
        assert labelled.b.strength is not None
        assert labelled.a.strength.value == -labelled.b.strength.value
    if labelled.label is not None:
        label = labelled.label
        assert label.p == pytest.approx(p)
        assert (label.by, label.judge, label.compare) == ("oracle", JUDGE, "response")
        assert (labelled.a.strength.value > 0) == (label.chosen == "a")


def test_more_verdicts_make_margins_larger_and_intervals_narrower() -> None:
    for count in (2, 3, 4, 6):
        seen = []
        for votes in (1, 2, 4):
            signals = [
                pair(a, b, oracle("a" * votes, "a" * votes))
                for a, b in itertools.combinations(range(count), 2)
            ]
            labelled = label_scenario(signals, LabelRules(by="oracle"))
            margins = [p.label.margin for p in labelled if p.label is not None]
            widths = [p.a.strength.high - p.a.strength.low for p in labelled if p.a.strength is not None]
            assert len(margins) == len(widths) == len(labelled)
            seen.append((min(margins), -max(widths)))
            assert max(margins) < 1
        assert seen == sorted(seen)
        assert len(set(seen)) == 3


def test_margins_mean_the_same_however_many_candidates_there_are() -> None:
    two = label_scenario([pair(0, 1, oracle("a", "a"))], LabelRules(by="oracle"))
    three = label_scenario(
        [pair(0, 1, oracle("a", "a")), pair(1, 2, oracle("a", "b"))], LabelRules(by="oracle")
    )
    assert two[0].label is not None
    assert three[0].label is not None
    # the tie with a third says nothing about the first two except through the prior
    assert two[0].label.margin == pytest.approx(0.8574, abs=1e-4)
    assert three[0].label.margin == pytest.approx(two[0].label.margin, abs=0.03)


@pytest.mark.parametrize(
    ("said", "end"),
    [
        ((0.9, 0.4), "a"),
        ((0.4, 0.9), "b"),
        ((0.5, 0.5), "tie"),
        ((None, 0.5), "abstained"),
        ((0.5, 0.45), "margin"),
    ],
)
def test_the_probability_of_understanding(said: tuple[float | None, float], end: str) -> None:
    labelled = one(pair(said=said, human="ab"), "probability", min_margin=0.1)
    assert ends([labelled]) == [end]
    if labelled.label is not None:
        assert labelled.label.p == pytest.approx(0.75)
        assert labelled.label.margin == pytest.approx(0.5)
        assert (labelled.label.judge, labelled.label.compare) == (None, None)


@pytest.mark.parametrize(
    ("human", "end"),
    [("", "not_judged"), ("a", "a"), ("ab", "tie"), ("bbt", "b"), ("t", "tie"), ("aab", "a")],
)
def test_people(human: str, end: str) -> None:
    assert ends([one(pair(human=human, said=(0.1, 0.9)), "human")]) == [end]


def test_the_named_judge_counts_and_by_default_the_first() -> None:
    both = pair(0, 1, oracle("a", "a"), oracle("b", "b", OTHER_JUDGE))
    assert ends([one(both, "oracle")]) == ["a"]
    assert ends([one(both, "oracle", judge=OTHER_JUDGE)]) == ["b"]
    assert ends([one(both, "oracle", judge="0" * 16)]) == ["not_judged"]
    assert ends([one(pair(), "oracle")]) == ["not_judged"]
    later = label_scenario([pair(0, 1, oracle("b", "b", OTHER_JUDGE)), both], LabelRules(by="oracle"))
    assert [p.label.judge if p.label else None for p in later] == [OTHER_JUDGE] * 2


def test_identical_sides_have_no_label_whatever_was_said() -> None:
    same = pair(0, 1, oracle("a", "a"), said=(0.9, 0.1), human="a", left_out="identical")
    for by in ("oracle", "probability", "human"):
        assert ends([one(same, by)]) == ["identical"]


def test_a_tournament_gives_strengths_and_margins() -> None:
    pairs = [pair(0, 1, oracle("a", "a")), pair(1, 2, oracle("a", "a")), pair(0, 2, oracle("a", "a"))]
    labelled = label_scenario(pairs, LabelRules(by="oracle"))
    assert ends(labelled) == ["a", "a", "a"]
    near, _, far = (p.label.margin for p in labelled if p.label is not None)
    assert 0 < near < far < 1
    strength = {side.id: side.strength for p in labelled for side in (p.a, p.b)}
    assert None not in strength.values()
    assert sum(s.value for s in strength.values() if s) == pytest.approx(0, abs=1e-5)


def test_a_verdict_against_the_strengths_is_no_label() -> None:
    # 3 loses to everyone else and beats 0, which beats everyone else
    pairs = [
        pair(0, 1, oracle("a", "a")), pair(0, 2, oracle("a", "a")), pair(1, 3, oracle("a", "a")),
        pair(2, 3, oracle("a", "a")), pair(0, 3, oracle("b", "b")), pair(0, 4, oracle("a", "a")), pair(3, 4, oracle("b", "b")),
    ]  # fmt: skip
    assert ends(label_scenario(pairs, LabelRules(by="oracle")))[4] == "contradicted"
    assert ends([one(pairs[4], "oracle")]) == ["b"]  # it stands alone


def test_a_circle_of_wins_gives_no_label() -> None:
    pairs = [pair(0, 1, oracle("a", "a")), pair(1, 2, oracle("a", "a")), pair(0, 2, oracle("b", "b"))]
    assert ends(label_scenario(pairs, LabelRules(by="oracle"))) == ["contradicted"] * 3


def test_a_tie_counts_half_and_is_never_a_label() -> None:
    pairs = [pair(0, 1, oracle("a", "a")), pair(1, 2, oracle("a", "a")), pair(0, 2, oracle("a", "b"))]
    labelled = label_scenario([*pairs[:2], pair(0, 2, oracle("aa", "bb"))], LabelRules(by="oracle"))
    assert ends(labelled) == ends(label_scenario(pairs, LabelRules(by="oracle"))) == ["a", "a", "tie"]
    # for any spread of the votes: one order favours neither, so neither does the pair
    soft = label_scenario([*pairs[:2], pair(0, 2, oracle("aa", "ab"))], LabelRules(by="oracle"))
    assert soft[2].left_out == "tie"
    assert soft[2].a.strength == labelled[2].a.strength
    without = label_scenario(pairs[:2], LabelRules(by="oracle"))
    assert labelled[0].a.strength != without[0].a.strength


def test_what_was_not_read_says_nothing_and_strengths_alone_label_nothing() -> None:
    pairs = [
        pair(0, 1, oracle("a", "a")),
        pair(1, 2, oracle("a", "a")),
        pair(0, 2, oracle("a", "?")),
        pair(0, 3),
    ]
    labelled = label_scenario(pairs, LabelRules(by="oracle"))
    assert ends(labelled) == ["a", "a", "abstained", "not_judged"]
    assert labelled[2].a.strength is not None
    assert labelled[3].b.strength is None
    # an abstention has no weight: the others are as strong as without it
    assert (
        label_scenario([pairs[0], pairs[2]], LabelRules(by="oracle"))[0]
        == label_scenario([pairs[0]], LabelRules(by="oracle"))[0]
    )


def test_the_largest_margins_stay() -> None:
    pairs = [pair(i, i + 1, said=(0.5 + d, 0.5)) for i, d in enumerate([0.1, 0.4, 0.3, 0.4, 0.02])]
    kept = label_scenario(pairs, LabelRules(by="probability", min_margin=0.05, max_per_scenario=2))
    assert ends(kept) == ["surplus", "a", "surplus", "a", "margin"]
    first = label_scenario(list(reversed(pairs)), LabelRules(by="probability", max_per_scenario=1))
    assert ends(first) == ["surplus", "surplus", "surplus", "a", "surplus"]  # of equal ones the first id
    assert ends(label_scenario(pairs, LabelRules(by="probability", max_per_scenario=0))) == ["surplus"] * 5


def test_labelling_again_by_another_source_leaves_nothing_of_the_first() -> None:
    pairs = [pair(a, b, oracle("a", "a"), said=(0.2, 0.6)) for a, b in itertools.combinations(range(3), 2)]
    again = label_scenario(label_scenario(pairs, LabelRules(by="oracle")), LabelRules(by="probability"))
    assert again == label_scenario(pairs, LabelRules(by="probability"))
    assert ends(again) == ["b"] * 3


letters = st.text("ab?", min_size=1, max_size=3)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(list(itertools.combinations(range(5), 2))), letters, letters, st.text("abt", max_size=2),
            st.tuples(st.none() | st.floats(0, 1), st.none() | st.floats(0, 1)), st.booleans(),
        ),
        unique_by=lambda row: row[0], max_size=10,
    ),
    st.sampled_from(["oracle", "probability", "human"]),
    st.floats(0, 1),
    st.none() | st.integers(0, 5),
)  # fmt: skip
@settings(max_examples=dose(10, 60), deadline=None)
def test_one_end_for_every_pair(rows: list[Any], by: Any, min_margin: float, most: int | None) -> None:
    pairs = [
        pair(*names, oracle(ab, ba), said=said, human=human, left_out="identical" if same else None)
        for names, ab, ba, human, said, same in rows
    ]
    labelled = label_scenario(pairs, LabelRules(by=by, min_margin=min_margin, max_per_scenario=most))
    assert [(p.id, p.signals) for p in labelled] == [(p.id, p.signals) for p in pairs]
    for p in labelled:
        assert (p.label is None) == (p.left_out in UNLABELLED)
        if p.label is not None:
            assert p.left_out is None
            assert 0.5 < p.label.p <= 1
            assert 0 < p.label.margin <= 1
            assert p.label.margin >= min_margin - 1e-6
            if by == "oracle":
                (signal,) = p.signals.oracle
                assert signal.wins_ab is not None
                assert signal.wins_ba is not None
                assert (min(signal.wins_ab, signal.wins_ba) > 0.5) == (p.label.chosen == "a")
                assert (max(signal.wins_ab, signal.wins_ba) < 0.5) == (p.label.chosen == "b")
    if most is not None:
        assert sum(p.label is not None for p in labelled) <= most
    assert (
        label_scenario(labelled, LabelRules(by=by, min_margin=min_margin, max_per_scenario=most)) == labelled
    )
    turned = label_scenario(labelled[::-1], LabelRules(by=by, min_margin=min_margin, max_per_scenario=most))
    assert ends(turned[::-1]) == ends(labelled)
    assert msgspec.json.encode(labelled)


class TestJudgeDirected:
    SAID = JudgeDirected(a=None, b="Dear judge")

    def test_such_a_pair_has_no_label_by_any_source_and_counts_for_no_strength(self) -> None:
        planted = pair(0, 1, oracle("b", "b"), said=(0.2, 0.9), human="bb", directed=self.SAID)
        others = [pair(1, 2, oracle("a", "a")), pair(0, 2, oracle("a", "a"))]
        for by in ("oracle", "probability", "human"):
            assert label_scenario([planted], LabelRules(by=by))[0].left_out == "judge_directed"
        made = label_scenario([planted, *others], LabelRules(by="oracle"))
        assert [(p.left_out, p.label is None) for p in made] == [
            ("judge_directed", True), (None, False), (None, False)
        ]  # fmt: skip
        alone = label_scenario(others, LabelRules(by="oracle"))
        assert [p.label for p in made[1:]] == [p.label for p in alone]

    def test_it_is_labelled_all_the_same_where_that_is_asked_for(self) -> None:
        planted = pair(0, 1, oracle("b", "b"), directed=self.SAID)
        (made,) = label_scenario(
            label_scenario([planted], LabelRules(by="oracle")),
            LabelRules(by="oracle", judge_directed="label"),
        )
        assert made.label is not None
        assert made.label.chosen == "b"

    def test_two_that_say_the_same_stay_identical(self) -> None:
        planted = pair(0, 1, directed=self.SAID, left_out="identical")
        assert label_scenario([planted], LabelRules(by="oracle"))[0].left_out == "identical"
