"""Leaks planted and not: which role cannot know a fact, and which said it first."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgen.evaluation.sample import Sample
from tests.evaluation.said import HANDS, LECTURE, QUIZ, TALK, count_of, lesson, measured, samples
from tests.timing import takes_at_most


def leaked(*lines: str, **scenario: str) -> dict[str, int]:
    found = measured(count_of("leaks"), lesson(*lines, **scenario))  # type: ignore[arg-type]
    assert found.conversations == any(found.by.values())
    return {field: count for field, count in found.by.items() if count}


@pytest.mark.parametrize(
    ("lines", "scenario", "fields"),
    [
        (("T You like Direct  Instruction, I hear.", "S Yes."), {}, {"student_preference"}),
        (("S I'd love direct instruction.", "T Then direct instruction it is."), {}, set()),  # spoken earlier
        (("T Direct instructions.", "S Yes."), {}, set()),  # other words
        (("S You like class discussions.", "T Yes."), {}, {"teacher_preference"}),
        (("T I like class discussions.", "S Class discussions?"), {}, set()),
        (("T Hands-on activities it is.", "S Yes."), {"likes": HANDS, "has": f"hands-on activities/{QUIZ}"}, set()),
        (("T You are one who gets rude.", "S Yes."), {}, {"student_reaction"}),
        (("S You know who gives up?", "T Yes."), {"teacher": "and then gives up otherwise"}, {"teacher_reaction"}),
        (("S You might insist on teaching this way.",), {"teacher": "and might insist on teaching this way"},
         {"teacher_reaction"}),
        (("T Lectures, lectures.",), {"likes": "lectures"}, set()),  # one word occurs by chance
        (("T River life is rich.",), {"likes": "river life", "topic": "River life"}, set()),
        (("T Hi.", "S Hello."), {"likes": "", "has": "", "student": "", "teacher": ""}, set()),
    ],
)  # fmt: skip
def test_what_leaks(lines: tuple[str, ...], scenario: dict[str, str], fields: set[str]) -> None:
    assert set(leaked(*lines, **scenario)) == fields


def test_conversations_are_counted_once_and_ten_are_named() -> None:
    both = ("T Direct instruction, lecture-based learning.", "S Class discussions, too.")
    found = measured(
        count_of("leaks"), *[lesson(*both, index=i) for i in range(12)], lesson("T Hi.", index=12)
    )
    assert found.conversations == 12
    assert found.by["student_preference"] == found.by["teacher_preference"] == 12
    assert len(found.examples) == 10
    assert found.share is not None
    assert found.share.value == 12 / 13
    assert measured(count_of("leaks")).share is None


@settings(max_examples=25, deadline=None)
@given(st.lists(samples(), max_size=4))
def test_nothing_raises(given_: list[Sample]) -> None:
    found = measured(count_of("leaks"), *given_)
    assert 0 <= found.conversations <= len(given_)
    assert max(found.by.values()) <= found.conversations


def test_many_turns_that_leak_take_time_in_proportion() -> None:
    def long(turns: int) -> Sample:
        lines = [
            "S You like class things.",
            *["T Direct instruction."] * turns,
            *["S class discussions"] * turns,
        ]
        return lesson(*lines, likes=LECTURE, has=TALK)

    small, large = long(2_000), long(20_000)
    assert takes_at_most(
        40, lambda: measured(count_of("leaks"), large), lambda: measured(count_of("leaks"), small)
    )
