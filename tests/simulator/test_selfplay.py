"""The simulator as one side of a lesson: one turn at a time, from that side's knowledge."""

from __future__ import annotations

import re
from collections import Counter
from statistics import mean, pstdev

import pytest

from edgen.core.values import END_MARKER, Message, Role
from edgen.reading import phrase_kinds
from edgen.simulator import judge
from edgen.simulator.conversation.turns import SECRETS, list_unambiguous
from edgen.simulator.faults import parse
from edgen.simulator.phrases.book import BOOK
from edgen.simulator.prompts import agent_prompt
from edgen.simulator.text import respond
from tests.simulator import lessons
from tests.simulator.prompts import (
    LEARNING,
    STUDENT_REACTIONS,
    TEACHER_REACTIONS,
    TEACHING,
    every_scenario,
)
from tests.timing import takes_under

Lesson = tuple[lessons.Said, Role | None]
SCENARIOS = 100
LABEL = re.compile(r"^\W*(?:teacher|student)\b[^:\n]*:", re.IGNORECASE | re.MULTILINE)


@pytest.fixture(scope="module")
def played() -> list[list[Lesson]]:
    """Return lessons of scenarios of the shipped spaces, three replicates of each."""
    return [
        [lessons.play(v, 3 * i + k) for k in range(3)] for i, v in enumerate(lessons.scenarios(SCENARIOS))
    ]


def test_lessons_have_two_sides_and_an_end(played: list[list[Lesson]]) -> None:
    lengths: Counter[int] = Counter()
    closers: Counter[Role | None] = Counter()
    for said, ended_by in (lesson for group in played for lesson in group):
        assert {role for role, _ in said} == {"Teacher", "Student"}
        lengths[len(said)] += 1
        closers[ended_by] += 1
        for _, text in said:
            assert text.strip() == text != ""
            assert "end of conversation" not in text
            assert not LABEL.search(text)
            assert "{" not in text
    assert set(lengths) == set(range(10, 16))
    assert min(lengths.values()) > SCENARIOS / 4
    assert set(closers) == {"Teacher", "Student"}


def test_nobody_repeats_a_turn(played: list[list[Lesson]]) -> None:
    for said, _ in (lesson for group in played for lesson in group):
        for role in ("Teacher", "Student"):
            own = [text for who, text in said if who == role]
            assert len(set(own)) == len(own), own


def test_nobody_says_a_preference_of_the_vocabulary(played: list[list[Lesson]]) -> None:
    """A side cannot know the other's preference, and must not quote its own."""
    scenarios = lessons.scenarios(SCENARIOS)
    phrases = {v[f"{who}_preference"].lower() for v in scenarios for who in ("teacher", "student")}
    for group in played:
        for said, _ in group:
            text = lessons.shown(said).lower()
            assert not [phrase for phrase in phrases if phrase in text]


def test_secrets_of_the_other_are_in_no_request() -> None:
    known = lessons.variables()
    said: lessons.Said = []
    for i in range(12):
        asked = "\n".join(message.content for message in lessons.messages(known, said))
        assert (LEARNING[2] in asked) == (i % 2 == 1)
        assert (TEACHING[0] in asked) == (i % 2 == 0)
        said.append(("Teacher" if i % 2 == 0 else "Student", lessons.turn(known, said, 1).text))


def test_replicates_and_branches_differ(played: list[list[Lesson]]) -> None:
    spreads = []
    for group in played:
        texts = [lessons.shown(said) for said, _ in group]
        assert len(set(texts)) == 3
        spreads.append(pstdev([judge.rate_quality(text) for text in texts]))
    everything = [judge.rate_quality(lessons.shown(said)) for group in played for said, _ in group]
    assert mean(spreads) > 0.06
    assert pstdev(everything) > 0.12
    said, _ = played[0][0]
    known = lessons.scenarios(SCENARIOS)[0]
    ends = [lessons.play(known, seed, start=said[:4])[0] for seed in range(100, 120)]
    assert all(end[:4] == said[:4] for end in ends)
    assert len({end[4] for end in ends}) > 15


def test_course_depends_on_the_two_ways() -> None:
    fitting = lessons.variables(LEARNING[1], STUDENT_REACTIONS[2], TEACHING[0], TEACHER_REACTIONS[0])
    clashing = lessons.variables(LEARNING[3], STUDENT_REACTIONS[2], TEACHING[0], TEACHER_REACTIONS[0])
    good, bad = (
        mean(judge.rate_quality(lessons.shown(lessons.play(known, seed)[0])) for seed in range(40))
        for known in (fitting, clashing)
    )
    assert good > bad + 0.2


