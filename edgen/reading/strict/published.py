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

from edgen.core.values import Conversation, Turn
from edgen.reading.roles import RolePattern, RoleWords
from edgen.reading.text.marker import hold_no_marker
from edgen.reading.text.quotes import is_silent, unwrap

_HEAD = re.compile(r"[ \t\n]*+(?:#{1,6}[ \t\n]*+)?(?:\*\*)?Conversation(?::\*\*|\*\*:|:)[ \t\n]*+\[[ \t]*+\n")
# (role, text, end marker, "") of a turn, or ("", "", "", all the rest) where no turn follows.
_TURN = RolePattern(
    r'[ \t]{0,30}+(NAME):[ \t]*+"((?:[^"\\\[\n]++|\\(?:"|(?=[^"\\\n])))*+)'
    r'((?<![*_`])\[(?i:end of conversation)\])?",?[ \t]*+\n|([\s\S]++)'
)
_FOOT = re.compile(
    r'[ \t\n]*+\][ \t]*+(?:\n[ \t\n]*+(?:\*\*)?Probability(?::\*\*|\*\*:|:)[ \t]*+"?([01]|[01]\.[0-9]{1,17})"?,?[ \t\n]*+(?:#[ \t\n]*+)?)?[ \t\n]*+\Z'
)
_ODD = "”“„＂\u200b\u2060\ufeff"
_QUOTED = frozenset('"')


def read_published(text: str, roles: RoleWords) -> Conversation | None:
    """The conversation of a reply in the published layout; None if it departs from it anywhere."""
    head = _HEAD.match(text)
    if head is None or (not text.isascii() and any(mark in text for mark in _ODD)):
        return None
    found: list[tuple[str, str, str, str]] = _TURN.of(roles).findall(text, head.end())
    foot = _FOOT.match(found.pop()[3]) if found and found[-1][3] else None
    if foot is None or not found or any(marker for _, _, marker, _ in found[:-1]):
        return None
    repairs: list[str] = []
    texts = [_plain(said.strip(), repairs) for _, said, _, _ in found]
    last, marked = texts[-1], found[-1][2] != ""
    if repairs or any(map(is_silent, texts[:-1])) or (is_silent(last) and (last or not marked)):
        return None
    if not hold_no_marker(texts):
        return None
    turns = tuple([Turn(role, said) for (role, _, _, _), said in zip(found, texts, strict=True) if said])
    if len({turn.role for turn in turns}) < 2:
        return None
    probability = float(foot[1]) if foot[1] is not None else None
    if probability is not None and probability > 1:
        return None
    return Conversation(turns, probability, found[-1][0] if marked else None)


def _plain(said: str, repairs: list[str]) -> str:
    """What stands between quotation marks, those in it without their backslashes."""
    return unwrap(f'"{said}"', _QUOTED, repairs) if "\\" in said else said
