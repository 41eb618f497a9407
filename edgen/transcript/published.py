"""The published layout, when a reply keeps to it: read in one strict pass.

    Conversation:
    [
       Teacher:  "…",
       Student:  "…",
    ]
    Probability:  "0.2",

`read_published` answers only where the general reader would give the same without a repair; anything
else, a backslash or an odd quotation mark included, is None and left to the general reader.
"""

from __future__ import annotations

import re

from edgen.model import Conversation, Role, Turn
from edgen.transcript.marker import find_marker
from edgen.transcript.quotes import silent, unwrap

_HEAD = re.compile(r"\s*+(?:#\s*+)?Conversation:\s*+\[[^\S\n]*+\n")
_TURN = re.compile(
    r'[^\S\n]*+(Teacher|Student):[^\S\n]*+"((?:[^"\\\[\n]++|\\(?:"|(?=[^"\\\n])))*+)'
    r'(\[(?i:end of conversation)\])?",?[^\S\n]*+\n'
)
_FOOT = re.compile(
    r'\s*+\][^\S\n]*+(?:\n\s*+Probability:[^\S\n]*+"?([01]|[01]\.\d{1,17})"?,?\s*+(?:#\s*+)?)?\s*+\Z'
)
_ODD = re.compile("[”“„＂\u200b\u2060\ufeff\ud800-\udfff]")
_QUOTED = frozenset('"')


def read_published(text: str) -> Conversation | None:
    """The conversation of a reply in the published layout; None if it departs from it anywhere."""
    head = _HEAD.match(text)
    if head is None or (not text.isascii() and _ODD.search(text)):
        return None
    at = head.end()
    turns: list[Turn] = []
    ended_by: Role | None = None
    while ended_by is None and (match := _TURN.match(text, at)) is not None:
        at = match.end()
        role: Role
        role, said, marker = match.groups()  # type: ignore[assignment]
        said = said.strip()
        if "\\" in said:
            repairs: list[str] = []
            said = unwrap(f'"{said}"', _QUOTED, repairs)
            if repairs:
                return None
        if (silent(said) and (said or marker is None)) or find_marker(said) is not None:
            return None
        if marker is not None:
            ended_by = role
        if said:
            turns.append(Turn(role, said))
    foot = _FOOT.match(text, at)
    if foot is None or len({turn.role for turn in turns}) < 2:
        return None
    probability = float(foot[1]) if foot[1] is not None else None
    if probability is not None and probability > 1:
        return None
    return Conversation(tuple(turns), probability, ended_by)
