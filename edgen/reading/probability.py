"""The probability that a reply gives: one number in [0, 1], or None, never a guess.

A percentage, in words as well (`seventy-two percent`), a fraction (`1/5`, `1 in 5`, `2 out of 10`) and a
decimal comma count as numbers; ranges, bounds, contradictions and other words do not. Linear in the text's
length.
"""

from __future__ import annotations

import math
import re
from typing import Any

from edgen.core.text import compile_later
from edgen.reading.answer_body import body_of, decode_json, strip_fence
from edgen.reading.text.thinking import drop_thinking

_MAX = 400  # a value longer than this is prose
_NUMBER = compile_later(
    r"(?P<sign>[-−])?(?P<a>\d{1,12}(?:[.,]\d{1,17})?|[.,]\d{1,17})(?P<e>[eE][-+]?\d{1,3})?"
    r"(?:\s{0,3}\(?(?:/|÷|in|out\s+of)\s{0,3}(?P<b>\d{1,9}(?:\.\d{1,9})?))?"
    r"(?P<percent>\s{0,3}\\?(?:%|％|٪|per\s?cent\b|Prozent\b|(?:pour|per|por)\s?cento?\b|por\s?ciento\b"
    r"|процент\w{0,3}|パーセント|퍼센트|प्रतिशत|(?:بال|في\sال)م(?:ئة|ائة)))?"
)
# Nothing but a number, as most replies give it.
_BARE = compile_later(r"[\s\"]*+([01](?:\.[0-9]{1,17})?)[\s\",.]{0,9}\Z")
_APPROXIMATELY = compile_later(
    r"""(?i)(?:[\s"'“”‘’«»*_`~≈=:(\[{$]|(?:about|around|approximately|approx\.?|roughly|circa|ca\.?|nearly"""
    r"""|almost|estimated|maybe|perhaps|probably|at|is|p|etwa|ungefähr|rund|environ|aproximadamente|около)\b|大?约|約|およそ|약)*"""
)
_BOUND = compile_later(
    r"(?i)[<>≤≥±]|\b(?:less|more|greater|fewer|lower|higher|under|over|above|below|at\s+(?:most|least)"
    r"|up\s+to|between|not|no)\b"
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_BELOW = (
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
# Numbers below a hundred in words.
_COUNTS = {word: number for number, word in enumerate(_BELOW, 1)}
_COUNTS |= {word: 10 * number for number, word in enumerate(_TENS, 2)} | {"zero": 0}
_COUNTED = compile_later(
    rf"(?i)\b(?:(?P<tens>{'|'.join(_TENS)})[ -]?)?(?P<units>{'|'.join(_COUNTS)})?(?=[ ]per[ ]?cent\b)"
)
_RANGE = compile_later(
    r"\s{0,3}[\"'“”]?\s{0,3}(?:-|–|—|−|~|\.\.|to|or|and|bis|through)\s{0,3}[\"'“”]?\s{0,3}(?=[.,]?\d)"
)

# What follows a number that is no probability by itself: odds, the ends of an interval, a count.
_PART = compile_later(r"\s?:\s?\d|,\s?\d+\s?\]|\s{1,3}(?:out\s+)?of\s")
# Words after the number that only explain it; their numbers are about something else.
_EXPLAINS = compile_later(
    r"(?i)[\s\"'”*_`.,;:()\[–—-]{1,12}(?:because|as|since|given|where|on\s+a\s+scale|the|due|this|there"
    r"|although|while|he|she|they|students?|based|with|considering)\b"
)
_ANOTHER = compile_later(r"(?i)probabilit|likelihood|chance|confiden|certain")
_CONTRARY = compile_later(
    r"(?i)[\s\"'”*_`)]{0,6}(?:(?:probability|likelihood|chance)\s)?(?:that|of|for)\b[^.,;\n]{0,60}"
    r"(?:\b(?:not|no|never|fail\w{0,9}|lack\w{0,9}|mis\w{1,20})\b|n['’]t\b)"
)


def parse_probability(value: Any) -> float | None:
    """Return the probability in a JSON value or a text; None where there is no single number in [0, 1]."""
    if isinstance(value, str):
        return _of_text(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return _check_range(value)


def _check_range(number: float) -> float | None:
    try:
        number = float(number)
    except OverflowError:
        return None
    return number + 0.0 if math.isfinite(number) and 0 <= number <= 1 else None


def _of_text(text: str) -> float | None:
    bare = _BARE.match(text)
    if bare is not None:
        return _check_range(float(bare[1]))
    text = text.strip().replace("٫", ".")
    if not text or len(text) > _MAX:
        return None
    if " per" in text and not any(map(str.isdigit, text)):
        text = _COUNTED.sub(_write_in_digits, text)
        if not _COUNTS.keys().isdisjoint(re.findall(r"[a-z]+", text.lower())):
            return None
    start = _APPROXIMATELY.match(text)
    at = start.end() if start else 0
    first = _NUMBER.match(text, at)
    if first is None:
        # `low (0.2)`, `I would say 20%`
        return (
            None
            if _BOUND.search(text)
            else find_common_value(
                [_read_value(m) for m in _NUMBER.finditer(text) if _is_likely_probability(m)]
            )
        )
    value = _read_value(first)
    rest = text[first.end() :]
    if value is None or rest[:1].isalnum() or rest[:1] == "+" or _CONTRARY.match(rest):
        return None
    if _PART.match(rest) and "." not in first["a"]:
        return None
    between = _RANGE.match(rest)
    if between is not None:
        other = _NUMBER.match(rest, between.end())
        again = other is not None and "or" in between.group() and _read_value(other) == value
        return value if again else None
    if _EXPLAINS.match(rest) and not _ANOTHER.search(rest):
        return value
    others = [
        v for m in _NUMBER.finditer(rest) if _is_likely_probability(m) and (v := _read_value(m)) is not None
    ]
    return find_common_value([value, *others])


def _write_in_digits(words: re.Match[str]) -> str:
    """Return a number in words as digits."""
    tens, units = (_COUNTS[words[part].lower()] if words[part] else 0 for part in ("tens", "units"))
    return str(tens + units) if words[0] and (not tens or units < 10) else words[0]


def find_common_value(values: list[float | None]) -> float | None:
    """Return the first of some values if all are nearly the same."""
    first, *others = values or [None]
    same = first is not None and all(other is not None and abs(first - other) < 0.006 for other in others)
    return first if same else None


def _is_likely_probability(match: re.Match[str]) -> bool:
    """Return whether the number looks like a probability, not like a count of something."""
    return bool(match["percent"] or match["b"] or "." in match["a"] or match["a"].startswith(("0,", ",")))


def _read_value(match: re.Match[str]) -> float | None:
    if match["sign"]:
        return None
    digits = match["a"]
    if "," in digits and not digits.startswith(("0,", ",", "1,0")) and not match["percent"]:
        return None
    number = float(digits.replace(",", ".") + (match["e"] or ""))
    if match["b"] is not None:
        below = float(match["b"])
        if below == 0:
            return None
        if number >= 10 and number + below == 100:
            return None  # odds: 50/50, 40/60
        number /= below
    if match["percent"]:
        number = round(number / 100, 12)
    return _check_range(number)


def read_probability(text: str) -> float | None:
    """Return the probability in an answer to a question for it; None if there is no single number.

    JSON counts by its value, so 0 and 1 are numbers there as well.
    """
    body = body_of(text)
    value = decode_json(strip_fence(body)) if "{" in body else None
    if isinstance(value, dict) and len(value) == 1:
        return parse_probability(next(iter(value.values())))
    return parse_probability(drop_thinking(text, []).strip().strip("`"))
