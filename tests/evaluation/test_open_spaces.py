"""Measures over spaces of any dimensions and roles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from edgen.core.values import Scenario, Turn
from edgen.evaluation.measuring import ArmMeasures, measure, render
from edgen.evaluation.sample import DataSet, PlannedOutcome, Sample
from edgen.families.dialogue import DIALOGUE
from edgen.space import Dimension, Entry, Space, SpaceRole

ROLES = (
    SpaceRole("Tutor", ("topic", "style")),
    SpaceRole("Learner", ("topic", "misconception")),
    SpaceRole("Parent", ("topic", "worry")),
)
SPACE = Space(
    name="fractions",
    dimensions=(
        Dimension("topic", (Entry("adding", fields={"grade": 4}), Entry("comparing", fields={"grade": 3}))),
        Dimension("style", (Entry("asks Socratic questions"), Entry("tells at once"))),
        Dimension(
            "misconception",
            (
                Entry("adds the denominators"),
                Entry("larger is always bigger", when={"topic": ("comparing",)}),
            ),
        ),
        Dimension("worry", (Entry("worried about grades"), Entry("worried about sleep"))),
    ),
    roles=ROLES,
)


def sample(
    index: int, *lines: tuple[str, str], split: Literal["train", "test"] | None = None, **values: str
) -> Sample:
    chosen = {one.name: one.entries[0].value for one in SPACE.dimensions} | values
    grade = {"topic": {"grade": 4 if chosen["topic"] == "adding" else 3}}
    turns = tuple(Turn(role, text) for role, text in lines)
    return Sample(
        id=f"fractions-{index:06d}-r0", source="test", split=split, scenario=Scenario(index, chosen, grade),
        turns=turns, entries=len(turns),
    )  # fmt: skip


def quality(
    samples: Sequence[Sample], plan: Sequence[PlannedOutcome] | None = None, **more: Any
) -> ArmMeasures:
    data = DataSet(
        name="fractions", samples=lambda: iter(samples), plan=lambda: None if plan is None else iter(plan),
        family=DIALOGUE, roles=ROLES, find_space=lambda: SPACE,
    )  # fmt: skip
    return measure(data, **more)


TALK = (("Tutor", "What is a half"), ("Learner", "a part"), ("Parent", "Is it hard for her"))


def test_a_role_leaks_what_is_outside_its_view() -> None:
    told = quality(
        [
            sample(0, *TALK),
            sample(1, *TALK, ("Tutor", "Mother is worried about grades, I hear")),
            sample(2, ("Parent", "I am worried about grades"), ("Tutor", "You are worried about grades?")),
            sample(3, *TALK, ("Parent", "he adds the denominators"), topic="comparing"),
        ]
    ).values["leaks"]
    assert told.examples == ("fractions-000001-r0", "fractions-000003-r0")
    assert told.by == {"style": 0, "misconception": 1, "worry": 1}


def test_cells_that_conditions_rule_out_do_not_count_and_fields_are_told_of() -> None:
    plan = [
        PlannedOutcome(sample(i).scenario, 0, "accepted" if i else "rejected", None if i else "loop")
        for i in range(4)
    ]
    found = quality([sample(i, *TALK) for i in range(1, 4)], plan).values["coverage"]
    assert found.cells == 12  # of 16
    assert (found.planned, found.planned_cells, found.lost_cells) == (4, 1, 0)
    assert [each.name for each in found.dimensions] == [
        "topic",
        "style",
        "misconception",
        "worry",
        "topic.grade",
    ]
    assert found.dimensions[-1].unplanned == ("3",)
    # facts that only the second role knows, by facts that only the first knows
    assert [(table.row_dimension, table.column_dimension) for table in found.heat] == [
        ("misconception", "style")
    ]


def test_every_role_has_its_words_and_its_share() -> None:
    found = quality([sample(0, *TALK), sample(1, *TALK)])
    assert list(found.values["lengths"].words_per_turn) == ["Tutor", "Learner", "Parent"]
    balance = found.as_json()["balance"]
    assert "teacher_words" not in balance
    assert balance["begins"] == {"Tutor": 2, "Learner": 0, "Parent": 0}
    assert balance["shares"]["Learner"]["words"]["median"] == 2 / 11
    assert found.overview.ended_by == {"Tutor": 0, "Learner": 0, "Parent": 0, "nobody": 2}


def test_what_train_knows_is_told_by_dimension() -> None:
    found = quality(
        [
            sample(0, *TALK, split="train"), sample(1, *TALK, split="test", worry="worried about sleep"),
            sample(2, *TALK, split="test"),
        ]
    ).values["leakage"]  # fmt: skip
    assert list(found.groups) == ["topic", "style", "misconception", "worry", "all dimensions"]
    assert (found.groups["worry"].share, found.groups["topic"].share) == (0.5, 1.0)
    assert found.groups["all dimensions"].shared_conversations == 1


def test_measures_of_another_family_are_skipped_in_a_sentence() -> None:
    found = quality([sample(0, *TALK)], only=["adherence", "lengths"])
    assert list(found.values) == ["lengths"]
    (note,) = found.notes
    assert note == (
        "Not measured: adherence. This is for conversations of the education family, and these are of the dialogue family."
    )
    assert any("Not measured" in line for line in render(found))
    assert all(len(line) <= 80 for line in render(quality([sample(0, *TALK)])))
