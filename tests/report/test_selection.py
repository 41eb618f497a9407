"""The conversations that a report shows."""

from __future__ import annotations

import random

import pytest

from edgen.core.values import Turn
from edgen.evaluation.sample import Sample, cut
from edgen.report.model import PickedConversation
from edgen.report.selection import SHOWN, ReportSelection
from tests.scenarios import scenario_of

pytestmark = pytest.mark.unit

MATCH = ("hands-on activities", "hands-on activities")
MISMATCH = ("hands-on activities", "direct instruction/lecture-based learning")


def sample(
    number: int, *texts: str, probability: float | None = 0.5, ways: tuple[str, str] = MATCH, **more: object
) -> Sample:
    turns = tuple(Turn("Student" if place % 2 else "Teacher", text) for place, text in enumerate(texts))
    return Sample(
        id=f"r-{number:06d}-r0",
        source="r",
        split="train",
        scenario=scenario_of(number, "DNA", ways[0], "and gets rude otherwise", ways[1], "but might adapt"),
        turns=turns,
        entries=len(turns),
        probability=probability,
        **{"ended_by": "Student", **more},  # type: ignore[arg-type]
    )


def chosen(samples: list[Sample]) -> list[PickedConversation]:
    chooser = ReportSelection()
    for one in samples:
        chooser.see(one, cut(one.turns))
    return chooser.choose_picks([])


def usual(count: int) -> list[Sample]:
    # sizes around 20 words a turn, no two equal
    return [
        sample(n, "word " * (20 + n % 7), "word " * (18 + n % 5), probability=0.4 + n % 3 / 10)
        for n in range(count)
    ]


def test_the_extremes_are_found_and_said() -> None:
    samples = [
        *usual(40),
        sample(100, "a", "b"),
        sample(101, "word " * 400, "word " * 390),
        sample(102, "word " * 20, "word " * 18, probability=0.01),
        sample(103, "word " * 20, "word " * 18, probability=0.97),
        sample(104, "word " * 20, "word " * 18, probability=0.9, ways=MISMATCH),
        sample(105, "word " * 20, "word " * 18, repairs=("markdown", "quotes")),
        sample(106, "word " * 45, "x"),
        sample(107, "word " * 20, "word " * 18, ended_by=None),
        sample(108, "word " * 20, "word " * 18, probability=None),
    ]
    said = {pick.id: "; ".join(pick.why) for pick in chosen(samples)}
    expected = {
        100: "shortest: 2 words",
        101: "longest: 790 words",
        102: "lowest probability",
        103: "highest probability",
        104: "prefer different ways, but the probability is 0.9",
        105: "most repairs by the reader: markdown and quotes",
        106: "most one-sided: 98%",
        107: "ended by nobody, like 2.0% of the conversations",
        108: "states no probability",
    }
    for number, words in expected.items():
        assert words in said[f"r-{number:06d}-r0"]
    assert "typical" in next(iter(said.values()))
    assert len(said) == SHOWN


def test_the_order_does_not_matter() -> None:
    samples = usual(300)
    first = chosen(samples)
    for seed in range(5):
        random.Random(seed).shuffle(samples)
        assert chosen(samples) == first


def test_of_equals_the_first_by_id_is_shown() -> None:
    ties = [sample(n, "a", "b") for n in (101, 100, 102)]
    for order in ([0, 1, 2], [2, 1, 0], [1, 0, 2]):
        said = {pick.id: pick.why for pick in chosen([*usual(40), *(ties[place] for place in order)])}
        assert any(why.startswith("shortest") for why in said["r-000100-r0"])


def test_all_are_shown_where_there_are_few() -> None:
    assert chosen([]) == []
    assert len(chosen(usual(1))) == 1
    found = chosen(usual(12))
    assert len({pick.id for pick in found}) == 12
    assert all(pick.why and all(pick.why) for pick in found)
    assert len(chosen(usual(5000))) == SHOWN


def test_any_conversation_can_be_looked_at() -> None:
    found = chosen([sample(0), sample(1, ""), sample(2, "🙂", "\u202e\x00", probability=None, ended_by=None)])
    assert len(found) == 3


def test_no_probability_is_worth_a_word_only_where_others_state_one() -> None:
    clauses = [
        why
        for pick in chosen([sample(n, "a b", "c", probability=None) for n in range(20)])
        for why in pick.why
    ]
    assert "states no probability" not in clauses
    mixed = [*usual(20), sample(100, "word " * 20, "word " * 18, probability=None)]
    assert [w for pick in chosen(mixed) for w in pick.why if "states no" in w] == ["states no probability"]