@pytest.mark.parametrize("reaction", STUDENT_REACTIONS[:4])
def test_students_react_as_told(reaction: str) -> None:
    kind = phrase_kinds.find_student_reaction(reaction)
    known = lessons.variables(LEARNING[3], reaction, TEACHING[0])
    told = "\n".join(
        text for seed in range(30) for role, text in lessons.play(known, seed)[0] if role == "Student"
    )
    assert spoken(f"s.react.{kind}", told) > 25
    for another in {"rude", "disengaged", "frustrated", "anxious"} - {kind}:
        assert spoken(f"s.react.{another}", told) == 0


def spoken(rule: str, text: str) -> int:
    return sum(
        text.count(phrasing[0]) for phrasing in BOOK[rule] if len(phrasing) == 1 and len(phrasing[0]) > 14
    )


def test_teachers_adapt_if_they_are_the_kind_and_somebody_asks() -> None:
    changed = {}
    for reaction in (TEACHER_REACTIONS[3], TEACHER_REACTIONS[4]):
        known = lessons.variables(LEARNING[3], STUDENT_REACTIONS[5], TEACHING[0], reaction)
        told = [lessons.shown(lessons.play(known, seed)[0]) for seed in range(40)]
        turning = [phrasing[0][:20] for phrasing in BOOK["t.turn"]]
        changed[reaction] = sum(any(words in text for words in turning) for text in told)
    assert changed[TEACHER_REACTIONS[3]] > 20
    assert changed[TEACHER_REACTIONS[4]] < 16
    assert changed[TEACHER_REACTIONS[3]] > 2 * changed[TEACHER_REACTIONS[4]]


def test_student_may_open() -> None:
    said, ended_by = lessons.play(lessons.variables(), 3, first="Student")
    assert said[0][0] == "Student"
    assert "Irony" in said[0][1]
    assert 10 <= len(said) <= 15
    assert ended_by is not None


def test_asked_for_length_is_kept() -> None:
    brief = (
        lessons.template("selfplay_teacher")
        .messages(lessons.variables())[0]
        .content.replace("10 to 15", "4-6")
    )
    for seed in range(30):
        history: list[Message] = []
        for i in range(7):
            opened = () if i % 2 else (Message("user", "The lesson begins."),)
            text = respond((Message("system", brief), *opened, *history), seed=seed * 10 + i).text
            assert END_MARKER not in text or i + 1 >= 4
            if END_MARKER in text:
                break
            history = [Message("user" if m.role == "assistant" else "assistant", m.content) for m in history]
            history.append(Message("user", text))
        assert 4 <= i + 1 <= 6


def test_no_marker_where_the_brief_has_none() -> None:
    brief = Message("system", "You are a teacher. The topic is Irony. Say only what the teacher says next.")
    said = [
        Message("user", f"words {i}") if i % 2 == 0 else Message("assistant", f"more {i}") for i in range(15)
    ]
    assert "[end" not in respond((brief, *said), seed=1).text


BRIEF = "The topic is Irony. You like to {} like this: pictures and maps. Otherwise you get cross."


@pytest.mark.parametrize(
    ("text", "role"),
    [
        (f"You are a teacher. {BRIEF.format('teach')} Say only what the teacher says next.", "Teacher"),
        (
            f"You are a patient, kind teacher at a school. {BRIEF.format('teach')} Never speak for the student.",
            "Teacher",
        ),
        (
            f"You are the student in a lesson. {BRIEF.format('learn')} Say only what the student says next.",
            "Student",
        ),
        (f"You play the role of a student. {BRIEF.format('learn')} Stay in character.", "Student"),
        (f"Act as a tutor. {BRIEF.format('teach')} Write one turn at a time, without a label.", "Teacher"),
        (f"You're a pupil. {BRIEF.format('learn')} Reply in character, with your next line only.", "Student"),
    ],
)
def test_near_variants_of_a_brief(text: str, role: str) -> None:
    for messages in (
        (Message("system", text), Message("user", "Hello.")),
        (Message("user", f"{text}\n\nHello."),),
        (Message("system", "Answer in English."), Message("user", f"{text}\n\nHello.")),
    ):
        place = agent_prompt.read(messages)
        assert place is not None
        assert place.side.role == role
        assert place.side.topic == "Irony"
        assert place.side.preference == "pictures and maps"
        assert place.side.reaction == "get cross"
        assert place.other == ("Hello.",)


def test_shipped_briefs_are_read_whole() -> None:
    for known in lessons.scenarios(100):
        for role in ("Teacher", "Student"):
            brief = lessons.template(f"selfplay_{role.lower()}").messages(known)
            place = agent_prompt.read(brief)
            assert place is not None
            assert place.said == ()
            assert place.side == (
                role,
                known["topic"],
                known[f"{role.lower()}_preference"],
                known[f"{role.lower()}_reaction"],
                (10, 15),
                True,
            )
            one = "\n\n".join(message.content for message in brief)
            assert agent_prompt.read((Message("user", one),)) == place


