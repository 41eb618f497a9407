"""The bias report: planted biases are found, intervals cover, and missing data is reported."""

from __future__ import annotations

import json
import math
import tracemalloc
from typing import Any

import numpy as np
import pytest

from edgen.core.pair import Compare, JudgeDirected, Pair
from edgen.preferences.bias import make_bias_report
from edgen.preferences.labels import LabelRules, label_scenario
from edgen.preferences.render import render
from edgen.stats.calibration import calibration
from edgen.stats.intervals import Estimate, average, scale_estimate, share
from edgen.stats.logistic import fit, sigmoid
from edgen.stats.quantiles import t95
from tests.preferences.values import OTHER_JUDGE, oracle, pair

pytestmark = pytest.mark.integration

FIRST, LONGER = 0.20, 0.15
PAIRS = 2_000
Words = dict[str, tuple[int, int]]


def judged(
    seed: int, *, count: int = PAIRS, per_scenario: int = 1, says: bool = True
) -> tuple[list[Pair], Words, list[str]]:
    """Return pairs with planted biases.

    The judge takes the first slot with chance FIRST, the longer text with LONGER, else the better one.
    `says`: the conversations have probabilities of their own, at random.
    """
    rng = np.random.default_rng(seed)
    pairs: list[Pair] = []
    words: Words = {}
    better: list[str] = []
    for i in range(count):
        lengths = tuple(int(n) for n in rng.integers(60, 400, 2))
        truth = "a" if rng.random() < 0.5 else "b"
        longer = "a" if lengths[0] > lengths[1] else ("b" if lengths[1] > lengths[0] else truth)
        ab, ba = (
            (first if u < FIRST else longer if u < FIRST + LONGER else truth)
            for first, u in zip("ab", rng.random(2), strict=True)
        )
        k = i % per_scenario
        pairs.append(
            pair(
                2 * k,
                2 * k + 1,
                oracle(ab, ba),
                scenario=i // per_scenario,
                said=tuple(rng.random(2)) if says else (None, None),
            )
        )  # type: ignore[arg-type]
        words[pairs[-1].id] = (lengths[0], lengths[1])
        better.append(truth)
    return pairs, words, better


def report_on(pairs: list[Pair], words: Words) -> dict[str, Any]:
    return make_bias_report((p, {"conversation": words[p.id]} if p.id in words else {}) for p in pairs)


def within(estimate: dict[str, Any], value: float) -> bool:
    return bool(estimate["low"] <= value <= estimate["high"])


def test_planted_biases_are_within_their_intervals_and_both_orders_make_labels_right() -> None:
    pairs, words, better = judged(7)
    (judge,) = report_on(pairs, words)["judges"]
    position, length = judge["position"], judge["length"]
    assert within(position["points"], 100 * FIRST)
    assert within(position["first_slot"], (1 + FIRST) / 2)
    assert within(length["points"], 100 * LONGER)
    assert within(length["longer"], (1 + LONGER) / 2)
    assert not within(position["points"], 0)
    assert not within(length["points"], 0)
    assert length["slope"]["low"] > 0
    assert position["points"]["high"] - position["points"]["low"] < 7

    chosen = [
        (p.label.chosen, truth)
        for p, truth in zip(
            (label_scenario([p], LabelRules(by="oracle"))[0] for p in pairs), better, strict=True
        )
        if p.label is not None
    ]
    both = sum(x == y for x, y in chosen) / len(chosen)
    one_order = [
        (p.signals.oracle[0].wins_ab == 1.0) == (truth == "a") for p, truth in zip(pairs, better, strict=True)
    ]
    assert both >= 0.95
    assert sum(one_order) / len(one_order) < 0.85
    assert len(chosen) > PAIRS / 2


@pytest.mark.parametrize("per_scenario", [1, 5])
def test_the_intervals_hold_what_they_promise(per_scenario: int) -> None:
    found = {"position": 0, "length": 0}
    for seed in range(100):
        pairs, words, _ = judged(1000 + seed, count=120, per_scenario=per_scenario, says=False)
        (judge,) = report_on(pairs, words)["judges"]
        found["position"] += within(judge["position"]["points"], 100 * FIRST)
        found["length"] += within(judge["length"]["points"], 100 * LONGER)
    assert all(88 <= covered <= 100 for covered in found.values()), found


