"""Coverage: survivors, lost cells, evenness, the statistical test of the p-values."""

from __future__ import annotations

import math
import random
from itertools import combinations

import msgspec
import pytest

from edgen.core import resources
from edgen.evaluation.drawings import shade_of
from edgen.evaluation.measures.coverage import _draw_heat_map
from edgen.evaluation.measures.coverage_count import Coverage, CoverageCount, CrossTable
from edgen.evaluation.sample import PlannedOutcome
from edgen.space import Space, load_space
from edgen.stats.significance import fisher, holm, log_factorials
from tests.scenarios import scenario_of


def space() -> Space:
    return load_space(resources.find("preference_space", "education_dialogue"))


def outcome(
    index: int, topic: str, status: str = "accepted", reason: str | None = None, **more: object
) -> PlannedOutcome:
    scenario = scenario_of(index, topic, "likes", "reacts", str(more.get("has", "has")), "answers")
    return PlannedOutcome(scenario, int(str(more.get("replicate", 0))), status, reason)  # type: ignore[arg-type]


def found(*outcomes: PlannedOutcome, space: Space | None = None) -> Coverage:
    measure = CoverageCount(space)
    for one in outcomes:
        measure.see_planned(one)
    return measure.result()


def test_what_became_of_each_value_and_which_cells_are_lost() -> None:
    result = found(
        outcome(0, "rivers"),
        outcome(1, "rivers", "rejected", "refused"),
        outcome(2, "suns", "rejected", "refused"),
        outcome(3, "suns", "failed", "timeout", has="other"),
        outcome(4, "moons", "pending"),
    )
    assert (result.planned, result.accepted) == (5, 1)
    assert (result.planned_cells, result.accepted_cells, result.lost_cells) == (4, 1, 2)
    assert [(lost.cell["topic"], lost.reasons) for lost in result.lost] == [
        ("suns", {"refused": 1}), ("suns", {"timeout": 1}),
    ]  # fmt: skip
    topics = {value.value: value for value in result.dimensions[0].values}
    assert (topics["rivers"].accepted, topics["rivers"].rejected) == (1, 1)
    assert (topics["suns"].rejected, topics["suns"].failed) == (1, 1)
    assert topics["rivers"].survived is not None
    assert topics["rivers"].survived.value == 0.5
    assert topics["moons"].survived is None
    assert topics["moons"].pending == 1
    assert result.dimensions[0].unseen == ("suns", "moons")
    heat = result.heat[0]
    assert (heat.columns, heat.planned, heat.accepted) == (("has", "other"), ((4, 1),), ((1, 0),))


def test_against_a_space() -> None:
    known = space()
    topic = known["topic"].values[0]
    result = found(outcome(0, topic), space=known)
    assert result.cells == known.product
    dimension = result.dimensions[0]
    assert (dimension.size, dimension.planned, dimension.seen) == (len(known["topic"].entries), 1, 1)
    assert str(dimension.evenness) == "0.0"  # not -0.0


def test_what_was_never_planned_is_apart_from_what_was_never_accepted() -> None:
    first, second, third, *others = space()["topic"].values
    result = found(
        outcome(0, first), outcome(1, second, "rejected", "refused"), outcome(2, third, "rejected", "refused"),
        outcome(3, third, "failed", "timeout"), space=space(),
    )  # fmt: skip
    topics = result.dimensions[0]
    assert (topics.planned, topics.seen) == (3, 1)
    assert topics.unseen == (second, third)
    assert topics.unplanned == tuple(others[:50])
    assert list(result.reasons.items()) == [("refused", 2), ("timeout", 1)]


def test_without_a_plan_nothing_survives_and_nothing_is_lost() -> None:
    measure = CoverageCount(planned=False)
    for i in range(10):
        measure.see_planned(outcome(i, "rivers"))
    (value,) = measure.result().dimensions[0].values
    assert (value.accepted, value.survived, value.p_holm) == (10, None, None)


def test_evenness_is_one_where_all_come_equally_often() -> None:
    result = found(*[outcome(i, f"t{i % 7}") for i in range(70)])
    assert result.dimensions[0].evenness == pytest.approx(1.0)
    half = found(*[outcome(i, "a" if i < 9 else "b") for i in range(10)]).dimensions[0].evenness
    assert half == pytest.approx(-(0.9 * math.log(0.9) + 0.1 * math.log(0.1)) / math.log(2))


def test_a_value_that_loses_more_stands_out_and_replicates_count_once() -> None:
    outcomes = [
        outcome(i, f"t{i % 10}", "rejected" if i % 10 == 3 and i < 150 else "accepted") for i in range(300)
    ]
    values = {value.value: value for value in found(*outcomes).dimensions[0].values}
    assert values["t3"].p_holm is not None
    assert values["t3"].p_holm < 1e-9
    assert values["t4"].p_holm is not None
    assert values["t4"].p_holm > 0.2
    twice = [PlannedOutcome(one.scenario, replicate, one.status) for one in outcomes for replicate in (0, 1)]
    again = {value.value: value for value in found(*twice).dimensions[0].values}
    assert again["t3"].p_holm == values["t3"].p_holm


def test_where_nothing_stands_out_one_data_set_in_twenty_says_so_at_most() -> None:
    alarms = 0
    for seed in range(60):
        draw = random.Random(seed)
        outcomes = [
            outcome(i, f"t{draw.randrange(20)}", "rejected" if draw.random() < 0.05 else "accepted")
            for i in range(300)
        ]
        values = found(*outcomes).dimensions[0].values
        alarms += any(value.p_holm is not None and value.p_holm < 0.05 for value in values)
    assert alarms <= 6


def test_fisher_is_what_counting_all_draws_gives() -> None:
    logs = log_factorials(12)
    total, lost, size = 9, 4, 3
    draws = [sum(place < lost for place in drawn) for drawn in combinations(range(total), size)]
    for hits in range(size + 1):
        likely = draws.count(hits)
        expected = sum(draws.count(k) for k in range(size + 1) if draws.count(k) <= likely) / len(draws)
        assert fisher(hits, size, lost, total, logs) == pytest.approx(expected)


def test_fisher_on_the_lady_tasting_tea() -> None:
    assert fisher(3, 4, 4, 8, log_factorials(8)) == pytest.approx(0.4857142857)
    assert fisher(4, 4, 4, 8, log_factorials(8)) == pytest.approx(2 / 70)


def test_holm() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])  # as in his paper
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_nothing_planned() -> None:
    result = found(space=space())
    assert (result.planned, result.planned_cells, result.lost_cells) == (0, 0, 0)
    assert result.heat[0].planned == ()


def test_the_legend_of_a_heat_map_has_its_lowest_and_its_highest_count() -> None:
    table = CrossTable(
        row_dimension="a", column_dimension="b", rows=("x", "y"), columns=("u", "v"),
        planned=((4, 13), (5, 6)), accepted=((4, 13), (5, 6)),
    )  # fmt: skip
    full = _draw_heat_map("heat", "", table, "")
    assert full.legend == ((f"level-{shade_of(4, 13)}", "4 conversations"), ("level-8", "13 conversations"))
    holes = msgspec.structs.replace(table, accepted=((0, 13), (5, 6)))
    assert [words for _, words in _draw_heat_map("heat", "", holes, "").legend] == [
        "0 conversations", "5 conversations", "13 conversations",
    ]  # fmt: skip
