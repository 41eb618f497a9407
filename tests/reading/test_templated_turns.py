"""Turns that all begin alike, as texts that a program writes do: what they share is no part of the layout."""

from __future__ import annotations

import pytest

from bench import replies
from bench.reading import EVERY
from edgen.core.values import Conversation
from edgen.reading import read
from edgen.reading.conversation import read_unknown
from edgen.reading.learned.layouts import Layouts
from edgen.reading.roles import TEACHER_STUDENT

TURNS = {
    "numbered": [f"This is turn number {number}." for number in range(16)],
    "long": [f"Lorem ipsum dolor sit amet, consectetur adipiscing elit, number {number}." for number in range(16)],
    "half": [
        f"What happens in step {number}?" if number % 2 else f"In step {number}, the plant takes in light."
        for number in range(16)
    ],
    "colons": [
        f"Point {number}: the plant needs light." if number % 2 else f"Answer {number}: it makes sugar."
        for number in range(16)
    ],
    "lower case": [f"we look at part {letter} of the leaf" for letter in "abcdefghijklmnop"],
}  # fmt: skip
LAYOUTS = (
    "bold headings with rules", "mentions, lower case, no colon", "e-mail", "forum, wrote on", "forum posts",
    "speaker numbers with roles", "Teacher_1", "JSON turn_1_teacher", "YAML keys with blocks", "TOML inline tables",
    "Python constructor", "slashes", "XML attributes only", "special tokens", "bold role in brackets", "typst",
    "ticket comments", "log lines", "SQL full", "ASCII arrows in",
)  # fmt: skip


MISREAD = {("ticket comments", "long"), ("Teacher_1", "lower case"), ("SQL full", "lower case")}  # known


@pytest.mark.parametrize(
    ("layout", "kind"),
    [(layout, kind) for layout in LAYOUTS for kind in TURNS if (layout, kind) not in MISREAD],
)
def test_what_all_turns_begin_with_is_said(layout: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    said = TURNS[kind]
    pairs = list(zip(said[::2], said[1::2], strict=True))
    monkeypatch.setattr(
        replies, "exchanges", [(("Teacher", one), ("Student", other)) for one, other in pairs]
    )
    layouts = Layouts(TEACHER_STUDENT)
    for number in range(4):
        text, (_, turns, probability) = EVERY[layout](number), replies.lesson(number)
        result = read_unknown(text, TEACHER_STUDENT)
        assert isinstance(result, Conversation), text
        assert [(turn.role, turn.text) for turn in result.turns] == turns
        assert result.probability == float(probability)
        assert layouts.read(text) in (None, result)
        layouts.learn(text, result)


def test_labels_after_which_nothing_is_said_are_none() -> None:
    said = [
        f"“Well, number {number} is what I would say,” said the {('teacher', 'student')[number % 2]}."
        for number in range(6)
    ]
    result = read("\n\n".join([*said, "Probability: 0.4"]))
    assert isinstance(result, Conversation)
    assert [turn.text for turn in result.turns] == [
        f"Well, number {number} is what I would say," for number in range(6)
    ]
