"""Prompts for the simulator, from the sentence frames that it must understand."""

from __future__ import annotations

import re
from itertools import islice, product

from edgen.core.values import Message

TOPICS = ("Photosynthesis", "The French Revolution", "Supply and Demand", "Julius Caesar", "DNA", "Irony")
LEARNING = (
    "interactive learning/class discussions/asking questions",
    "direct instruction/lecture-based learning",
    "hands-on activities/real-world applications",
    "creative expression/story telling/gamification",
)
STUDENT_REACTIONS = (
    "and gets rude otherwise",
    "and gets disengaged otherwise",
    "and gets frustrated otherwise",
    "and gets anxious otherwise",
    "but might adapt to other methods",
    "and might tell it to the teacher",
)
TEACHING = (
    "direct instruction/lecture-based learning",
    "interactive learning/class discussions/inquiry-based learning",
    "experiential learning/hands-on activities",
    "formative assessment",
)
TEACHER_REACTIONS = (
    "and gets frustrated otherwise",
    "and blames the student otherwise",
    "and gives up otherwise",
    "but might adapt to the student",
    "and might insist on teaching this way",
)

LAYOUT = """Output the conversation and the probability that the student understood the material, in the following format.
#
Conversation:
[
   Teacher:  "...",
   Student:  "...",
]
Probability:  "...",
#"""
AS_JSON = """Answer with one JSON object:
{"conversation": [{"role": "Teacher", "text": "..."}], "probability": 0.0}"""


def prompt(
    topic: str | None = "Photosynthesis",
    learning: str = LEARNING[2],
    student_reaction: str = STUDENT_REACTIONS[0],
    teaching: str = TEACHING[0],
    teacher_reaction: str = TEACHER_REACTIONS[4],
    *,
    turns: str = "The conversation lasts roughly 10-15 turns but ends when either side says [end of conversation].",
    layout: str = LAYOUT,
) -> tuple[Message]:
    """Return one user message in sentences like those of the prompt published with Education Dialogue."""
    about = f" about {topic}" if topic else ""
    text = (
        f"Simulate a conversation between a teacher in school and a student.\n{turns}\n"
        f"The teacher wants to teach the student{about}.  The student likes {learning}.  "
        f"The teacher does not know that beforehand. The student prefers to learn this way, {student_reaction}. "
        f"The teacher likes {teaching}.  He prefers to teach thisway, {teacher_reaction}.  {layout}"
    )
    return (Message("user", text),)


def every_scenario(count: int) -> list[tuple[Message]]:
    """Return the first `count` prompts of the product of all tables; neighbours differ in the reactions."""
    cells = product(TOPICS, LEARNING, TEACHING, STUDENT_REACTIONS, TEACHER_REACTIONS)
    return [prompt(t, a, b, c, d) for t, a, c, b, d in islice(cells, count)]


TURN = re.compile(r'^   (Teacher|Student):  "(.*)",$', re.MULTILINE)
PROBABILITY = re.compile(r'^Probability:  "(\d(?:\.\d+)?)",$', re.MULTILINE)


def turns_of(text: str) -> list[tuple[str, str]]:
    """Return the turns of an answer in the published layout."""
    return [(role, said) for role, said in TURN.findall(text)]


def probability_of(text: str) -> float:
    """Return the probability of an answer in the published layout."""
    found = PROBABILITY.search(text)
    assert found, text
    return float(found[1])
