"""Strict form: every turn on a line of its own behind the name of its role, all lines in one manner.

    Teacher: …                 **Teacher:** "…"             1. Teacher: …
    Student: …                 **Student:** "…"             2. Student: …

The manner is that of the first line: a number or a bullet before the role, a bold role, quotation marks around
what is said. A heading or one line of preamble may stand above, blank lines between, a probability below.

`read_plain` answers only where the general reader would name no repair but the layout (and the preamble, and other
words for the roles). Every line is a turn of its own, nothing in it could belong to the layout, and only the
last turn holds an end marker.
"""

from __future__ import annotations

import re
from functools import cache

import msgspec

from edgen.model import Conversation, Role, Turn
from edgen.transcript.frame import chatter, likely
from edgen.transcript.marker import unmarked
from edgen.transcript.probability import probability_of
from edgen.transcript.repairs import Repair
from edgen.transcript.roles import ALIASES, SIDES

_WORDS: dict[str, Role] = {**SIDES, **ALIASES}
# The role that each spelling of a word names.
_ROLES = {spelt: role for word, role in _WORDS.items() for spelt in (word.capitalize(), word, word.upper())}
_PLAIN = frozenset(spelt for spelt in _ROLES if spelt.lower() in SIDES)
_NAMES = "|".join(map(re.escape, sorted(_ROLES, key=len, reverse=True)))
_NUMBER, _BULLET = r"[0-9]{1,3}[.)]\ ", r"[-•]\ "
_BLANK = r"(?:[ ]*+\n)*+[ ]{0,8}+"
_HEADING = (
    r"(?:(?:\#{1,6}\ )?(?:\*\*)?(?:The\ )?(?:Conversation|Dialogue|Transcript)(?:\*\*:?|:\*\*|:)?[ ]*+\n)?"
)
# Words of the model's own, on one line before the turns: "Sure, here is a conversation between …:".
_PREAMBLE = rf"(?:(?P<preamble>(?!(?i:{_NAMES})\b)[^\W\d_][^\n<\[{{(\"“\d]{{0,200}}:)[ ]*+\n)?"
_OPENING = re.compile(
    rf"(?:{_BLANK}{_PREAMBLE}{_BLANK}{_HEADING})(?P<turns>{_BLANK}(?:(?P<number>{_NUMBER})|(?P<bullet>{_BULLET}))?"
    rf"(?:(?P<outside>\*\*(?:{_NAMES})\*\*:)|(?P<inside>\*\*(?:{_NAMES}):\*\*)|(?:{_NAMES})(?P<wide>：)|(?:{_NAMES}):)"
    rf"(?(wide)[ ]*+|[ ]++)(?P<quote>[\"“])?)",
    re.VERBOSE,
)
# What is said begins with a word, behind one sign at most, and ends as a word or a sentence does. It holds no
# tag and no bracket, and no quotation mark where these are the layout's.
_SAID = r"(?:(?=[*($¿¡]?[^\W_])[^\n<\[{odd}]*(?<=[\w.!?…。！？)’'%:;])(?<!_))?"
_MARKER = r"(?P<marker>\[(?i:end\ of\ conversation)\])?"
_FOOT = re.compile(
    r"[ \n]*+(?:(?:\*\*)?Probability(?:\ (?:of\ (?:understanding|success)|that\ the\ student\ understood(?:\ the\ (?:material|topic))?))?"
    r"(?:\*\*:|:\*\*|:)[ ]*+(?P<value>\"?[0-9]{1,3}(?:\.[0-9]{1,17})?%?\"?)[.,]?[ \n]*+)?\Z",
    re.VERBOSE,
)
LEAST = 3  # lines; of two, the general reader asks whether they only say who is who
_LAYOUT = (str(Repair.LAYOUT),)


class _Manner(msgspec.Struct, frozen=True):
    """How a reply writes its turns."""

    before: str
    name: str
    quote: str


@cache
def _pattern(manner: _Manner) -> re.Pattern[str]:
    """(role, text, end marker, "") of a turn, or ("", "", "", all the rest) where no turn follows."""
    name = {
        "": rf"({_NAMES}):[ ]++",
        "wide": rf"({_NAMES})：[ ]*+",
        "inside": rf"\*\*({_NAMES}):\*\*[ ]++",
        "outside": rf"\*\*({_NAMES})\*\*:[ ]++",
    }[manner.name]
    mark = {"": "", "number": _NUMBER, "bullet": _BULLET}[manner.before]
    closing = {"": "", '"': '",?', "“": "”,?"}[manner.quote]
    said = _SAID.format(odd='"“”„＂' if manner.quote else "")
    return re.compile(
        rf"{_BLANK}{mark}{name}{manner.quote}({said})[ ]*+{_MARKER}{closing}[ ]*+(?=\n|\Z)|([\s\S]++)",
        re.VERBOSE,
    )


def read_plain(text: str) -> Conversation | None:
    """The conversation of a reply with a turn on each line; None if it departs from the form anywhere."""
    opening = _OPENING.match(text)
    if opening is None:
        return None
    manner = _Manner(
        "number" if opening["number"] else "bullet" if opening["bullet"] else "",
        next((name for name in ("inside", "outside", "wide") if opening[name]), ""),
        opening["quote"] or "",
    )
    found = _pattern(manner).findall(text, opening.start("turns"))
    rest = found.pop()[3] if found[-1][3] else ""
    foot = _FOOT.match(rest)
    if len(found) < LEAST or foot is None:
        return None
    names, texts, markers, _ = zip(*found, strict=True)
    if any(markers[:-1]) or not all(texts[:-1]) or not (texts[-1] or markers[-1]):
        return None
    if not _sound(text, texts, bold=manner.name in ("inside", "outside")):
        return None
    roles = [_ROLES[name] for name in names]
    turns = tuple([Turn(role, said) for role, said in zip(roles, texts, strict=True) if said])
    probability = None if foot["value"] is None else probability_of(foot["value"])
    if len(set(roles[: len(turns)])) < 2 or (foot["value"] is not None and probability is None):
        return None
    repairs = _repairs(opening["preamble"], set(names))
    if repairs is None:
        return None
    return Conversation(turns, probability, roles[-1] if markers[-1] else None, repairs)


def _repairs(preamble: str | None, names: set[str]) -> tuple[str, ...] | None:
    """What the general reader would name; None where it might not take the preamble or the names so."""
    if names <= _PLAIN and preamble is None:
        return _LAYOUT
    if preamble is not None and (likely(preamble) or not chatter(preamble)):
        return None
    if not names <= _PLAIN and names & _PLAIN:
        return None
    found = {
        Repair.PREAMBLE: preamble is not None,
        Repair.LAYOUT: True,
        Repair.ROLE_ALIAS: not names <= _PLAIN,
    }
    return tuple(str(name) for name, there in found.items() if there)


def _sound(text: str, texts: tuple[str, ...], *, bold: bool) -> bool:
    """Whether the turns hold nothing that the general reader would take for more than words."""
    if "\r" in text or ("`" in text and "```" in text) or ("~" in text and "~~~" in text):
        return False
    if "\\" in text and '\\"' in text:
        return False
    return not (bold and any("**" in said for said in texts)) and unmarked(texts)
