"""A turn with its speaker's actions: from a reply to a text and its actions.

The actions stand in a JSON object (`{"text": "…", "actions": ["Hint"]}`), in a line of their own
(`Actions: Hint, Question`) or in brackets in front (`[Hint, Question] …`). The rest is read as any turn is.
Never raises; linear.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec

from edgen.core.forms import Form, form, list_of, one_of, turn_form
from edgen.core.forms import text as text_of
from edgen.core.text import compile_later
from edgen.core.values import Rejection
from edgen.reading.answer_body import body_of, object_in, strip_fence
from edgen.reading.answers.unit_labels import LabelChoices, choose_labels
from edgen.reading.one_turn.reader import read_turn
from edgen.reading.roles import TEACHER_STUDENT, OwnWords, RoleWords

_LINE = compile_later(r"(?im)^[ \t*_]{0,8}(?:dialogue )?acti?ons?[ \t*_]{0,8}[:：][ \t*_]{0,8}(.{1,200})$")
_FRONT = compile_later(r"\A\s*[\[(]([^\[\]()\n]{1,200})[\])]\s*")

NO_ACTIONS = "no_actions"
"""The reason of a reply without the required actions. Protocols that read such replies declare it."""


class ActedTurn(msgspec.Struct, frozen=True):
    """A side's words and actions."""

    text: str  # may be "" if the turn is `flagged` or the end marker alone
    actions: tuple[str, ...]  # as written in the list of permitted ones, in its order
    ended: bool = False  # with the end marker
    flagged: bool = False  # the reply says that the last turn makes no sense
    repairs: tuple[str, ...] = ()  # the reader's fixes
    flags: tuple[str, ...] = ()  # detectors' findings that were accepted


def make_acted_turn_form(actions: Collection[str], most: int = 3) -> Form:
    """Return the form of a turn with one to `most` of these actions; of its text alone if there are none."""
    if not actions:
        return turn_form()
    parts = {"text": text_of(), "actions": list_of(one_of(actions), 1, min(most, len(actions)))}
    return form(**parts)._replace(spoken=True)


def read_acted_turn(
    text: str,
    role: str,
    actions: Collection[str],
    *,
    finish_reason: str = "stop",
    refusal: str | None = None,
    roles: RoleWords = TEACHER_STUDENT,
    words: OwnWords = (),
) -> ActedTurn | Rejection:
    """Return the words and the actions of `role` in a reply, or a Rejection if it is no such turn.

    `actions` are those that the role may take. The chosen ones come back as they are written there, in its
    order. If there are none, the reply need not name any.
    """
    body, named, flagged = _split(body_of(text), named=bool(actions))
    if flagged and not body.strip():
        return ActedTurn("", (), flagged=True)
    said = read_turn(body, role, finish_reason=finish_reason, refusal=refusal, roles=roles, words=words)
    if isinstance(said, Rejection):
        return said
    chosen = choose_actions(named, actions) if actions else ()
    if isinstance(chosen, Rejection):
        return chosen
    return ActedTurn(said.text, chosen, said.ended, flagged, said.repairs)


def choose_actions(named: Any, actions: Collection[str]) -> tuple[str, ...] | Rejection:
    """Return those of the actions that are named, in their order; why not, where none or an unknown one
    is."""
    chosen = choose_labels(named, LabelChoices(actions, several=True), "action")
    return Rejection(NO_ACTIONS, chosen) if isinstance(chosen, str) else chosen


def _split(text: str, *, named: bool) -> tuple[str, Any, bool]:
    """Return the words, the actions as named, and whether the reply calls the last turn nonsense."""
    value = _find_json(text, named=named)
    if value is not None:
        said = value.get("text")
        return said if isinstance(said, str) else "", value.get("actions"), value.get("nonsense") is True
    if not named:  # all of it is said
        return text, None, False
    if found := [*_LINE.finditer(text)]:
        last = found[-1]
        return f"{text[: last.start()]}{text[last.end() :]}".strip(), last[1], False
    if front := _FRONT.match(text):
        return text[front.end() :], front[1], False
    return text, None, False


def _find_json(text: str, *, named: bool) -> dict[str, Any] | None:
    """Return the JSON object that a reply is or that stands in it; None where there is none with actions, or
    with a text where actions need not be `named`."""
    value = object_in(strip_fence(text))
    if value is None:
        return None
    told = "actions" in value or value.get("nonsense") is True or (not named and "text" in value)
    return value if told else None
