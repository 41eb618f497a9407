"""Strict forms in lines: the published layout, and every turn on a line of its own in one manner.

    Conversation:
    [
       Teacher:  "…",
       Student:  "…",
    ]
    Probability:  "0.2",

`read_published` answers only where the general reader would name no repair. `read_turn_per_line` reads these:

    Teacher: …                 **Teacher:** "…"             1. Teacher: …
    Student: …                 **Student:** "…"             2. Student: …

The first line sets the manner: a number or a bullet before the role, a bold role, quotation marks around what is said.
A heading or one line of preamble may stand above, blank lines between, a probability below.

It answers only where the general reader would name no repair but the layout, the preamble and other words for the
roles: nothing in a turn could belong to the layout, and only the last holds an end marker.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable

from edgen.core.values import Conversation, Turn
from edgen.reading.answers.probability import parse_probability
from edgen.reading.repairs import Repair
from edgen.reading.roles import RolePattern, RoleWords
from edgen.reading.text.marker import hold_no_marker
from edgen.reading.text.quotes import is_silent, unwrap
from edgen.reading.text.surroundings import has_words, mentions_probability

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
    if foot is None or not found:
        return None
    names, said, markers, _ = zip(*found, strict=True)
    repairs: list[str] = []
    texts = _plain(said, repairs) if "\\" in text else [one.strip() for one in said]
    last, marked = texts[-1], markers[-1] != ""
    if repairs or any(markers[:-1]) or any(map(is_silent, texts[:-1])) or not hold_no_marker(texts):
        return None
    if is_silent(last):
        if last or not marked:
            return None
        texts.pop()
    if len(set(names[: len(texts)])) < 2:
        return None
    probability = float(foot[1]) if foot[1] is not None else None
    if probability is not None and probability > 1:
        return None
    return Conversation(tuple(map(Turn, names, texts)), probability, names[-1] if marked else None)


def _plain(said: Iterable[str], repairs: list[str]) -> list[str]:
    """What stands between quotation marks, those in it without their backslashes."""
    texts = [one.strip() for one in said]
    return [unwrap(f'"{one}"', _QUOTED, repairs) if "\\" in one else one for one in texts]


_NUMBER, _BULLET = r"[0-9]{1,3}[.)]\ ", r"[-•]\ "
_BLANKS = r"(?:[ ]*+\n)*+[ ]{0,8}+"
_HEADING = (
    r"(?:(?:\#{1,6}\ )?(?:\*\*)?(?:The\ )?(?:Conversation|Dialogue|Transcript)(?:\*\*:?|:\*\*|:)?[ ]*+\n)?"
)
# Words of the model's own, on one line before the turns: "Sure, here is a conversation between …:".
_PREAMBLE = r"(?:(?P<preamble>(?!(?i:SPELT)\b)[^\W\d_][^\n<\[{(\"“\d]{0,200}:)[ ]*+\n)?"
_OPENING = RolePattern(
    rf"(?:{_BLANKS}{_PREAMBLE}{_BLANKS}{_HEADING})(?P<turns>{_BLANKS}(?:(?P<number>{_NUMBER})|(?P<bullet>{_BULLET}))?"
    rf"(?:(?P<outside>\*\*(?:SPELT)\*\*:)|(?P<inside>\*\*(?:SPELT):\*\*)|(?:SPELT)(?P<wide>：)|(?:SPELT):)"
    rf"(?(wide)[ ]*+|[ ]++)(?P<quote>[\"“])?)",
    re.VERBOSE,
)
# What is said begins with a word, behind one sign at most, and ends as a word or a sentence does. It holds no
# tag and no bracket, and no quotation mark where these are the layout's.
_SAID = r"(?:(?=[*($¿¡]?[^\W_])[^\n<\[{odd}]*(?<=[\w.!?…。！？)’'%:;])(?<!_))?"
_MARKER = r"(?P<marker>\[(?i:end\ of\ conversation)\])?"
_LINES_FOOT = re.compile(
    r"[ \n]*+(?:(?:\*\*)?Probability(?:\ (?:of\ (?:understanding|success)|that\ the\ student\ understood(?:\ the\ (?:material|topic))?))?"
    r"(?:\*\*:|:\*\*|:)[ ]*+(?P<value>\"?[0-9]{1,3}(?:\.[0-9]{1,17})?%?\"?)[.,]?[ \n]*+)?\Z",
    re.VERBOSE,
)
LEAST = 3  # lines; of two, the general reader asks whether they only say who is who
_LAYOUT = (str(Repair.LAYOUT),)


_BEFORE = {"": "", "number": _NUMBER, "bullet": _BULLET}
_NAMED = {
    "": r"(SPELT):[ ]++",
    "wide": r"(SPELT)：[ ]*+",
    "inside": r"\*\*(SPELT):\*\*[ ]++",
    "outside": r"\*\*(SPELT)\*\*:[ ]++",
}
_QUOTES = {"": "", '"': '",?', "“": "”,?"}


def _turn(before: str, name: str, quote: str) -> RolePattern:
    """(role, text, end marker, "") of a turn, or ("", "", "", all the rest) where no turn follows."""
    said = _SAID.format(odd='"“”„＂' if quote else "")
    return RolePattern(
        rf"{_BLANKS}{_BEFORE[before]}{_NAMED[name]}{quote}({said})[ ]*+{_MARKER}{_QUOTES[quote]}[ ]*+(?=\n|\Z)|([\s\S]++)",
        re.VERBOSE,
    )


# How a reply writes its turns: what stands before the role's name, how that is written, the quotation marks.
_TURNS = {style: _turn(*style) for style in itertools.product(_BEFORE, _NAMED, _QUOTES)}


def read_turn_per_line(text: str, roles: RoleWords) -> Conversation | None:
    """The conversation of a reply with a turn on each line; None if it departs from the form anywhere."""
    opening = _OPENING.of(roles).match(text)
    if opening is None:
        return None
    before = "number" if opening["number"] else "bullet" if opening["bullet"] else ""
    name = next((name for name in ("inside", "outside", "wide") if opening[name]), "")
    turns = _TURNS[before, name, opening["quote"] or ""]
    found = turns.of(roles).findall(text, opening.start("turns"))
    rest = found.pop()[3] if found[-1][3] else ""
    foot = _LINES_FOOT.match(rest)
    if len(found) < LEAST or foot is None:
        return None
    names, texts, markers, _ = zip(*found, strict=True)
    if any(markers[:-1]) or not all(texts[:-1]) or not (texts[-1] or markers[-1]):
        return None
    if not _sound(text, texts, bold=name in ("inside", "outside")):
        return None
    speakers = [roles.spelt[name] for name in names]
    said = tuple([Turn(role, text) for role, text in zip(speakers, texts, strict=True) if text])
    probability = None if foot["value"] is None else parse_probability(foot["value"])
    if len(set(speakers[: len(said)])) < 2 or (foot["value"] is not None and probability is None):
        return None
    repairs = _repairs(opening["preamble"], set(names), roles.plain)
    if repairs is None:
        return None
    return Conversation(said, probability, speakers[-1] if markers[-1] else None, repairs)


def _repairs(preamble: str | None, names: set[str], plain: frozenset[str]) -> tuple[str, ...] | None:
    """What the general reader would name; None where it might not take the preamble or the names so."""
    if names <= plain and preamble is None:
        return _LAYOUT
    if preamble is not None and (mentions_probability(preamble) or not has_words(preamble)):
        return None
    if not names <= plain and names & plain:
        return None
    found = {
        Repair.PREAMBLE: preamble is not None,
        Repair.LAYOUT: True,
        Repair.ROLE_ALIAS: not names <= plain,
    }
    return tuple(str(name) for name, there in found.items() if there)


def _sound(text: str, texts: tuple[str, ...], *, bold: bool) -> bool:
    """Whether the turns hold nothing that the general reader would take for more than words."""
    if "\r" in text or ("`" in text and "```" in text) or ("~" in text and "~~~" in text):
        return False
    if "\\" in text and '\\"' in text:
        return False
    return not (bold and any("**" in said for said in texts)) and hold_no_marker(texts)
