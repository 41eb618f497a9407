"""The closing question: one number that follows from the course of the lesson."""

from __future__ import annotations

import re
from statistics import correlation, mean

import pytest

from edgen.core.values import Message
from edgen.simulator import judge
from edgen.simulator.faults import parse
from edgen.simulator.text import respond
from tests.simulator import lessons
from tests.simulator.prompts import prompt


def test_closing_questions_are_answered_with_a_number() -> None:
    own: list[float] = []
    others: list[float] = []
    qualities: list[float] = []
    for i, known in enumerate(lessons.scenarios(200)):
        said = lessons.play(known, i)[0]
        for answers, text in (
            (own, lessons.self_judged(known, said, i)),
            (others, lessons.judged(known["topic"], said, i)),
        ):
            assert re.fullmatch(r"0\.\d\d", text), text
            answers.append(float(text))
        qualities.append(judge.rate_quality(lessons.shown(said)))
    for answers in (own, others):
        assert 0.2 < mean(answers) < 0.5
        assert min(answers) < 0.05
        assert max(answers) > 0.7
        assert len(set(answers)) > 40
        assert correlation(answers, qualities) > 0.7


@pytest.mark.parametrize(
    "question",
    [
        "How likely is it that you understood the topic? Give a single number between 0 and 1.",
        "What is the probability that the student understood Irony? Reply with a number from 0 to 1 only.",
    ],
)
def test_near_variants_of_the_closing_question(question: str) -> None:
    said = lessons.play(lessons.variables(), 1)[0]
    told = Message("user", f"{lessons.shown(said)}\n\n{question}")
    assert re.fullmatch(r"0\.\d\d", respond((told,), seed=1).text)
    history = [
        *lessons.messages(lessons.variables(), said[:3]),
        Message("assistant", "Hm."),
        Message("user", question),
    ]
    assert re.fullmatch(r"0\.\d\d", respond(tuple(history), seed=1).text)


def test_a_prompt_for_a_conversation_may_ask_for_a_probability() -> None:
    text = prompt(
        layout="Output the probability that the student understood as a single number between 0 and 1."
    )
    assert respond(text, seed=1).text.startswith("Teacher: ")


def test_faults_of_a_closing_question() -> None:
    said = lessons.play(lessons.variables(), 1)[0]
    asked = lessons.closing(lessons.variables(), said)
    clean = respond(asked, seed=1)
    assert respond(asked, seed=1, faults=parse("empty=1")).text == ""
    assert respond(asked, seed=1, faults=parse("truncated=1")).finish_reason == "length"
    assert not re.match(r"0\.\d\d", respond(asked, seed=1, faults=parse("garbage=1")).text)
    for nothing in ("loop", "two_turns", "judge_first", "defects"):
        assert respond(asked, seed=1, faults=parse(f"{nothing}=1")) == clean
    assert respond(asked, seed=1, json_mode=True).text == f'{{"probability":"{clean.text}"}}'
