"""Lists of texts that models write, in their usual forms."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgen.core.values import Rejection, RejectionReason
from edgen.reading.answers.texts import read_texts
from tests.dose import dose

TWO = ["Take CS1.", 'Or, "if" you like: CS2?']
READ = {
    "json": '["Take CS1.", "Or, \\"if\\" you like: CS2?"]',
    "json in prose": 'Sure! Here they are:\n["Take CS1.", "Or, \\"if\\" you like: CS2?"]\nHope it helps.',
    "fenced": '```json\n["Take CS1.", "Or, \\"if\\" you like: CS2?"]\n```',
    "objects": '{"paraphrases": [{"text": "Take CS1."}, {"text": "Or, \\"if\\" you like: CS2?"}]}',
    "by number": '{"1": "Take CS1.", "2": "Or, \\"if\\" you like: CS2?"}',
    "numbered": 'Two paraphrases:\n\n1. Take CS1.\n2. Or, "if" you like: CS2?\n\nBoth keep the course.',
    "bold numbers": '**1.** Take CS1.\n**2.** Or, "if" you like: CS2?',
    "bullets": '- "Take CS1."\n- Or, "if" you like: CS2?',
    "labelled": 'Here:\n1) Advisor: "Take CS1."\n2) Advisor: Or, "if" you like: CS2?',
    "thinking": '<think>1. hm\n2. ho</think>\n1. Take CS1.\n2. Or, "if" you like: CS2?',
}


@pytest.mark.parametrize("form", READ)
def test_every_form(form: str) -> None:
    assert read_texts(READ[form], 2, "Advisor") == TWO


def test_more_than_asked_for_are_left_and_fewer_are_what_there_is() -> None:
    assert read_texts("1. a b\n2. c d\n3. e f", 2) == ["a b", "c d"]
    assert read_texts("1. a b", 5) == ["a b"]
    assert read_texts("Only this one, then.", 1) == ["Only this one, then."]


def test_a_text_goes_on_over_lines_and_may_hold_numbers() -> None:
    text = "1. First take these:\n\n7. of May is the last day.\n- CS1\n2. Another"
    assert read_texts(text, 2) == ["First take these:\n\n7. of May is the last day.\n- CS1", "Another"]


@pytest.mark.parametrize(
    ("text", "finish", "reason"),
    [
        (" \n", "stop", RejectionReason.EMPTY),
        ("Sorry, I am unable to assist with this request.", "stop", RejectionReason.REFUSED),
        ('["Take CS', "length", RejectionReason.TRUNCATED),
        ("1. Take C", "length", RejectionReason.TRUNCATED),
        ("They could say many things.", "stop", RejectionReason.UNREAD),
        ("[1, 2, null]", "stop", RejectionReason.UNREAD),
        ("1. " + "x" * 5_000, "stop", RejectionReason.UNREAD),
    ],
)
def test_no_texts(text: str, finish: str, reason: RejectionReason) -> None:
    found = read_texts(text, 3, finish_reason=finish)
    assert isinstance(found, Rejection)
    assert found.reason is reason


@pytest.mark.parametrize("count", [1, 2])
def test_an_empty_fence_holds_no_text(count: int) -> None:
    found = read_texts("```\n```\n", count)
    assert isinstance(found, Rejection)
    assert found.reason is RejectionReason.UNREAD


def test_of_a_list_that_was_cut_off_the_whole_ones_stand() -> None:
    assert read_texts("1. whole\n2. also whole\n3. hal", 3, finish_reason="length") == ["whole", "also whole"]


@settings(max_examples=dose(15, 40))
@given(st.text(max_size=60) | st.text(alphabet='[]{}"1.):-* \n\\<>', max_size=60), st.integers(1, 3))
def test_anything_is_read_or_refused(text: str, count: int) -> None:
    found = read_texts(text, count)
    assert isinstance(found, Rejection) or (1 <= len(found) <= count and all(found))
