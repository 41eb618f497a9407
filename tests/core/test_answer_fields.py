"""Fields that a person fills in: a choice with a free text is two fields of one part of the answer."""

from __future__ import annotations

import pytest

from edgen.core.errors import UsageError
from edgen.core.people.requests import Offer, PersonRequest, View, list_fields, write_answer
from edgen.core.values import Address
from edgen.reading.answers.choice import choice_form

pytestmark = pytest.mark.unit

OFFERED = ("I come.", "Wait for me.", "Stay where you are.")


def request(offered: int, *, free: bool) -> PersonRequest:
    offers = tuple(Offer("choice", place, words) for place, words in enumerate(OFFERED[:offered], 1))
    form = choice_form(offered, free=free)
    return PersonRequest("key", Address(0, 0), "wizard", View("Wizard", offers=offers), form.schema)


def test_a_free_choice_is_chosen_or_written() -> None:
    chosen, own = list_fields(request(3, free=True))
    assert [one.words for one in chosen.choices] == [*OFFERED]
    assert (chosen.kind, chosen.own, own.kind, own.own) == ("choice", "", "text", "choice")
    fields = (chosen, own)
    assert write_answer(fields, {"choice": ["2"]}) == '{"choice":2}'
    assert write_answer(fields, {"choice.say": ["Where are you?"]}) == '{"choice":{"say":"Where are you?"}}'
    assert write_answer(fields, {"choice": ["2"], "choice.say": ["  "]}) == '{"choice":2}'
    assert write_answer(fields, {"choice": ["2"], "choice.say": ["No."]}) == '{"choice":{"say":"No."}}', (
        "what is written counts"
    )
    with pytest.raises(UsageError, match="choose one"):
        write_answer(fields, {})


def test_other_choices_have_one_field() -> None:
    (chosen,) = list_fields(request(3, free=False))
    assert chosen.own == ""
    with pytest.raises(UsageError, match="choose one of the options"):
        write_answer((chosen,), {"choice": ['"Where are you?"']})
    (own,) = list_fields(request(0, free=True))
    assert (own.name, own.kind) == ("say", "text")
    assert write_answer((own,), {"say": ["Where are you?"]}) == '{"say":"Where are you?"}'