def test_the_slope_is_the_one_that_made_the_verdicts() -> None:
    rng = np.random.default_rng(4)
    covered = 0
    for _ in range(60):
        pairs, words = [], {}
        for i in range(250):
            a, b = (int(n) for n in rng.integers(50, 400, 2))
            chance = 1 / (1 + math.exp(-0.4 * (a - b) / 100))
            side = "a" if rng.random() < chance else "b"
            pairs.append(pair(0, 1, oracle(side, side), scenario=i))
            words[pairs[-1].id] = (a, b)
        (judge,) = report_on(pairs, words)["judges"]
        covered += within(judge["length"]["slope"], 0.4)
    assert 53 <= covered <= 60


def test_each_judge_is_measured_in_the_words_that_it_was_shown() -> None:
    rng = np.random.default_rng(12)
    rows: list[tuple[Pair, dict[Compare, tuple[int, int]]]] = []
    for i in range(300):
        whole = (int(rng.integers(300, 900)), int(rng.integers(300, 900)))
        part = (int(rng.integers(20, 90)), int(rng.integers(20, 90)))
        # each judge takes the longer of the texts that it sees
        one, other = ("a" if x >= y else "b" for x, y in (whole, part))
        signals = oracle(one, one), oracle(other, other, OTHER_JUDGE, "response")
        rows.append((pair(0, 1, *signals, scenario=i), {"conversation": whole, "response": part}))
    judges = {judge["compare"]: judge["length"] for judge in make_bias_report(rows)["judges"]}
    assert set(judges) == {"conversation", "response"}
    assert all(length["longer"]["value"] == 1 for length in judges.values())
    # 100 words weigh the same for a whole response and for a part of a conversation
    assert judges["response"]["slope"]["value"] > judges["conversation"]["slope"]["value"] > 0

    counts: list[dict[Compare, tuple[int, int]]] = [{"conversation": w["conversation"]} for _, w in rows]
    some = make_bias_report((p, w) for (p, _), w in zip(rows, counts, strict=True))["judges"]
    known = {judge["compare"]: judge["length"]["longer"] for judge in some}
    assert known["conversation"]["n"] > 250
    assert known["response"] is None


def confounded(rng: np.random.Generator, count: int, slope: float) -> tuple[list[Pair], Words]:
    """Return pairs by a judge who weighs quality, and length by `slope` logits for 100 words.

    Longer texts are the better ones.
    """
    pairs, words = [], {}
    for i in range(count):
        said = tuple(float(x) for x in rng.random(2))
        lengths = tuple(int(100 + 250 * x + 80 * rng.random()) for x in said)
        chance = 1 / (1 + math.exp(-4 * (said[0] - said[1]) - slope * (lengths[0] - lengths[1]) / 100))
        ab, ba = ("a" if rng.random() < chance else "b" for _ in range(2))
        pairs.append(pair(0, 1, oracle(ab, ba), scenario=i, said=(said[0], said[1])))
        words[pairs[-1].id] = (lengths[0], lengths[1])
    return pairs, words


@pytest.mark.parametrize("slope", [0.0, 0.8])
def test_the_adjusted_slope_is_the_one_beside_quality(slope: float) -> None:
    rng = np.random.default_rng(21)
    covered = 0
    for _ in range(40):
        (judge,) = report_on(*confounded(rng, 300, slope))["judges"]
        length = judge["length"]
        covered += within(length["slope_adjusted"], slope)
        assert length["slope"]["low"] > slope + 0.3  # which mistakes quality for length
        assert length["slope_adjusted"]["n"] == length["slope"]["n"] == 300
    assert covered >= 36


def test_without_another_source_there_is_no_adjusted_slope() -> None:
    pairs, words = confounded(np.random.default_rng(2), 60, 0.5)
    silent = [pair(0, 1, *p.signals.oracle, scenario=p.scenario) for p in pairs]
    alike = [pair(0, 1, *p.signals.oracle, scenario=p.scenario, said=(0.5, 0.5)) for p in pairs]
    for these in (silent, alike):
        report = report_on(these, words)
        assert report["judges"][0]["length"]["slope"] is not None
        assert report["judges"][0]["length"]["slope_adjusted"] is None
        assert "equal probability" not in " ".join(" ".join(render(report)).split())
    half = report_on(pairs[:30] + silent[30:], words)
    assert half["judges"][0]["length"]["slope_adjusted"]["n"] == 30
    (line,) = (line for line in render(half) if line.startswith("    adjusted"))
    assert "(" in line
    assert line.endswith("30 pairs")
    assert "equal probability: the effect of length" in " ".join(" ".join(render(half)).split())
    assert "equal probability of understanding" in " ".join(
        " ".join(render(half, "of understanding")).split()
    )
    assert max(map(len, render(half))) < 80


