"""The page of a person for a request whose protocol defines no view."""

from __future__ import annotations

from edgen.core.values import Address, Message, Request
from edgen.protocols.views import view_of

BRIEF = Message("system", "You teach fractions.")


def request(*messages: Message, schema: bytes | None = None) -> Request:
    return Request(address=Address(0, 0), messages=messages, seed=1, role="teacher", schema=schema)


def test_a_chat_is_shown_as_turns_and_the_brief_apart() -> None:
    view = view_of(
        request(BRIEF, Message("user", "Hello."), Message("assistant", "Hi."), Message("user", "What now?"))
    )
    assert view.text == "You teach fractions.\n\nHello."
    assert view.turns[-2:] == (("", "Hi."), ("", "What now?"))
    assert view.sides == ()


def test_anything_else_is_shown_as_its_texts() -> None:
    schema = b'{"type": "object", "properties": {"better": {"enum": [1, 2]}}}'
    view = view_of(request(Message("user", "First: x. Second: y."), schema=schema))
    assert (view.text, view.turns) == ("First: x. Second: y.", ())
