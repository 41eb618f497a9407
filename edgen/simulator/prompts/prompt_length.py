"""The number of turns that a prompt requests."""

from __future__ import annotations

import re

from edgen.core.text import compile_later

_RANGE = r"(\d{1,2})\s*(?:-|–|to)\s*(\d{1,2})"
# Two patterns, each of which begins with letters that are found quickly.
_BEFORE = compile_later(r"(\d(?<=\b\d)\d?)\s*(?:-|–|to)\s*(\d{1,2}) turns\b")
_AFTER = compile_later(rf"turns(?<=\bturns),? {_RANGE}\b")
_LONGEST_RANGE = 64  # characters
DEFAULT_TURNS = (10, 15)
MOST_TURNS = 60
_FEWEST = 3  # minimum turns of a prompt in any words; a smaller number counts something else


def count_turns(text: str) -> tuple[int, int]:
    """Return the least and the most turns that a text requests; DEFAULT_TURNS if it does not say."""
    at = text.find("turns")
    if at < 0:
        return DEFAULT_TURNS
    found = _BEFORE.search(text, max(0, at - _LONGEST_RANGE))
    if found is None or found.start() > at:
        after = _AFTER.search(text, at)
        if after is not None and (found is None or after.start() < found.start()):
            found = after
    if found is None:
        return DEFAULT_TURNS
    low, high = sorted((int(found[1]), int(found[2])))
    return max(2, min(low, MOST_TURNS)), max(2, min(high, MOST_TURNS))


_WORDS = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11,
    "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30,
}  # fmt: skip
_COUNT = rf"(\d{{1,3}}|{'|'.join(_WORDS)})"
_UNITS = (
    r"(?:turns?|messages?|lines?|utterances?|replies|exchanges?|entries|statements?|interventions?"
    r"|Beiträgen?|Zeilen|tours?|turnos?)"
)
_ANY_TURNS = compile_later(
    rf"(?P<bound>at most|at least|up to|no more than|under|fewer than|maximum of)?[ ]?\b{_COUNT}"
    rf"(?:\s*(?:-|–|to|and|or|bis|à|a)\s*{_COUNT})?\s+(?:\w+\s+)?(?P<unit>{_UNITS})(?P<each>\s+(?:each"
    r"|per))?",
    re.IGNORECASE,
)


def read_any_turns(text: str) -> tuple[int, int]:
    """Return the least and the most turns that a prompt in any words requests."""
    if (known := count_turns(text)) != DEFAULT_TURNS:
        return known
    found = _ANY_TURNS.search(text)
    if found is None:
        return DEFAULT_TURNS
    low, high = (int(_WORDS.get(word.lower(), word)) if word else 0 for word in found.group(2, 3))
    if not high:
        bound = (found["bound"] or "").lower()
        low, high = (low, low + 4) if bound == "at least" else (max(2, low // 2) if bound else low, low)
    times = 2 if found["unit"].lower().startswith("exchange") or found["each"] else 1
    low, high = sorted((low * times, high * times))
    if high < _FEWEST:  # "one line per turn"
        return DEFAULT_TURNS
    return max(2, min(low, MOST_TURNS)), max(2, min(high, MOST_TURNS))
