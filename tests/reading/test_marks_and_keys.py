"""Marks that are part of a text or of a layout, keys around a text, and refusals found by their words."""

from __future__ import annotations

import json

import pytest

from edgen.core.values import Conversation, Rejection, RejectionReason
from edgen.reading import read

SAID = (
    "Good morning, all.", "Is it cold?", "It is, so come in.", "Thank you!", "Sit here.", "I will, thanks.",
)  # fmt: skip
ROLES = ("Teacher", "Student")
# A colon separates a text already, so that the rest of its line is part of the text.
SPOKEN = ["{r}: 😀 {t}", "**{r}:** 😀 {t}", "**{r}:** - {t}", "**{r}:** ~ {t}", "[10:00] {r}: - {t}"]
LAYOUT = [
    "{r}\n~ {t}\n", "{r}:\n- {t}\n", "<{r}> ~ {t}", "{r}: — {t}", "*{r}: {t}*", "| {r} says | {t} |", "BEGIN {r}\n{t}\nEND {r}",
    "[{r} speaking]\n{t}\n[/{r} speaking]", "speaker: {r}\nemotion: calm\nutterance: {t}\n---", "- role: {r}\n  mood: calm\n  text: {t}",
]  # fmt: skip
REFUSALS = [
    "I cannot do that.", "I’m sorry, but I can’t continue.", "We  are  not\nable to write this.", "I'd rather not write it.",
    "I don't think it is appropriate.", "That is not something I can write.", "As an AI, this is not for me.",
    "It is against my guidelines.", "This violates the content policy.", "Ich kann das leider nicht schreiben.",
    "Je ne peux pas écrire cela.", "Il m’est impossible de le faire.", "No puedo escribir eso.", "Non posso scriverlo.",
    "Ik kan dit niet schrijven.", "Я не могу это написать.", "抱歉，我无法完成。", "お手伝いできないです。", "도와 드릴 수 없습니다.", "لا أستطيع ذلك.",
]  # fmt: skip


def texts_of(form: str) -> list[str]:
    lines = [form.format(r=ROLES[i % 2], t=text) for i, text in enumerate(SAID)]
    result = read("\n".join(lines) + "\n\nProbability: 0.8")
    assert isinstance(result, Conversation)
    assert result.probability == 0.8
    return [turn.text for turn in result.turns]


@pytest.mark.parametrize("form", SPOKEN)
def test_a_mark_after_a_colon_is_said(form: str) -> None:
    assert texts_of(form) == [form.partition("{r}")[2].format(t=text).lstrip(":* ") for text in SAID]


@pytest.mark.parametrize("form", LAYOUT)
def test_a_mark_or_a_line_that_all_turns_have_is_the_layouts(form: str) -> None:
    assert texts_of(form) == [*SAID]


def test_lists_of_speakers_and_of_texts_are_read_together() -> None:
    value = {"speakers": ["teacher", "student"] * 3, "texts": SAID, "probability": 0.8}
    result = read(json.dumps(value))
    assert isinstance(result, Conversation)
    assert [(turn.role, turn.text) for turn in result.turns] == [*zip(ROLES * 3, SAID, strict=True)]
    topics = {"speakers": ["teacher", "student"] * 2, "topics": ["sums", "cells", "rain", "time"]}
    assert isinstance(read(json.dumps(topics)), Rejection)


@pytest.mark.parametrize("text", REFUSALS)
def test_a_refusal_is_named(text: str) -> None:
    result = read(text)
    assert isinstance(result, Rejection)
    assert result.reason is RejectionReason.REFUSED