def test_an_honest_judge_has_no_bias() -> None:
    pairs = [pair(0, 1, oracle(side, side), scenario=i) for i, side in enumerate("ab" * 50)]
    report = report_on(pairs, {p.id: (100 + i % 3, 101) for i, p in enumerate(pairs)})
    (judge,) = report["judges"]
    assert judge["position"]["flips"]["value"] == 0
    assert judge["position"]["points"]["value"] == 0
    # certain up to the possible flips, not up to those of a coin
    assert judge["position"]["points"]["high"] == pytest.approx(
        100 * judge["position"]["flips"]["high"], abs=1e-3
    )
    assert judge["position"]["points"]["high"] < 5
    assert within(judge["length"]["points"], 0)
    assert judge["ties"] == {"n": 0, "share": judge["ties"]["share"]}


def test_a_judge_who_always_says_1() -> None:
    pairs = [pair(0, 1, oracle("a", "b"), scenario=i, said=(0.9, 0.1)) for i in range(40)]
    report = report_on(pairs, {})
    (judge,) = report["judges"]
    assert judge["position"]["flips"]["value"] == 1
    assert judge["position"]["points"]["value"] == 100
    assert judge["position"]["points"]["low"] < 100  # 40 pairs are not all pairs
    assert judge["ties"]["n"] == 40
    assert judge["calibration"] is None
    text = "\n".join(render(report))
    assert "flips        100.0%" in text
    assert "0 is outside the interval" in " ".join(text.split())
    assert "no judged pair has sides of different, known length" in text
    assert "no pair has a favoured side by two sources" in text


def test_a_judge_who_cannot_be_read() -> None:
    report = report_on([pair(0, 1, oracle("?", "a")), pair(0, 1, oracle("?", "?"), scenario=1)], {})
    (judge,) = report["judges"]
    assert (judge["pairs"], judge["judged"], judge["abstentions"]["n"]) == (2, 0, 2)
    assert judge["verdicts"] == {"n": 4, "unread": 3}
    assert judge["position"] == {"flips": None, "first_slot": None, "points": None}
    assert "no pair has read verdicts in both orders" in "\n".join(render(report))


@pytest.mark.parametrize("pairs", [[], [pair()], [pair(said=(0.4, 0.2), human="ab")]])
def test_without_a_judge_there_is_a_report_all_the_same(pairs: list[Pair]) -> None:
    report = report_on(pairs, {})
    assert report["judges"] == []
    assert "No judge has been asked" in "\n".join(render(report))


def test_one_scenario_gives_figures_without_intervals() -> None:
    pairs = [pair(0, 1, oracle("a", "a"), said=(0.9, 0.2)), pair(1, 2, oracle("a", "b"))]
    report = report_on(pairs, {p.id: (10, 20) for p in pairs})
    points = report["judges"][0]["position"]["points"]
    assert (points["value"], points["low"], points["high"], points["scenarios"]) == (50.0, None, None, 1)
    assert "no interval from one scenario" in "\n".join(render(report))


def test_each_judge_is_reported_by_itself_and_agreement_is_between_all() -> None:
    pairs = [
        pair(0, 1, *([oracle(x, x)] if i % 3 else []), oracle(y, y, OTHER_JUDGE), scenario=i, human=x, said=(0.9, 0.1) if y == "a" else (0.1, 0.9))
        for i, (x, y) in enumerate(zip("ab" * 30, "aabb" * 15, strict=True))
    ]  # fmt: skip
    report = report_on([label_scenario([p], LabelRules(by="human"))[0] for p in pairs], {})
    assert sorted(j["pairs"] for j in report["judges"]) == [40, 60]
    assert report["labelled"] == {"human": 60}
    between = {tuple(row["sources"]): row for row in report["agreement"]["between"]}
    assert len(between) == 6
    assert between["human", "oracle 0123456789abcdef"]["kappa"] == 1
    assert between["human", "oracle 0123456789abcdef"]["n"] == 40
    assert between["oracle fedcba9876543210", "probability"]["alpha"] == 1
    assert between["human", "probability"]["kappa"] == 0
    text = list(render(report))
    assert sum("Judge " in line for line in text) == 2
    assert all("\n" not in line for line in text)


