"""Forms of answers: every answer that fits a form's schema is read; bounds can be left out."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from edgen.core.forms import (
    Form,
    form,
    list_of,
    one_of,
    probability,
    turn_form,
    turns,
    whole_number,
)
from edgen.core.forms import text as text_of
from edgen.core.values import Message, Reply
from edgen.domains.education.adherence_protocol import SHEET, read_sheet
from edgen.protocols.labelling import make_labels_form
from edgen.protocols.oracle import VERDICT
from edgen.protocols.selfplay import CLOSING
from edgen.protocols.space_growth import VALUES
from edgen.reading.answers.acted_turn import make_acted_turn_form, read_acted_turn
from edgen.reading.answers.choice import choice_form, read_choice
from edgen.reading.answers.texts import read_texts
from edgen.reading.answers.unit_labels import LabelChoices, read_unit_labels
from edgen.reading.answers.values import read_values
from edgen.reading.answers.verdict import read_verdict
from edgen.reading.conversation import read
from edgen.reading.one_turn.reader import read_turn
from edgen.reading.probability import read_probability
from tests.form_checks import check_names_without_bounds, check_what_fits_is_read, check_words

ACTIONS = ("Question", "Hint", "Correction")
SETS = [LabelChoices(("yes", "no"), False), LabelChoices(("Greetings/Gratitude", "Original Question"), True)]
OFFERED = ["I come.", "Wait for me.", "Stay where you are."]

CASES: dict[str, tuple[Form, Callable[[str], Any]]] = {
    "conversation": (
        form(conversation=turns(("Teacher", "Student"), 4, 24, 500), probability=probability()),
        read,
    ),
    "turn": (turn_form(), lambda text: read_turn(text, "Teacher")),
    "acted turn": (make_acted_turn_form(ACTIONS), lambda text: read_acted_turn(text, "Tutor", ACTIONS)),
    "verdict": (VERDICT, read_verdict),
    "closing": (CLOSING, read_probability),
    "labels": (make_labels_form(SETS), lambda text: read_unit_labels(text, SETS)),
    "choice": (choice_form(3), lambda text: read_choice(text, OFFERED, "Wizard", free=False)),
    "free choice": (choice_form(3, free=True), lambda text: read_choice(text, OFFERED, "Wizard")),
    "sheet": (SHEET, read_sheet),
    "texts": (form(texts=list_of(text_of(), 3, 3)), lambda text: read_texts(text, 3)),
    "values": (VALUES, read_values),
}


@pytest.mark.parametrize("name", CASES)
def test_what_fits_a_form_is_read(name: str) -> None:
    check_what_fits_is_read(*CASES[name])


@pytest.mark.parametrize("name", CASES)
def test_a_form_without_bounds_has_the_same_names(name: str) -> None:
    check_names_without_bounds(CASES[name][0])


@pytest.mark.parametrize("name", CASES)
def test_its_words_name_each_property_and_show_nothing_to_copy(name: str) -> None:
    check_words(CASES[name][0])


def test_the_words_end_the_last_message() -> None:
    before = (Message("system", "Be brief."), Message("user", "Which is better?"))
    system, user = VERDICT.add_to(before)
    assert system == before[0]
    assert user == Message("user", f"Which is better?\n\n{VERDICT.words}")
    assert VERDICT.words == 'Answer with one JSON object and nothing else. It has "better" (1 or 2).'


def test_the_words_leave_a_partner_s_turn_as_it_was_said() -> None:
    before = (Message("system", "You are a tutor."), Message("user", "What is 2 + 2?"))
    for turn in (turn_form(), make_acted_turn_form(("Guess", "Question"))):
        system, user = turn.add_to(before)
        assert system == Message("system", f"You are a tutor.\n\n{turn.words}")
        assert user == before[1]
        assert turn.add_to(before[1:]) == (Message("user", f"What is 2 + 2?\n\n{turn.words}"),)


@pytest.mark.parametrize(
    ("text", "finish", "read_as"),
    [
        ('{"text": "Hello there."}', "stop", "Hello there."),
        ('{"text": "two\\n\\nparagraphs"}', "stop", "two\n\nparagraphs"),
        ('{"text": "cut off', "length", '{"text": "cut off'),
        ('{"text": 3}', "stop", '{"text": 3}'),
        ("Hello there.", "stop", "Hello there."),
        ('["text"]', "stop", '["text"]'),
        ("{" * 100_000, "stop", "{" * 100_000),
    ],
)
def test_a_turn_is_read_as_its_text(text: str, finish: Any, read_as: str) -> None:
    assert turn_form().content(Reply(text, finish)).text == read_as


def test_an_enumeration_too_long_to_list_is_named_in_short() -> None:
    words = form(topic=one_of(f"topic {number}" for number in range(50)), rank=whole_number(1, 9)).words
    assert "topic 49" not in words
    assert "a whole number from 1 to 9" in words


def test_every_probability_of_the_form_is_read_as_it_stands() -> None:
    for value in probability()["enum"]:
        for given in (value, int(value) if value in (0, 1) else value):
            assert read_probability(json.dumps({"probability": given})) == value