def test_prompts_for_whole_conversations_are_no_briefs() -> None:
    for messages in every_scenario(100):
        assert agent_prompt.read(messages) is None
    as_teacher = "You are a teacher. Write a conversation between you and a student. Stay in character."
    assert agent_prompt.read((Message("user", as_teacher),)) is None
    assert respond((Message("user", as_teacher),), seed=1).text.startswith("Teacher: ")
    assert agent_prompt.read((Message("system", "You are a teacher."), Message("user", "Hello."))) is None


def test_faults_of_a_turn() -> None:
    known = lessons.variables(LEARNING[1], STUDENT_REACTIONS[0], TEACHING[3])
    said, _ = lessons.play(known, 5)
    for number in range(1, 9):
        role, another = ("Teacher", "Student") if number % 2 == 0 else ("Student", "Teacher")
        clean = lessons.turn(known, said[:number], 5).text

        def spoiled(fault: str, upto: int = number) -> str:
            return lessons.turn(known, said[:upto], 5, parse(f"{fault}=1")).text

        own_line, _, other_line = spoiled("speaks_for_other").rpartition("\n")
        assert own_line == clean
        assert re.match(rf"{another}: \S", other_line)
        assert [line.split(":")[0] for line in spoiled("two_turns").splitlines()] == [role, role]
        assert spoiled("two_turns").startswith(f"{role}: {clean}")
        told = spoiled("leaked_secret")
        assert told.startswith(clean)
        assert any(secret in told for secret in SECRETS[role])  # type: ignore[index]
        earlier = [text for who, text in said[:number] if who == role]
        assert (spoiled("loop") in earlier) == bool(earlier)
        if not earlier:
            assert spoiled("loop") == clean
        assert spoiled("empty") == ""
        for nothing in ("judge_first", "judge_noise", "one_speaker", "defects"):
            assert spoiled(nothing) == clean
        cut = lessons.turn(known, said[:number], 5, parse("truncated=1"))
        assert cut.finish_reason == "length"
        assert clean.startswith(cut.text)


def test_secrets_are_those_of_the_vocabulary() -> None:
    space = {v[f"{who}_preference"] for v in lessons.scenarios(400) for who in ("student", "teacher")}
    assert {*SECRETS["Teacher"], *SECRETS["Student"]} <= space
    assert SECRETS["Teacher"] == LEARNING
    assert SECRETS["Student"] == TEACHING


def test_faults_of_turns_strike_as_often_as_told() -> None:
    faults = parse("speaks_for_other=0.1,two_turns=0.1,garbage=0.1")
    known = lessons.variables()
    said, _ = lessons.play(known, 2)
    texts = [lessons.turn(known, said[:4], seed, faults).text for seed in range(1000)]
    assert 70 <= sum("\nStudent: " in text for text in texts) <= 130
    assert 70 <= sum("\nTeacher: " in text for text in texts) <= 130


def test_names_of_methods_are_heard_as_what_they_name() -> None:
    """A side uses them in place of its preference, and the other must understand them."""
    for family in phrase_kinds.METHODS[:-1]:
        for phrasing in BOOK[f"name.{family}"]:
            assert phrase_kinds.find_methods(phrasing[0])[:1] == (family,), phrasing
        for rule in (f"s.ask.{family}", f"t.method.{family}"):
            assert all(
                phrase_kinds.find_methods(" ".join(phrasing[::2]))[0] == family
                for phrasing in list_unambiguous(rule)
            )


def test_quick_enough() -> None:
    """The aim is 150 µs a turn; ten times that would be a wrong algorithm on any machine."""
    known = lessons.variables()
    requests = [lessons.messages(known, lessons.play(known, seed)[0][:9]) for seed in range(100)]
    assert takes_under(0.15, lambda: [respond(asked, seed=seed) for seed, asked in enumerate(requests)])


def test_long_histories_are_read_in_linear_time() -> None:
    brief = "You are a teacher. Say only what the teacher says next. "
    question = "How probable is it that you understood? One number from 0 to 1."
    for filler in (
        " ",
        "\n",
        "You like ",
        "- when ",
        "you are a ",
        "\n\n",
        "Teacher: a\n",
        "probability ",
        "when x, ",
    ):
        hostile = filler * (40_000 // len(filler))
        for messages in (
            (Message("system", brief + hostile), Message("user", hostile)),
            (Message("user", brief + hostile + question),),
            (
                Message("system", brief),
                *[Message("user", hostile), Message("assistant", hostile)] * 2,
                Message("user", question),
            ),
            (
                Message("system", brief),
                *[Message("user", "a"), Message("assistant", "b")] * 5_000,
                Message("user", hostile),
            ),
        ):
            assert takes_under(1, lambda asked=messages: respond(asked, seed=1)), repr(filler)
