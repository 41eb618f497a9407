"""The strict forms: layouts that most replies keep to the letter, each read in one pass.

A form answers only with a conversation, and only where the general reader (`conversation.read_any`) would say exactly
the same; at the slightest doubt it is None. A plain block of thinking and a plain code fence are taken off here.
"""

from __future__ import annotations

import re

from edgen.core.values import Conversation
from edgen.reading.assembly import noted
from edgen.reading.repairs import Repair
from edgen.reading.roles import TEACHER_STUDENT, RoleWords
from edgen.reading.strict.lines import read_published, read_turn_per_line
from edgen.reading.strict.plain_json import read_plain_json
from edgen.reading.text.characters import is_encodable
from edgen.reading.text.thinking import may_hold_thinking

_BEGINNING = 40  # characters within which a reply shows its form
_THINKING = re.compile(r"[ \n]{0,9}<(think|thinking|reasoning)>")
_FENCED = re.compile(r"[ \n]{0,9}```(?:json|text|plaintext|markdown)?\n")


def read_strict(text: str, roles: RoleWords = TEACHER_STUDENT) -> Conversation | None:
    """What a reply that keeps to a strict form says; None for any other text."""
    return _thoughtful(text, roles) if _first(text) == "<" else _form(text, roles, alone=True)


def _first(text: str) -> str:
    """The first character that shows."""
    return text[:_BEGINNING].lstrip()[:1]


def _form(text: str, roles: RoleWords, *, alone: bool = False) -> Conversation | None:
    """The same for a text without thinking. `alone`: it is all of the reply."""
    first = _first(text)
    if first == "{":
        return read_plain_json(text, roles, alone=alone)
    if may_hold_thinking(text) or not is_encodable(text):
        return None
    if first == "`":
        return _fenced(text, roles)
    return read_published(text, roles) or read_turn_per_line(text, roles)


def _thoughtful(text: str, roles: RoleWords) -> Conversation | None:
    """A block of thinking, and a strict form behind it."""
    opened = _THINKING.match(text)
    if opened is None or "\r" in text or "<|" in text or not is_encodable(text):
        return None
    end = text.find("</", opened.end())
    tag = f"</{opened[1]}>"
    if not text.startswith(tag, end) or text.find("[/", opened.end(), end) >= 0:
        return None
    return _repaired(Repair.THINKING, _form(text[end + len(tag) :], roles))


def _fenced(text: str, roles: RoleWords) -> Conversation | None:
    """A strict form in a code fence."""
    opened = _FENCED.match(text)
    bare = text.rstrip(" \n")
    if opened is None or not bare.endswith("\n```"):
        return None
    inner = bare[opened.end() : -4]
    return None if _first(inner) == "`" else _repaired(Repair.CODE_FENCE, _form(inner, roles))


def _repaired(name: Repair, result: Conversation | None) -> Conversation | None:
    """The conversation with one more repair, which came first."""
    return None if result is None else noted(result, first=[name])
