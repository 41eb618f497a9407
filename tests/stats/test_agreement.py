"""Agreement against its formulas, written in full."""

from __future__ import annotations

import itertools
from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgen.stats import agreement as stats
from edgen.stats.agreement import agreement
from tests.timing import takes_under


def cohen(rows: list[tuple[int, int]]) -> float:
    n = len(rows)
    observed = sum(x == y for x, y in rows) / n
    first, second = Counter(x for x, _ in rows), Counter(y for _, y in rows)
    chance = sum(first[k] * second[k] for k in first) / n**2
    return (observed - chance) / (1 - chance)


def krippendorff(items: list[list[int]]) -> float:
    """Return one minus observed over expected disagreement, over all ordered pairs of labels."""
    items = [labels for labels in items if len(labels) > 1]
    count = Counter(label for labels in items for label in labels)
    total = sum(count.values())
    observed = sum(
        sum(x != y for x, y in itertools.permutations(labels, 2)) / (len(labels) - 1) for labels in items
    )
    expected = sum(count[x] * count[y] for x, y in itertools.permutations(count, 2)) / (total - 1)
    return 1 - observed / expected


ratings = st.lists(st.tuples(*[st.sampled_from([-1, 0, 1])] * 3), max_size=40)


@given(ratings)
@settings(deadline=None)
def test_it_is_what_the_formulas_say(rows: list[tuple[int, int, int]]) -> None:
    columns = {name: [row[k] for row in rows] for k, name in enumerate("opq")}
    found = agreement(columns, range(len(rows)))
    items = [labels for row in rows if len(labels := [x for x in row if x]) > 1]
    assert found["n"] == len(items)
    if len({x for labels in items for x in labels}) > 1:
        assert found["alpha"] == pytest.approx(krippendorff(items))
    else:
        assert found["alpha"] is None
    for entry, (i, j) in zip(found["between"], [(0, 1), (0, 2), (1, 2)], strict=True):
        both = [(row[i], row[j]) for row in rows if row[i] and row[j]]
        assert entry["sources"] == ["opq"[i], "opq"[j]]
        assert entry["n"] == len(both)
        if len({x for two in both for x in two}) > 1:
            assert entry["kappa"] == pytest.approx(cohen(both))
            assert entry["alpha"] == pytest.approx(krippendorff([list(two) for two in both]))
            assert entry["observed"] == pytest.approx(sum(x == y for x, y in both) / len(both))
        else:
            assert entry["kappa"] is None
            assert entry["alpha"] is None


def test_ten_thousand_pairs_by_three_sources_are_quick() -> None:
    rng = Random(1)
    columns = {name: [rng.choice([-1, 0, 1]) for _ in range(10_000)] for name in "opq"}
    assert takes_under(5, lambda: agreement(columns, range(10_000)))


def test_nobody_agrees_about_nothing() -> None:
    assert agreement({"o": [], "p": []}, []) == {
        "n": 0,
        "alpha": None,
        "between": [
            {
                "sources": ["o", "p"],
                "n": 0,
                "observed": None,
                "kappa": None,
                "kappa_interval": None,
                "alpha": None,
                "alpha_interval": None,
            }
        ],
    }


def planted(
    rng: Random, scenarios: int, each: int, kappa: float = 0.8
) -> tuple[dict[str, list[int]], list[int]]:
    """Return two sources that agree in a share `kappa` of cases and otherwise toss a coin."""
    first = [rng.choice([-1, 1]) for _ in range(scenarios * each)]
    second = [x if rng.random() < kappa else rng.choice([-1, 1]) for x in first]
    return {"o": first, "p": second}, [i // each for i in range(scenarios * each)]


def test_the_intervals_hold_what_they_promise() -> None:
    rng = Random(3)
    kappa = alpha = 0
    for _ in range(80):
        (row,) = agreement(*planted(rng, 60, 3))["between"]
        kappa += row["kappa_interval"][0] <= 0.8 <= row["kappa_interval"][1]
        alpha += row["alpha_interval"][0] <= 0.8 <= row["alpha_interval"][1]
        assert row["kappa_interval"][0] <= row["kappa"] <= row["kappa_interval"][1]
        assert row["alpha_interval"][0] <= row["alpha"] <= row["alpha_interval"][1]
    assert 70 <= kappa <= 80
    assert 70 <= alpha <= 80


def test_intervals_over_few_scenarios_are_not_too_short() -> None:
    rng = Random(5)
    rows = [agreement(*planted(rng, 10, 3, 0.4))["between"][0] for _ in range(150)]
    for name in ("kappa", "alpha"):
        spans = [row[f"{name}_interval"] for row in rows]
        assert sum(low <= 0.4 <= high for low, high in spans) >= 0.93 * len(spans)
    (few,) = agreement(*planted(Random(5), 4, 3))["between"]
    assert few["kappa"] is not None
    assert few["kappa_interval"] is None


def test_intervals_are_around_their_value_where_one_label_is_rare_too() -> None:
    rng = Random(8)
    first = [-1 if rng.random() < 0.2 else 1 for _ in range(2_000)]
    second = [-1 if rng.random() < 0.1 else x for x in first]
    (row,) = agreement({"o": first, "p": second}, range(2_000))["between"]
    for name in ("kappa", "alpha"):
        low, high = row[f"{name}_interval"]
        assert low < row[name] < high
        assert high - low < 0.1
        assert (low + high) / 2 == pytest.approx(row[name], abs=0.01)


def test_copies_within_a_scenario_make_nothing_more_certain() -> None:
    columns, scenarios = planted(Random(4), 100, 1)
    (once,) = agreement(columns, scenarios)["between"]
    (often,) = agreement({k: v * 5 for k, v in columns.items()}, scenarios * 5)["between"]
    assert often["kappa_interval"] == pytest.approx(once["kappa_interval"])
    (alone,) = agreement(columns, [7] * 100)["between"]
    assert alone["kappa"] == once["kappa"]
    assert alone["kappa_interval"] is None


@pytest.mark.integration
def test_figures_are_those_of_nltk_to_the_last_digit() -> None:
    from nltk.metrics import masi_distance  # type: ignore[import-untyped]
    from nltk.metrics.agreement import AnnotationTask  # type: ignore[import-untyped]

    for seed in range(150):
        draw = Random(seed)
        items = [
            [frozenset(draw.sample("wxyz", draw.choice((1, 1, 2, 3)))) for _ in range(draw.choice((2, 3)))]
            for _ in range(draw.randrange(2, 20))
        ]
        triples = [
            (str(by), place, one) for place, labels in enumerate(items) for by, one in enumerate(labels)
        ]
        if len({one for labels in items for one in labels}) > 1:
            assert (
                stats.krippendorff(items, stats.masi)
                == AnnotationTask(data=triples, distance=masi_distance).alpha()
            )
            assert stats.krippendorff(items) == AnnotationTask(data=triples).alpha()
        columns = {name: [draw.choice((1, 1, -1)) for _ in items] for name in "ab"}
        (found,) = agreement(columns, range(len(items)))["between"]
        if found["kappa"] is not None:
            data = [(name, place, one) for name, given in columns.items() for place, one in enumerate(given)]
            assert found["kappa"] == AnnotationTask(data=data).kappa_pairwise("a", "b")
