"""Kappa and alpha of annotators equal those of nltk, which computes them differently."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from edgen.stats.annotators import AgreementCounts, AnnotatorAgreement
from edgen.stats.clusters import Clusters

NAMES = ("a", "b", "c")


def agreement(table: list[dict[str, frozenset[str]]]) -> AnnotatorAgreement:
    counts = AgreementCounts()
    for unit in table:
        counts.add({name: sorted(labels) for name, labels in unit.items()})
    return counts.result()


def random_table(draw: random.Random) -> list[dict[str, frozenset[str]]]:
    """Draw the labels of two or three annotators for a few units, equal more often than not."""
    sets = [frozenset(draw.sample("wxyz", draw.choice((1, 1, 2, 3)))) for _ in range(4)]
    names = NAMES[: draw.choice((2, 3))]
    table = []
    for _ in range(draw.randrange(4, 12)):
        usual = draw.choice(sets)
        said = {name: usual if draw.random() < 0.6 else draw.choice(sets) for name in names}
        table.append({name: said[name] for name in names if draw.random() < 0.8})
    return table


@pytest.mark.integration
def test_they_are_those_of_nltk_on_a_thousand_tables() -> None:
    from nltk.metrics import masi_distance
    from nltk.metrics.agreement import AnnotationTask

    told: Counter[str] = Counter()
    for seed in range(1000):
        table = random_table(random.Random(seed))
        found = agreement(table)
        data = [(name, place, labels) for place, unit in enumerate(table) if len(unit) > 1 for name, labels in unit.items()]  # fmt: skip
        assert found.units == len({place for _, place, _ in data})
        names = {name for unit in table for name in unit}
        by_all = [row for row in data if {*table[row[1]]} == names]
        assert found.units_by_all == len({place for _, place, _ in by_all})
        values: list[tuple[str, float | None, Any]] = [
            ("alpha", found.alpha, lambda data=data: AnnotationTask(data=data).alpha()),
            ("MASI", found.alpha_masi, lambda data=data: AnnotationTask(data=data, distance=masi_distance).alpha()),
            # what nltk calls pi of several is Fleiss' kappa
            ("Fleiss", found.fleiss, lambda data=by_all: AnnotationTask(data=data).pi()),
        ]  # fmt: skip
        for one in found.between:
            both = [row for row in data if row[0] in one.annotators and {*one.annotators} <= {*table[row[1]]}]
            values.append(("kappa", one.kappa, lambda data=both, one=one: AnnotationTask(data=data).kappa_pairwise(*one.annotators)))  # fmt: skip
        for name, value, theirs in values:
            if value is not None:
                told[name] += 1
                assert value == pytest.approx(theirs(), abs=1e-9), (seed, name)
    assert min(told.values()) > 900, "nearly every table tells"
    assert told["kappa"] > 1500


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """Intervals contain the truth at their stated rate.

    Three annotators each give the right one of two even labels with chance 0.85: all their kappas are (2 *
    0.85 - 1)^2 = 0.49.
    """
    held: Counter[str] = Counter()
    for seed in range(60):
        draw, counts = random.Random(seed), AgreementCounts()
        for scenario in range(30):
            for _ in range(4):
                true = draw.choice("xy")
                said = {name: [true if draw.random() < 0.85 else "xy".replace(true, "")] for name in NAMES}
                counts.add(said, scenario)
        found = counts.result()
        spans = {"alpha": found.alpha_interval, "Fleiss": found.fleiss_interval, "kappa": found.between[0].kappa_interval}  # fmt: skip
        for name, span in spans.items():
            assert span is not None
            held[name] += span[0] <= 0.49 <= span[1]
    assert min(held.values()) >= 51, (
        held
    )  # 57 are expected; 51 of 60 is three and a half standard errors less


def test_beyond_500_scenarios_the_clusters_are_as_many_and_their_intervals_as_long() -> None:
    draw, clusters = random.Random(2), Clusters()
    grouped, alone = AgreementCounts(), AgreementCounts()
    for scenario in range(1500):
        true = draw.choice("xy")
        said = {name: [true if draw.random() < 0.8 else draw.choice("xy")] for name in NAMES}
        grouped.add(said, clusters.of(scenario))
        alone.add(said, scenario)
    mine, theirs = grouped.result(), alone.result()
    assert {clusters.of(scenario) for scenario in range(5000)} == {*range(500)}
    assert mine.alpha == theirs.alpha
    assert mine.alpha_interval is not None
    assert theirs.alpha_interval is not None
    lengths = [span[1] - span[0] for span in (mine.alpha_interval, theirs.alpha_interval)]
    assert lengths[0] == pytest.approx(lengths[1], rel=0.15)


def test_where_there_is_no_chance_there_is_no_value() -> None:
    same = [{"a": frozenset("x"), "b": frozenset("x")}] * 5
    found = agreement(same)
    assert (found.units, found.alpha, found.alpha_masi, found.between[0].kappa) == (5, None, None, None)
    assert found.between[0].observed == 1
    alone = agreement([{"a": frozenset("x")}])
    assert (alone.units, alone.alpha, alone.between) == (0, None, ())