def test_a_judge_who_is_there_twice_counts_once() -> None:
    pairs = [pair(0, 1, oracle("a", "a"), oracle("b", "b")), pair(0, 1, oracle("a", "b"), scenario=1)]
    (judge,) = report_on(pairs, {})["judges"]
    assert (judge["pairs"], judge["ties"]["n"]) == (2, 1)


def test_the_report_is_json_and_renders_alike_when_read_back() -> None:
    pairs, words, _ = judged(3, count=300, per_scenario=3)
    report = report_on(pairs, words)
    again = json.loads(json.dumps(report, allow_nan=False))
    assert again == report
    assert list(render(again)) == list(render(report))
    assert report["scenarios"] == 100


def test_a_pair_takes_a_few_numbers_of_memory() -> None:
    one = pair(0, 1, oracle("a", "b"), said=(0.4, 0.6))
    tracemalloc.start()
    make_bias_report((one, {"conversation": (10, 20)}) for _ in range(5_000))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5_000 * 1_000


def test_a_forecast_that_is_right_about_itself_is_calibrated() -> None:
    rng = np.random.default_rng(9)
    p = rng.random(20_000)
    table = calibration(p, rng.random(20_000) < p, np.arange(20_000))
    assert table is not None
    assert table["expected_calibration_error"] < 0.015
    assert within(table["brier"], 1 / 6)  # the mean of p (1 - p)
    assert sum(row["n"] for row in table["bins"]) == 20_000
    assert sum(within(row["share"], row["mean"]) for row in table["bins"]) >= 8


def test_a_forecast_that_exaggerates_is_found_out() -> None:
    table = calibration([0.95] * 10 + [0.3, 1.0], [1] * 5 + [0] * 5 + [0, 1], range(12))
    assert table is not None
    last = table["bins"][9]
    assert (last["n"], last["mean"]) == (11, pytest.approx((9.5 + 1) / 11))
    assert table["bins"][3]["n"] == 1
    assert table["expected_calibration_error"] == pytest.approx(abs(6 - 10.5) / 12 + 0.3 / 12)
    assert table["brier"]["value"] == pytest.approx((5 * 0.05**2 + 5 * 0.95**2 + 0.09) / 12)
    assert calibration([], [], []) is None


def test_a_forecast_a_hair_below_an_edge_by_rounding_is_on_the_edge() -> None:
    table = calibration([0.3 - 1e-12, 0.0, 0.1, 1.0], [1, 0, 0, 1], range(4))
    assert table is not None
    assert [row["n"] for row in table["bins"]] == [1, 1, 0, 1, 0, 0, 0, 0, 0, 1]


def test_a_share_has_wilsons_interval() -> None:
    # where the observed share is z standard errors away, the error being the bound's own
    found = share([1] * 8 + [0] * 2, range(10))
    assert found is not None
    assert found.value == 0.8
    for bound in (found.low, found.high):
        assert bound is not None
        # 10 values of 10 scenarios, and the factor 10 / 9, weigh as 9
        assert abs(0.8 - bound) == pytest.approx(t95(9) * math.sqrt(bound * (1 - bound) / 9), rel=1e-4)
    assert share([], []) is None
    full = share([1, 1, 1, 1], [0, 1, 2, 3])
    assert full is not None
    assert (full.value, full.high) == (1, 1)
    assert full.low == pytest.approx(1 / (1 + t95(3) ** 2 / 4), abs=1e-4)


