"""Figures of labels against others: by hand, and against an independent library."""

from __future__ import annotations

import random

import pytest

from edgen.stats.intervals import Estimate
from edgen.stats.label_figures import LabelCounts, LabelFigures


def value(estimate: Estimate | None) -> float | None:
    return None if estimate is None else estimate.value


def figures(units: list[tuple[int, set[str], set[str]]]) -> LabelFigures:
    counts = LabelCounts()
    for scenario, gold, given in units:
        counts.add(scenario, gold, given)
    return counts.figures()


def test_a_table_by_hand() -> None:
    found = figures([
        (0, {"Hint"}, {"Hint"}), (0, {"Hint", "Question"}, {"Hint"}), (1, {"Question"}, {"Hint"}), (1, {"Other"}, {"Other"}),
    ])  # fmt: skip
    assert (found.units, value(found.exact)) == (4, 0.5)
    assert value(found.by_unit) == pytest.approx((1 + 1 / 2 + 0 + 1) / 4)
    hint, question, other = (found.labels[name] for name in ("Hint", "Question", "Other"))
    assert [*found.labels] == ["Hint", "Question", "Other"]
    assert (hint.gold, hint.given, value(hint.bias)) == (2, 3, 0.25)
    assert (value(hint.precision), value(hint.recall), value(hint.f1)) == (pytest.approx(2 / 3), 1.0, 0.8)
    assert value(hint.jaccard) == pytest.approx(2 / 3)
    assert (question.precision, value(question.recall), value(question.f1)) == (None, 0.0, 0.0)
    assert value(other.f1) == 1.0
    # All labels together: 3 of 4 given ones are right, of 5 true ones.
    assert (value(found.micro.precision), value(found.micro.recall)) == (0.75, 0.6)
    assert value(found.micro.f1) == pytest.approx(6 / 9)
    assert value(found.macro.f1) == pytest.approx((0.8 + 0 + 1) / 3)
    assert value(found.macro.precision) == pytest.approx((2 / 3 + 0 + 1) / 3, abs=1e-6)


def test_nothing_and_one_scenario_have_no_interval() -> None:
    nothing = figures([])
    assert (nothing.units, nothing.exact, nothing.by_unit, nothing.labels, nothing.macro.f1) == (
        0,
        None,
        None,
        {},
        None,
    )
    one = figures([(3, {"a"}, {"a"})])
    assert one.exact == Estimate(value=1.0, low=None, high=None, n=1, scenarios=1)


def test_random_tables_are_as_nltk_has_them() -> None:
    from nltk.metrics.scores import f_measure, precision, recall  # type: ignore[import-untyped]

    rng = random.Random(5)
    for _ in range(30):
        units = [
            (number % 7, {*rng.choices("abcd", k=rng.randint(1, 3))}, {*rng.choices("abcd", k=rng.randint(1, 3))})
            for number in range(rng.randint(1, 40))
        ]  # fmt: skip
        found = figures(units)
        pairs = [
            {(number, label) for number, unit in enumerate(units) for label in unit[side]} for side in (1, 2)
        ]
        for label in (*found.labels, None):
            gold, given = ({pair for pair in one if label in (None, pair[1])} for one in pairs)
            ours = found.micro if label is None else found.labels[label]
            expected = precision(gold, given), recall(gold, given), f_measure(gold, given)
            for mine, theirs in zip((ours.precision, ours.recall, ours.f1), expected, strict=True):
                if theirs is not None and mine is not None:
                    assert mine.value == pytest.approx(theirs, abs=1e-5)


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    rng, held = random.Random(1), 0
    for _ in range(100):
        units = []
        for scenario in range(30):
            for _ in range(5):
                gold = rng.choice("ab")
                given = gold if rng.random() < 0.8 else "ab".replace(gold, "")
                units.append((scenario, {gold}, {given}))
        exact = figures(units).exact
        assert exact is not None
        assert exact.low is not None
        assert exact.high is not None
        held += exact.low <= 0.8 <= exact.high
    assert held >= 88  # 95 are expected; 88 of 100 is three standard errors less
