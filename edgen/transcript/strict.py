"""The strict forms: layouts that most replies keep to the letter, each read in one pass.

A form answers only where the general reader (`reading.read_any`) would say exactly the same, and is None at
the slightest doubt. What may stand around a form (a block of thinking, a code fence) is taken off here, where
it is as plain as can be.
"""

from __future__ import annotations

import re

import msgspec

from edgen.model import Conversation, Rejection
from edgen.transcript.characters import encodable
from edgen.transcript.exact import read_exact
from edgen.transcript.plain import read_plain
from edgen.transcript.published import read_published
from edgen.transcript.repairs import Repair
from edgen.transcript.thinking import may_think

_BEGINNING = 40  # characters within which a reply shows its form
_THINKING = re.compile(r"[ \n]{0,9}<(think|thinking|reasoning)>")
_FENCED = re.compile(r"[ \n]{0,9}```(?:json|text|plaintext|markdown)?\n")


def read_strict(text: str) -> Conversation | Rejection | None:
    """What a reply that keeps to a strict form says; None for any other text."""
    first = text[:_BEGINNING].lstrip()[:1]
    if first == "<":
        return _thoughtful(text)
    return _form(text, first, alone=True)


def _form(text: str, first: str, *, alone: bool) -> Conversation | Rejection | None:
    """The same for a text without thinking, of which the first character is known. `alone`: it is all of the reply."""
    if first == "{":
        return read_exact(text, alone=alone)
    if may_think(text) or not encodable(text):
        return None
    if first == "`":
        return _fenced(text)
    return read_published(text) or read_plain(text)


def _thoughtful(text: str) -> Conversation | None:
    """A block of thinking, and a strict form behind it."""
    opened = _THINKING.match(text)
    if opened is None or "\r" in text or "<|" in text or not encodable(text):
        return None
    end = text.find("</", opened.end())
    tag = f"</{opened[1]}>"
    if not text.startswith(tag, end) or text.find("[/", opened.end(), end) >= 0:
        return None
    rest = text[end + len(tag) :]
    return _repaired(Repair.THINKING, _form(rest, rest[:_BEGINNING].lstrip()[:1], alone=False))


def _fenced(text: str) -> Conversation | None:
    """A strict form in a code fence."""
    opened = _FENCED.match(text)
    bare = text.rstrip(" \n")
    if opened is None or not bare.endswith("\n```"):
        return None
    inner = bare[opened.end() : -4]
    if inner.startswith("{"):
        return _repaired(Repair.CODE_FENCE, read_exact(inner, alone=False))
    return _repaired(Repair.CODE_FENCE, read_published(inner) or read_plain(inner))


def _repaired(name: Repair, result: Conversation | Rejection | None) -> Conversation | None:
    """The conversation with one more repair, which came first."""
    if not isinstance(result, Conversation):
        return None
    return msgspec.structs.replace(result, repairs=(str(name), *result.repairs))
