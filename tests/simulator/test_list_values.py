"""The simulated answer to a request for more values: its recognition, and its values."""

from __future__ import annotations

from random import Random

import pytest

from edgen.core import resources
from edgen.core.values import Message
from edgen.prompting import load_prompt
from edgen.protocols.space_growth import VARIABLES
from edgen.simulator import list_values
from edgen.simulator.simulated_request import SimulatedRequest
from edgen.simulator.text import respond
from edgen.space.similar_values import KnownValues
from tests.simulator import lessons

SHOWN = ["Photosynthesis", "The Water Cycle", "Self-made clocks"]


def wish(dimension: str) -> tuple[Message, ...]:
    prompt = load_prompt(resources.find("prompts", "space_expand"), VARIABLES)
    known = {"dimension": dimension, "name": "x", "description": "All sorts.", "count": 50, "values": SHOWN}
    return prompt.messages(known)


@pytest.mark.parametrize("dimension", ["topics", "teacher_reactions", "misconception"])
def test_it_answers_with_lines_some_of_them_said_before(dimension: str) -> None:
    lines = respond(wish(dimension), seed=7).text.split("\n")
    assert 35 <= len(lines) <= 50
    known, again = KnownValues(SHOWN), 0
    for line in lines:
        again += known.find_similar(line.strip(' ".')) is not None
        known.add(line)
    assert 2 <= again <= 20
    assert respond(wish(dimension), seed=7).text.split("\n") == lines
    assert respond(wish(dimension), seed=8).text.split("\n") != lines


def test_what_it_reads_of_the_prompt() -> None:
    assert list_values.read(wish("student_reactions")) == list_values.ListRequest(50, tuple(SHOWN))
    assert SimulatedRequest(wish("topics"), None, Random(1)).values() is not None


@pytest.mark.parametrize(
    "text",
    [
        "Write 50 more topics.",
        "Write more topics, one on each line.",
        "Write a conversation with 12 more turns, one on each line, about topics.",
        "",
    ],
)
def test_what_is_no_such_wish(text: str) -> None:
    assert list_values.read((Message("user", text),)) is None


def test_no_other_prompt_is_taken_for_one() -> None:
    assert all(list_values.read(messages) is None for messages in lessons.samples())
