"""The simulator's conversations in an answer schema that says each turn's role and form."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from edgen.core.values import Message
from edgen.simulator.poured import pour
from edgen.simulator.text import respond
from tests import ROOT

SCHEMA = (ROOT / "prompts/short_lesson.schema.json").read_bytes()
SPOKEN = (
    "Teacher: Hello! Today we look at the moon together. It has no light of its own.\n"
    "Student: Oh. Where does its light come from, then?\n"
    "Teacher: From the sun: the moon throws it back to us.\n"
    "Student: So a full moon faces the sun, does it?\n"
    "Teacher: It does. That is what we see once a month.\n"
    "Student: Now I understand what the phases are.\n"
    "Probability: 0.72"
)


def ask(topic: str, seed: int) -> list[dict[str, Any]]:
    prompt = (
        f"Write a short lesson about {topic}, as a talk between a teacher and a student. "
        "Answer in JSON, with the keys conversation (a list of turns with role and text) and probability."
    )
    reply = respond(
        [Message("user", prompt)],
        seed=seed,
        schema=SCHEMA,
        protocol="oneshot",
        speakers=(("Teacher",), ("Student",)),
    )
    turns: list[dict[str, Any]] = json.loads(reply.text)["conversation"]
    return turns


def test_the_sentences_that_fit_stand_in_their_places() -> None:
    poured = json.loads(pour(SPOKEN, SCHEMA))
    assert [turn["role"] for turn in poured["conversation"]] == ["Teacher", "Student"] * 3
    assert (
        poured["conversation"][0]["text"] == "Today we look at the moon together. It has no light of its own."
    )
    assert poured["conversation"][1]["text"] == "Where does its light come from, then?"
    assert poured["conversation"][4]["text"] == "That is what we see once a month."
    assert poured["probability"] == 0.7


def test_without_a_fitting_sentence_the_answer_stays_as_it_is() -> None:
    said = SPOKEN.replace("Now I understand what the phases are.", "Yes!").replace(
        "So a full moon", "no full moon"
    )
    assert pour(said, SCHEMA) == said


@pytest.mark.parametrize("topic", ["the moon", "Fractions", "the White House"])
def test_a_template_with_a_schema_of_its_own_gets_sentences(topic: str) -> None:
    """Patterns of texts are met by what somebody says, and not by drawn letters."""
    for seed in range(40):
        for turn in ask(topic, seed):
            assert not re.search(r"[a-z][A-Z0-9]|\d[a-zA-Z]", turn["text"]), turn
            assert len(turn["text"].split()) >= 3
