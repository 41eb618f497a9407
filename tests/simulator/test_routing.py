"""The routing of requests: the quick look at a prompt always agrees with the full one."""

from __future__ import annotations

import json
from functools import partial
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgen.core import resources
from edgen.core.values import Message
from edgen.domains.education.adherence_protocol import ADHERENCE
from edgen.prompting import load_prompt
from edgen.simulator.prompts.conversation_prompt import asks_for_nothing_else, read
from edgen.simulator.simulated_request import SimulatedRequest
from edgen.simulator.text import respond
from tests.simulator import lessons
from tests.simulator.prompts import every_scenario, prompt


def kind(messages: tuple[Message, ...]) -> str | None:
    """Return the kind that the full look finds in the messages; None: no agent's request."""
    request = SimulatedRequest(messages, None, Random(1), json_mode=True)
    questions = (
        partial(ADHERENCE.simulated, request),
        request.verdict,
        request.values,
        request.probability,
        request.turn,
    )
    answers = (question() for question in questions)
    found = next(filter(None, answers), None)
    return next(iter(json.loads(found))) if found else None


def shipped(name: str, count: int = 100) -> list[tuple[Message, ...]]:
    whole = ("topic", "subject", "level")
    sides = [f"{who}_{what}" for who in ("student", "teacher") for what in ("preference", "reaction")]
    template = load_prompt(resources.find("prompts", name), (*whole, *sides))
    return [template.messages(known) for known in lessons.scenarios(count)]


@pytest.mark.parametrize("name", ["education_dialogue", "education_dialogue_json"])
def test_shipped_prompts_for_whole_conversations_take_the_quick_way(name: str) -> None:
    asked = shipped(name)
    assert {kind(messages) for messages in asked} == {None}
    assert all(read(messages) is not None for messages in asked)
    assert sum(map(asks_for_nothing_else, asked)) > 0.9 * len(asked)


def test_agents_prompts_never_take_the_quick_way() -> None:
    first, later, student, closing, comparison = lessons.samples()
    for messages, expected in (
        (first, "text"),
        (later, "text"),
        (student, "text"),
        (closing, "probability"),
        (comparison, "answer"),
    ):
        assert kind(messages) == expected
        assert not asks_for_nothing_else(messages)
        one = (Message("user", "\n\n".join(message.content for message in messages)),)
        assert not asks_for_nothing_else(one)
    judged = lessons.template("closing_judge").messages({"topic": "Irony", "conversation": "Teacher: Hello."})
    assert kind(judged) == "probability"
    assert not asks_for_nothing_else(judged)


def test_whoever_asks_gets_the_same_answer_named_or_not() -> None:
    judged = lessons.template("closing_judge").messages({"topic": "Irony", "conversation": "Teacher: Hello."})
    *own, comparison = lessons.samples()
    for known in lessons.scenarios(20):
        own += [lessons.messages(known, lessons.play(known, 1)[0][:said]) for said in range(8)]
    asked = [(messages, "selfplay") for messages in (*own, judged)] + [(comparison, "oracle")]
    for seed, (messages, protocol) in enumerate(asked):
        named = respond(messages, seed=seed, protocol=protocol)
        assert respond(messages, seed=seed) == named


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Write a conversation. You are a teacher. Say only what the teacher says next.",
            "text",
        ),
        ("Simulate a dialogue: act as a tutor. Never speak for the student.", "text"),
        ("Imagine a conversation. \u017fpeak as the pupil. Don't write for the other.", "text"),
        ("Role-play a conversation.\nINTERACTION 1:\na\nINTERACTION 2:\nb\nWhich is better?", "answer"),
        (
            "Write a conversation.\nTeacher: a\nHow likely is it that the student understood? One number.",
            None,
        ),
        ("Teacher: a\nHow likely is it that the student understood? One number.", "probability"),
        ("Write a conversation about World War 2.", None),
        ("Hello.", None),
    ],
)
def test_near_variants(text: str, expected: str | None) -> None:
    messages = (Message("user", text),)
    assert kind(messages) == expected
    assert not (asks_for_nothing_else(messages) and expected)


def test_more_than_one_message_takes_the_close_look() -> None:
    (asked,) = prompt()
    assert asks_for_nothing_else((asked,))
    assert not asks_for_nothing_else((Message("system", "Be brief."), asked))
    assert not asks_for_nothing_else((Message("system", asked.content),))
    assert not asks_for_nothing_else(())
    assert all(kind(messages) is None for messages in every_scenario(50))


PIECES = (
    "You are a teacher. ",
    "play the student ",
    "act as a pupil ",
    "\u017fpeak as a tutor ",
    "Say only what the teacher says next. ",
    "One turn at a time. ",
    "never speak for the student",
    "\nInteraction 1:\n",
    "\nInteraction 2:\n",
    "\nresponse_1\n",
    "\nresponse_2\n",
    "\nTeacher: a",
    "Student: b\n",
    "Which is better, 1 or 2?",
    "\nHow probable is it that the student understood? ",
    "One number from 0 to 1. ",
    "\n#\n",
    "\n",
    ". ",
)
_OPENINGS = (
    "Write a conversation",
    "Simulate a dialogue ",
    "role play a conversation",
    "WRITE a, b conversation\n",
)


@given(
    st.sampled_from(_OPENINGS),
    st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=8)), max_size=9).map("".join),
)
def test_the_quick_look_says_what_the_close_one_says(opening: str, rest: str) -> None:
    messages = (Message("user", opening + rest),)
    if asks_for_nothing_else(messages):
        assert kind(messages) is None