def test_pairs_of_one_scenario_that_are_alike_count_for_less() -> None:
    values = [1.0, 0.0] * 50
    apart, together = share(values, range(100)), share(values, [i % 2 + 2 * (i // 20) for i in range(100)])
    assert apart is not None
    assert apart.low is not None
    assert together is not None
    assert together.low is not None
    assert together.low < apart.low - 0.1
    assert together.scenarios == 10


def test_a_mean_and_its_scale() -> None:
    found = average([1.0, 2.0, 3.0, 4.0], range(4))
    assert found is not None
    assert found.high == pytest.approx(2.5 + t95(3) * math.sqrt(5 / 4 * 4 / 3) / 2, abs=1e-3)
    turned = scale_estimate(found, 10, 1)
    assert turned is not None
    assert (turned.value, turned.high) == (26, pytest.approx(10 * (found.high or 0) + 1))
    assert scale_estimate(None, 2) is None


def central(t: float, freedom: int) -> float:
    """Return the probability that Student's t is within -t and t.

    In closed form (Abramowitz and Stegun, 26.7.3-4).
    """
    angle = math.atan(t / math.sqrt(freedom))
    term = 1.0 if freedom % 2 == 0 else math.cos(angle)
    total = term if freedom > 1 else 0.0
    for k in range(2 + freedom % 2, freedom - 1, 2):
        term *= math.cos(angle) ** 2 * (k - 1) / k
        total += term
    return math.sin(angle) * total if freedom % 2 == 0 else 2 / math.pi * (angle + math.sin(angle) * total)


def test_students_quantile() -> None:
    assert max(abs(central(t95(n), n) - 0.95) for n in range(1, 400)) < 2e-5
    assert all(t95(n) > t95(n + 1) > 1.95996 for n in range(1, 400))
    assert t95(10**6) == pytest.approx(1.95997, abs=1e-5)


def covers(estimate: Estimate | None, value: float) -> bool:
    assert estimate is not None
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.low <= value <= estimate.high


@pytest.mark.parametrize("scenarios", [6, 10, 30])
def test_with_few_scenarios_too_the_intervals_hold_what_they_promise(scenarios: int) -> None:
    rng = np.random.default_rng(scenarios)
    member = np.repeat(np.arange(scenarios), 4)
    trials = 400
    shares = means = slopes = 0
    for _ in range(trials):
        own, chance = rng.random(scenarios) < 0.7, rng.random(member.size) < 0.7
        alike = rng.random(member.size) < 0.3
        shares += covers(share(np.where(alike, own[member], chance), member), 0.7)
        means += covers(average(rng.normal(size=scenarios)[member] + rng.normal(size=member.size), member), 0)
    for _ in range(trials // 2):
        x = rng.normal(0, 1.4, member.size) + rng.normal(0, 1, scenarios)[member]
        fitted = fit(
            np.column_stack([np.ones(member.size), x]),
            rng.random(member.size) < sigmoid(0.4 * x),
            prior_sd=10.0,
            clusters=member,
        )
        assert fitted.robust is not None
        slopes += abs(fitted.coefficients[1] - 0.4) <= t95(scenarios - 1) * math.sqrt(fitted.robust[1, 1])
    assert 0.92 <= shares / trials <= 0.995
    assert 0.92 <= means / trials <= 0.985
    assert 0.91 <= slopes / (trials // 2) <= 1


def test_the_wins_of_texts_that_speak_to_a_judge_are_counted_where_one_side_has_one() -> None:
    both, one, other = (JudgeDirected(a=a, b=b) for a, b in (("x", "y"), ("as the judge", None), (None, "z")))
    pairs = [
        pair(0, 1, oracle("a", "a"), scenario=0, directed=one),
        pair(0, 1, oracle("a", "b"), scenario=1, directed=other),
        pair(0, 1, oracle("a", "a"), scenario=2, directed=both),
        pair(0, 1, oracle("b", "b"), scenario=3),
        pair(0, 1, oracle("?", "a"), scenario=4, directed=one),
    ]
    report = report_on(pairs, {})
    assert report["judge_directed"]["n"] == 4
    assert report["judge_directed"]["share"]["value"] == 0.8
    assert report["judge_directed"]["found"] == ["as the judge", "z", "x"]
    wins = report["judges"][0]["judge_directed"]
    assert (wins["value"], wins["n"]) == (0.75, 2)
    text = "\n".join(render(json.loads(json.dumps(report))))
    assert "judge_directed: 4 = 80.0%" in text
    assert '  "as the judge"' in text
    assert "their wins   75.0%" in text
    none = report_on([pairs[3]], {})
    assert none["judges"][0]["judge_directed"] is None
    assert "Texts that speak to a judge" not in "\n".join(render(none))
