"""Requests for the answer, and the teacher's reactions to them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgen.evaluation.sample import Sample
from tests.evaluation.said import count_of, lesson, measured, samples

TOLD = "T A delta is the land that a river builds at its mouth."
BACK = "T What do you think it is?"


@pytest.mark.parametrize(
    ("turn", "reply", "asked", "given_"),
    [
        ("S Just tell me!", TOLD, 1, 1),
        ("S What is the answer?", BACK, 1, 0),
        ("S Can you just explain it?", f"{TOLD} Why do you think so?", 1, 0),  # answers, then asks
        ("S Please explain.", f"{TOLD} Does that make sense?", 1, 1),  # the question is a courtesy
        ("S Just tell me!", "T No.", 1, 0),
        ("S Just tell me!", "S Please.", 1, 0),
        ("S Just tell me!", None, 1, 0),
        ("S A delta is land.", TOLD, 0, 0),
        ("T Just tell me what it is.", TOLD, 0, 0),  # the teacher says these words
    ],
)
def test_who_asks_is_told_or_not(turn: str, reply: str | None, asked: int, given_: int) -> None:
    found = measured(count_of("answers"), lesson("T Hello.", turn, *([reply] if reply else [])))
    assert (found.asked, found.given) == (asked, given_)
    assert (found.rate is None) == (asked == 0)


def test_rates() -> None:
    found = measured(
        count_of("answers"),
        lesson("T Ready?", "S Just tell me!", TOLD, "S Just tell me!", BACK, index=0),
        lesson("T Listen.", "S Just tell me!", BACK, index=1),
    )
    assert (found.asked, found.given) == (3, 1)
    assert found.rate is not None
    assert found.rate.value == pytest.approx(1 / 3)
    assert found.rate.scenarios == 2
    assert found.telling is not None
    assert found.telling.value == 2 / 5
    assert measured(count_of("answers")).telling is None


@settings(max_examples=25, deadline=None)
@given(st.lists(samples(), max_size=4))
def test_nothing_raises(given_: list[Sample]) -> None:
    found = measured(count_of("answers"), *given_)
    assert 0 <= found.given <= found.asked
    assert found.telling is None or 0 <= found.telling.value <= 1
