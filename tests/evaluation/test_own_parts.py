"""Measures declare their columns; the parts that they bring themselves are bounded, with reasons.

Tests that name measures of domains need all of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from edgen.core.registry import find
from edgen.evaluation.measure import (
    PARTS,
    JudgeAnswers,
    Measure,
    NeedsDataSet,
    OwnComparisons,
    OwnCount,
    OwnTexts,
    list_flaws,
)
from edgen.evaluation.measuring import list_measures
from edgen.evaluation.panels import Panel, Sentence, TablePanel
from edgen.plugin import Sample, Share, Words

OWN_LINES = {
    "calibration": "a judge has a row for its pairs and one for its log probabilities, worded by what is known",
    "coverage": "tables with a column for what was planned, accepted and lost",
    "labels": "rows of layers, roles and pairs of annotators, each only if there are several",
    "reference_overlap": "a line on the library that is missing",
}
OWN_PICTURES = {
    "calibration": "reliability curves",
    "coverage": "heat maps of the space, and the outcome of each value",
    "diversity": "the growth of the vocabulary with Heaps' law",
    "labels": "matrices of labels and annotators",
    "states": "the machine, with the transitions that were taken",
}
OWN_COMPARISONS = {
    "actions": "the share of each action among the utterances of its role",
    "labels": "the share of each label among the units of its layer and role; the mean if all are numbers",
}
MOST_NAMES = 14  # public names of the base class


@pytest.mark.integration
def test_a_fifth_of_the_measures_at_most_word_their_own_lines() -> None:
    every = list_measures()
    own = {one.name for one in every if isinstance(one, OwnTexts) and type(one).lines is not OwnTexts.lines}
    assert own == OWN_LINES.keys()
    assert len(own) <= len(every) / 5
    assert {one.name for one in every if isinstance(one, OwnComparisons)} == OWN_COMPARISONS.keys()


@pytest.mark.integration
def test_pictures_of_their_own_are_panels_with_reasons() -> None:
    declared = Panel | TablePanel | Sentence
    own = {
        one.name
        for one in list_measures()
        if not all(isinstance(panel, declared) for panel in one.panels or ())
    }
    assert own == OWN_PICTURES.keys()


def test_no_measure_defines_what_only_a_part_has() -> None:
    for one in list_measures():
        assert [*list_flaws(one)] == []
        assert not hasattr(one, "blocks"), one.name
        assert not hasattr(one, "shown"), one.name


def test_the_class_of_measures_is_small() -> None:
    names = {name for name in (*vars(Measure), *Measure.__annotations__) if not name.startswith("_")}
    assert len(names) <= MOST_NAMES, sorted(names)
    each = [
        name for part in PARTS for name in (*vars(part), *part.__annotations__) if not name.startswith("_")
    ]
    assert not names & {*each}
    assert max(len([name for name in vars(part) if not name.startswith("_")]) for part in PARTS) <= 3


@pytest.mark.integration
def test_the_parts_that_measures_have() -> None:
    assert [one.name for one in list_measures() if one.describes_plan] == ["coverage"]
    assert isinstance(find("measure", "adherence"), JudgeAnswers)
    assert isinstance(find("measure", "served"), NeedsDataSet)
    assert isinstance(find("measure", "lengths"), OwnTexts)


@pytest.mark.parametrize(
    ("name", "part"),
    [("lines", OwnTexts), ("sums", OwnComparisons), ("counts", OwnCount), ("finish", NeedsDataSet)],
)
def test_a_name_of_a_part_needs_the_part(name: str, part: type) -> None:
    class Misplaced(Measure[Any]):
        definition = "Mine."
        aggregates = (Share("any"),)

        def of_one(self, sample: Sample, words: Words, space: Any) -> Mapping[str, Any]:
            return {"any": True}

    own = type("Misplaced", (Misplaced,), {name: lambda *_: ()})
    (flaw,) = list_flaws(own())
    assert flaw.startswith(f"defines `{name}`, which belongs to {part.__name__}; derive from it as well")
    right = type("Right", (Misplaced, part), {name: lambda *_: ()})
    assert [*list_flaws(right())] == []


@pytest.mark.parametrize(
    ("bases", "said"), [((Measure,), "of_one"), ((Measure, OwnCount), "`counts` nor `start`")]
)
def test_a_measure_without_columns_or_a_count_is_refused(bases: tuple[type, ...], said: str) -> None:
    with pytest.raises(TypeError, match=said):
        type("Empty", bases, {"name": "empty", "definition": "x"})()
