"""The form of a questionnaire's answers: the reader accepts every answer that fits the form."""

from __future__ import annotations

import pytest

from edgen.domains.guided.ratings import read_ratings
from edgen.protocols.questionnaire import Item, Questionnaire
from tests.form_checks import check_names_without_bounds, check_what_fits_is_read, check_words

pytestmark = pytest.mark.unit

ASKED = Questionnaire(
    name="mine",
    items=(
        Item(name="task", text="The task was easy.", scale=(1, 7)),
        Item(name="what_was_hard", text="What was hard?"),
        Item(name="comfort", text="I was at ease.", scale=(1, 5)),
    ),
)


def test_what_fits_the_form_is_read() -> None:
    check_what_fits_is_read(ASKED.answer_form, lambda text: read_ratings(text, ASKED.scales))


def test_the_form_without_bounds_has_the_same_names() -> None:
    check_names_without_bounds(ASKED.answer_form)


def test_its_words_name_each_item() -> None:
    check_words(ASKED.answer_form)
