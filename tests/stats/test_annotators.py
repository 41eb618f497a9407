"""Kappa and alpha of annotators are those of nltk, which has its own way to them."""

from __future__ import annotations

import random
from typing import Any

import pytest
from nltk.metrics import masi_distance
from nltk.metrics.agreement import AnnotationTask

from edgen.stats.annotators import AgreementCounts, AnnotatorAgreement

NAMES = ("a", "b", "c")


def agreement(table: list[dict[str, frozenset[str]]]) -> AnnotatorAgreement:
    counts = AgreementCounts()
    for unit in table:
        counts.add({name: sorted(labels) for name, labels in unit.items()})
    return counts.result()


@pytest.mark.parametrize("seed", range(40))
def test_they_are_those_of_nltk(seed: int) -> None:
    draw = random.Random(seed)
    sets = [frozenset(draw.sample("wxyz", draw.choice((1, 1, 2, 3)))) for _ in range(5)]
    table = []
    for _ in range(draw.randrange(5, 40)):
        usual = draw.choice(sets)
        said = {name: usual if draw.random() < 0.6 else draw.choice(sets) for name in NAMES}
        table.append({name: said[name] for name in NAMES if draw.random() < 0.8})
    found = agreement(table)
    several = [(place, unit) for place, unit in enumerate(table) if len(unit) > 1]
    data = [(name, place, labels) for place, unit in several for name, labels in unit.items()]
    assert found.units == len(several)
    assert found.alpha == pytest.approx(AnnotationTask(data=data).alpha())
    assert found.alpha_masi == pytest.approx(AnnotationTask(data=data, distance=masi_distance).alpha())
    for one in found.between:
        both: list[Any] = [
            row for row in data if row[0] in one.annotators and {*one.annotators} <= {*table[row[1]]}
        ]
        assert one.kappa == pytest.approx(AnnotationTask(data=both).kappa_pairwise(*one.annotators))


def test_where_there_is_no_chance_there_is_no_value() -> None:
    same = [{"a": frozenset("x"), "b": frozenset("x")}] * 5
    found = agreement(same)
    assert (found.units, found.alpha, found.alpha_masi, found.between[0].kappa) == (5, None, None, None)
    assert found.between[0].observed == 1
    alone = agreement([{"a": frozenset("x")}])
    assert (alone.units, alone.alpha, alone.between) == (0, None, ())
