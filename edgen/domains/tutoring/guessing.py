"""The guess of a simulated student: an answer combined from the pieces that the tutor quoted, with the
mistakes that a line of the student's prompt describes.

The form of the tutor's points shows the meaning of a quotation. `“bed” is “letto”` translates a word,
`“letto” …: its article is “il”` gives the word before it, and `“giallo” becomes “gialla”` another form of it.
A sentence without a quotation in which something `stands behind` or `stands after` something else states the
order. Otherwise pieces are in the order of the words that they translate in the question.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

_QUOTED = re.compile(r"“([^“”]{1,200})”")
_ORDER_RULE = re.compile(r"\bstands? (?:behind|after)\b")
_NO_LITTLE_WORDS = re.compile(r"(?im)^- .*\bleaves? the articles? out\b")
_IN_FRONT = re.compile(r"(?im)^- .*\bin front, as in\b")
_AT_ONCE = re.compile(r"(?im)^- .*\bguess(?:es)? at once\b")
_ASKS_FIRST = re.compile(r"(?im)^- .*\basks? (?:for every word|before every step)\b")
# A tutor's phrases in place of a rule that it gave in an earlier exercise.
REMINDERS = (
    "Think of the rule from before.",
    "The rule that you know holds here, too.",
    "It is the same rule as last time.",
    "You know the rule for that already.",
)
_VOWELS = tuple("aeiouAEIOU")
_PERSUADED = 2  # corrections after which a student gives up its mistake


class KnownPieces(NamedTuple):
    """The known words of an answer, in order, and the number of the question's pieces that they cover."""

    words: tuple[str, ...]
    covered: int


class GuessingStyle(NamedTuple):
    """A student's manner of guessing, from the lines of its prompt. `least`: pieces that it needs for a
    guess. `bare`: it leaves out little words. `in_front`: it keeps the question's order."""

    least: int
    bare: bool
    in_front: bool


def read_guessing_style(brief: str, corrected: int) -> GuessingStyle:
    """Return the manner of the student of a prompt after `corrected` corrections."""
    stubborn = corrected < _PERSUADED
    least = 1 if _AT_ONCE.search(brief) else 3 if _ASKS_FIRST.search(brief) else 2
    return GuessingStyle(
        least, bool(_NO_LITTLE_WORDS.search(brief)) and stubborn, bool(_IN_FRONT.search(brief)) and stubborn
    )


def assemble_answer(tutor_turns: Sequence[str], question: str, manner: GuessingStyle) -> KnownPieces:
    """Return the pieces of the answer in the quotations of the tutor's turns."""
    places: dict[str, tuple[int, int]] = {}  # for each piece: the place in the question of what it translates
    before: dict[str, str] = {}  # pieces with their little words; "": the word before any vowel
    becomes: dict[str, str] = {}
    order_stated = False
    for text in tutor_turns:
        quoted = _QUOTED.findall(text)
        if not quoted:
            order_stated = order_stated or _ORDER_RULE.search(text) is not None or text.endswith(REMINDERS)
            continue
        about, part = quoted[0], quoted[-1]
        at = question.find(about)
        if "becomes" in text and len(quoted) > 2:
            becomes[quoted[-2]] = part
        elif about != part and at >= 0:
            places[part] = (at, at + len(about))
        elif "article" in text and part[-1] in "'’":
            before[""] = part
        elif "article" in text and " " not in part:
            before.setdefault(about, f"{part} {about}")
        elif about != part:
            before[re.split(r"[ '’]", part)[-1]] = part
    places = {becomes.get(piece, piece): place for piece, place in places.items()}
    return _order_pieces(places, before, manner, question, order_stated=order_stated)


def _order_pieces(
    places: dict[str, tuple[int, int]],
    before: dict[str, str],
    manner: GuessingStyle,
    question: str,
    *,
    order_stated: bool,
) -> KnownPieces:
    ordered = sorted(places, key=places.__getitem__)
    if order_stated and not manner.in_front and len(ordered) > 1:
        one, other = ordered[-2:]
        if not question[places[one][1] : places[other][0]].strip():  # adjacent words
            ordered[-2:] = [other, one]
    words = [piece if manner.bare else _with_article(piece, before) for piece in ordered]
    return KnownPieces(tuple(words), len(ordered))


def _with_article(piece: str, before: dict[str, str]) -> str:
    """Return a piece with its little word: `il letto`, `al letto`, `l'albero`."""
    if piece in before:
        return before[piece]
    return before[""] + piece if "" in before and piece[:1] in _VOWELS else piece
