"""Adherence by keywords, on planted lessons in which the answer to each question is yes, no or not
applicable."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgen.core.values import Turn
from edgen.domains.education.keywords import (
    MEASURES,
    VerdictCount,
    Verdicts,
    has_question,
    has_statement,
    judge_by_keywords,
    read_statements,
)
from edgen.evaluation.sample import Sample, cut
from edgen.reading.phrase_kinds import find_families
from tests.evaluation.said import HANDS, LECTURE, QUIZ, TALES, TALK, lesson, measured, samples
from tests.scenarios import scenario_of
from tests.timing import takes_at_most


def said(sample: Sample) -> Verdicts:
    return judge_by_keywords(sample.scenario, sample.turns, cut(sample.turns).spoken)


@pytest.mark.parametrize(
    ("likes", "turn", "expected"),
    [
        (LECTURE, "Can't you just tell me how it works?", True),
        (LECTURE, "I’d rather you explained it to me.", True),
        (LECTURE, "Can we do an experiment?", False),
        (LECTURE, "You explain it well.", False),  # names the preference without asking for it
        (LECTURE, "I'm just not made for lectures.", False),
        (HANDS, "Could we do something hands-on instead?", True),
        (HANDS, "Is there any way to relate it to our lives?", True),
        (HANDS, "Okay.", False),
        (TALES, "I'd learn better if we played a game.", True),
        (QUIZ, "Could you quiz me on it?", True),
        ("visual aids and charts", "Is there a diagram?", True),
        ("working with a partner", "May I do this with a partner?", True),
        ("seeing the big picture before any details", "Can we see the big picture?", None),  # no known family
        ("", "Can we talk about it?", None),
    ],
)
def test_a_student_asks_for_its_way(likes: str, turn: str, expected: bool | None) -> None:
    found = said(lesson("T Good morning.", f"S {turn}", "T Well.", likes=likes))
    assert found.student_asks is expected


@pytest.mark.parametrize(
    ("reaction", "turn", "expected"),
    [
        ("and gets rude otherwise", "This is stupid.", True),
        ("and gets rude otherwise", "All right.", False),
        ("and gets frustrated otherwise", "Ugh, I don't get it!", True),
        ("and gets anxious otherwise", "I'm nervous about this.", True),
        ("and gets disengaged otherwise", "*yawns* If you say so.", True),
        ("and might tell it to the teacher", "Can't you just explain it?", True),  # asks for its method
        ("but might adapt to other methods", "I'll give it a chance.", True),
        ("and hums a tune", "Hm hm hm.", None),
    ],
)
def test_a_students_reaction(reaction: str, turn: str, expected: bool | None) -> None:
    lines = ("T What do you think?", f"S {turn}", "T Why might that be?")
    assert said(lesson(*lines, student=reaction)).student_reaction is expected
    # "otherwise" needs different preferences: there is no occasion if both prefer the same method.
    assert said(lesson(*lines, student=reaction, has=LECTURE)).student_reaction is None


@pytest.mark.parametrize(
    ("reaction", "turn", "expected"),
    [
        ("and gives up otherwise", "I'm done here.", True),
        ("and gives up otherwise", "Let us go on.", False),
        ("and blames the student otherwise", "It's not my fault that you don't pay attention.", True),
        ("and might insist on teaching this way", "Trust me, we stay with questions.", True),
        (
            "but might adapt to the student",
            "Rivers carve valleys over many thousands of years.",
            True,
        ),  # leaves the teacher's own method
        ("and whistles", "I'm done here.", None),
    ],
)
def test_a_teachers_reaction(reaction: str, turn: str, expected: bool | None) -> None:
    assert said(lesson("T Hello.", "S No.", f"T {turn}", teacher=reaction)).teacher_reaction is expected


TOLD = "T Rivers carve valleys over many thousands of years."
ASKED = "T Why do rivers carve valleys?"


@pytest.mark.parametrize(
    ("likes", "has", "lines", "keeps", "leaves"),
    [
        (LECTURE, TALK, (TOLD, "S Oh.", ASKED, "S Hm.", ASKED), True, False),
        (LECTURE, TALK, (ASKED, "S Oh.", ASKED, "S Hm.", TOLD), False, True),
        (
            LECTURE,
            TALK,
            (ASKED, "S Oh.", TOLD, "S Hm.", "T Goodbye!"),
            False,
            True,
        ),  # the last turn that shows a method counts
        (LECTURE, TALK, ("T Hello.", "S Oh.", "T Goodbye!"), False, False),
        (LECTURE, LECTURE, (ASKED, "S Oh.", TOLD), True, None),  # both prefer the same method
        (LECTURE, LECTURE, (TOLD, "S Oh.", ASKED), False, None),
        # A form that both methods share decides nothing; the words decide.
        (TALK, QUIZ, (ASKED, "S Oh.", ASKED), False, False),
        (TALK, QUIZ, (ASKED, "S Oh.", "T Let's discuss it. Why is that?"), False, True),
        (TALK, QUIZ, (ASKED, "S Oh.", "T Now a quick quiz. Why is that?"), True, False),
        (LECTURE, HANDS, ("T Jump!", "S Why?", "T *jumps*"), True, False),
        (LECTURE, "whatever comes", (TOLD,), None, None),
        (LECTURE, TALK, ("S Hello?",), None, None),
    ],
)
def test_a_teacher_keeps_to_its_way_or_leaves_it(
    likes: str, has: str, lines: tuple[str, ...], keeps: bool | None, leaves: bool | None
) -> None:
    found = said(lesson(*lines, likes=likes, has=has))
    assert (found.teacher_keeps, found.teacher_leaves) == (keeps, leaves)


def test_telling_and_asking() -> None:
    assert has_statement("Well. Rivers carve valleys over many thousands of years.")
    assert not has_statement("I think that you will enjoy this one a lot.")
    assert not has_statement("Rivers carve valleys.")
    assert has_question("Good. Why do rivers bend?")
    assert not has_question("Does that make sense? Any other questions?")


def test_what_a_scenario_states() -> None:
    assert find_families(LECTURE) == ("lecture",)
    assert read_statements(lesson(likes=LECTURE, has=TALK).scenario).match is False
    assert (
        read_statements(lesson(likes=HANDS, has="experiential learning/hands-on activities").scenario).match
        is True
    )
    assert read_statements(lesson(likes="Seeing it all", has="seeing it all ").scenario).match is True
    assert read_statements(lesson(likes="seeing it all", has=TALK).scenario).match is None
    assert read_statements(lesson(likes="", has="").scenario).match is None


def test_shares_are_over_what_can_be_told() -> None:
    asking = ("T What do you think?", "S Can't you just tell me?", "T What do you think?")
    (found,) = measured(
        VerdictCount(),
        lesson(*asking, index=0),
        lesson("T Hello.", "S Okay.", TOLD, index=1),
        lesson(*asking, index=2, likes="something of its own"),
    )
    assert (found.by, found.n) == ("keywords", 3)
    assert found.student_asks is not None
    assert (found.student_asks.value, found.student_asks.n) == (0.5, 2)
    assert found.untold == {
        "student_asks": 1, "student_reaction": 1, "teacher_reaction": 1, "teacher_keeps": 0, "teacher_leaves": 1,
    }  # fmt: skip
    assert found.note is not None
    assert "baseline" in found.note


def test_nothing_is_no_share() -> None:
    (found,) = measured(VerdictCount())
    assert found.n == 0
    assert all(getattr(found, name) is None for name in MEASURES)


# One reader's answers on the released sample, in the order of MEASURES: yes, no, - (no occasion).
READ = [
    "yyyny", "y--y-", "n--y-", "yynny", "yyyyn", "nnnyn", "yynny", "nnnyn", "ynyny", "yyynn",
    "nnnyn", "y--y-", "yynyy", "y--n-", "y--y-", "y--n-", "n--y-", "yyyyn", "yyyyn",
]  # fmt: skip


def _cleaned(record: dict[str, Any]) -> tuple[Turn, ...]:
    turns = []
    for turn in record["conversation"]:
        text = re.sub(r"(?i)\[end of conversation\].*", "", turn["text"]).strip()
        text = re.sub(r'"+,?$|" \([^()]*\)$', "", text).strip()
        if text.strip('",. '):
            turns.append(Turn(turn["role"], text))
    return tuple(turns)


def test_a_reader_agrees_on_the_released_sample(shared_data: Path) -> None:
    records = json.loads((shared_data / "ed_release_sample.json").read_bytes())
    answers = {"y": True, "n": False, "-": None}
    agreed = told = 0
    for index, (record, read) in enumerate(zip(records, READ, strict=True)):
        about = record["background_info"]
        scenario = scenario_of(
            index, about["topic"], about["student_prefrences"], about["student_reactions"],
            about["teacher_prefrences"], about["teacher_reactions"],
        )  # fmt: skip
        turns = _cleaned(record)
        for mark, found in zip(read, judge_by_keywords(scenario, turns, cut(turns).spoken), strict=True):
            assert (answers[mark] is None) == (found is None)
            told += found is not None
            agreed += found is not None and found is answers[mark]
    assert (agreed, told) == (69, 74)


@settings(max_examples=25, deadline=None)
@given(st.lists(samples(), max_size=5))
def test_nothing_raises_and_shares_are_shares(given_: list[Sample]) -> None:
    (found,) = measured(VerdictCount(), *given_)
    for name in MEASURES:
        share = getattr(found, name)
        assert (share is None) == (found.untold[name] == found.n)
        assert share is None or 0 <= share.value <= 1


@pytest.mark.parametrize(
    "unit", ["a ", "*a", "? ", "can you. ", "the river is long and wide and deep. ", "/", "\n"]
)
def test_long_texts_take_time_in_proportion(unit: str) -> None:
    def read_texts(size: int) -> Callable[[], object]:
        text = unit * (size // len(unit))
        sample = lesson(f"T {text}", f"S {text}", f"T {text}", likes=LECTURE + text, has=TALK + text)
        said = cut(sample.turns).spoken
        return lambda: judge_by_keywords(sample.scenario, sample.turns, said)

    assert takes_at_most(40, read_texts(400_000), read_texts(40_000))
