"""Labels of numbered units in replies: their forms, and the errors for others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgen.core.values import Rejection, RejectionReason
from edgen.reading.answers.unit_labels import LabelChoices, read_unit_labels

MOVES = LabelChoices(("Hint", "Question", "Greetings/Gratitude", "Ask and tell"), several=True)
LEVELS = LabelChoices(("1", "2", "3"), several=False)
BOTH = (MOVES, LEVELS)

READ = {
    "JSON": '{"1": ["Hint", "Question"], "2": "3"}',
    "JSON in prose": 'Sure! Here they are:\n```json\n{"1": ["question", "HINT"], "2": ["3"]}\n```\nAnything else?',
    "JSON inside": '{"labels": {"1": "Hint, Question", "2": "3"}}',
    "thinking": '<think>{"1": "?"}</think>{"2": "3", "1": "Hint and Question"}',
    "lines": "1: Hint, Question\n2: 3",
    "lines with marks": "**1.** Question / Hint\n(2) 3.",
}


@pytest.mark.parametrize("case", READ)
def test_a_reply_is_read(case: str) -> None:
    assert read_unit_labels(READ[case], BOTH) == (("Hint", "Question"), ("3",))


def test_a_name_with_a_stroke_or_an_and_stays_one() -> None:
    assert read_unit_labels("1: greetings/gratitude; Ask and tell", (MOVES,)) == (
        ("Greetings/Gratitude", "Ask and tell"),
    )


BAD = {
    "nothing": ("", "it is empty"),
    "prose": ("The first one is a hint, I think.", "it labels nothing"),
    "unknown": ('{"1": ["Hnt"], "2": "3"}', "unit 1: it names the label hnt, which there is not (there are Hint,"),
    "none": ('{"1": [], "2": "3"}', "unit 1: it names no label"),
    "one too few": ('{"1": ["Hint"]}', "unit 2: it names no label"),
    "one too many": ('{"1": ["Hint"], "2": "3", "3": "1"}', "it labels a unit 3, and there are 2"),
    "from zero": ('{"0": ["Hint"], "1": "3"}', "it labels a unit 0"),
    "several for one": ('{"1": ["Hint"], "2": ["2", "3"]}', "unit 2: it names 2 labels, and one is asked for"),
    "no texts": ('{"1": [7], "2": "3"}', "unit 1: it names no label"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_labelling_says_why(case: str) -> None:
    text, expected = BAD[case]
    found = read_unit_labels(text, BOTH)
    assert isinstance(found, Rejection)
    assert found.reason is RejectionReason.NO_LABELS
    assert found.detail.startswith(expected)


def test_a_reply_cut_off_and_a_refusal_are_told_apart() -> None:
    cut = read_unit_labels("1: Hint", BOTH, finish_reason="length")
    assert isinstance(cut, Rejection)
    assert cut.reason is RejectionReason.TRUNCATED
    refused = read_unit_labels("", BOTH, refusal="I cannot do that.")
    assert isinstance(refused, Rejection)
    assert refused.reason is RejectionReason.REFUSED


@given(st.text() | st.dictionaries(st.text(max_size=3), st.text(max_size=9) | st.lists(st.text())).map(str))
def test_nothing_makes_it_raise(text: str) -> None:
    read_unit_labels(text, BOTH)
