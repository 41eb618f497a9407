"""Short turns and turns of marks, which could be taken for labels, names or the end of a frame."""

from __future__ import annotations

import pytest

from edgen.core.values import Conversation
from edgen.reading import read
from tests.cases import named

LONG = (
    "Look at the picture in your book, and tell me what you see there.",
    "I see a leaf, but I do not know which tree it belongs to.",
    "I'm sorry, but I'm not able to tell you that, since we are still on page one.",
    "Then I would rather look at the tree in the yard, where I can touch it.",
)


def read_turns(turn: str, end: str, texts: list[str]) -> list[tuple[str, str]]:
    """Return the turns of a reply whose turns have these texts, as they are read."""
    spoken = [(("Teacher", "Student")[place % 2], text) for place, text in enumerate(texts)]
    lines = [turn.format(role=role, lower=role.lower(), text=text) for role, text in spoken]
    head = ["turns = [", *lines, "]"] if turn.startswith("  {{ ") else lines
    result = read("\n".join([*head, end]))
    assert isinstance(result, Conversation), result
    assert result.probability == 0.4
    return [(said.role, said.text) for said in result.turns]


@named(
    "turn, end",
    toml=('  {{ role = "{lower}", text = "{text}" }},', "probability = 0.4"),
    signed=("{text} ({role})\n", "Probability: 0.4"),
    captions=(
        "<figure><blockquote>{text}</blockquote><figcaption>{role}</figcaption></figure>",
        "<p>Probability: 40%</p>",
    ),
)
@pytest.mark.parametrize(
    "texts",
    [
        ["Indeed. Now, let's...", "Okay.", *LONG, "Just try it.", "Thanks."],
        [*LONG, "Just try it.", "I understand it now."],
        [*LONG, LONG[0], "Okay."],
    ],
)
def test_turns_of_few_words_are_nobodys_labels(turn: str, end: str, texts: list[str]) -> None:
    said = read_turns(turn, end, texts)
    assert said == [(("Teacher", "Student")[place % 2], text) for place, text in enumerate(texts)]


@named(
    "turn, end",
    hashes=("#{role}# {text}", "#Probability# 0.4"),
    mentions=("@{lower} {text}", "\nProbability: 0.4"),
)
@pytest.mark.parametrize("odd", ["…", ".", "[laughs] That is for the next lesson."])
def test_a_turn_of_marks_makes_no_refusal_of_a_lesson(turn: str, end: str, odd: str) -> None:
    said = read_turns(turn, end, [*LONG, odd, *LONG[1:]])
    assert [text for _, text in said if text != odd] == [*LONG, *LONG[1:]]


@pytest.mark.parametrize("mark", [".", "?", '"', ")"])
def test_the_second_turn_of_a_line_follows_any_end_of_the_first(mark: str) -> None:
    lines = [
        f"TEACHER: It is a plant{mark} STUDENT: Is it?",
        "TEACHER: It is. STUDENT: Why?",
        "TEACHER: See. STUDENT: I do.",
    ]
    result = read("\n".join([*lines, "PROBABILITY: 0.4"]))
    assert isinstance(result, Conversation), result
    assert [said.role for said in result.turns] == ["Teacher", "Student"] * 3


def test_a_first_turn_of_dots_is_not_all_of_a_reply() -> None:
    turns = [
        f'```json\n{{"{role}": "{text}"}}\n```'
        for role, text in zip(("teacher", "student") * 2, LONG, strict=True)
    ]
    result = read("\n".join(['```json\n{"student": "..."}\n```', *turns]))
    assert isinstance(result, Conversation), result
    assert [said.text for said in result.turns] == [*LONG]
