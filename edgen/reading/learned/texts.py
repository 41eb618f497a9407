"""Texts around turns, compared without regard to their numbers, and the probabilities in them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from edgen.core.text import compile_later

DIGITS = compile_later("[0-9]+")
KEY = 3  # characters by which layouts are looked up
LONGEST_VALUE = 60  # characters of a probability
# Letters, Roman numbers and circled ones that number the lines of a list.
_LETTERED = compile_later(r"(\n[^\w\n]{0,4})(?:[①-⑳]|(?:[A-Za-z]|[ivx]{1,5}|[IVX]{1,5})(?=[.)]))")
_RULE = compile_later(r"\A\n{1,3}(?:---|\*\*\*|___)(?=\n)")
VALUE = compile_later(
    r"(?<![0-9.])(?<![0-9],)(?:[01][.,][0-9]{1,6}(?![.,]?[0-9])"
    r"|[0-9]{1,3}(?:[ ]?%|(?:/|[ ]out[ ]of[ ])[0-9]{1,3}\b(?!\.[0-9])"
    r"|[ ]per[ ]?cent\b))(?:[ ]\((?:[01][.,][0-9]{1,6}|[0-9]{1,3}[ ]?%)\))?|(?i:(?<!\w)(?:[a-z]{3,9}ty(?:[ -](?:[a-z]{3}|f(?:our|ive)|three|seven|eight|nine))?"
    r"|(?:f|six|seven|eigh|nine)?teen|ten|five)[ ]per[ ]?cent\b)"
)
_NO_DIGITS = bytes(code for code in range(256) if code and not 48 <= code < 58)
_NUMBER = compile_later(r"[\d.,]+|\A[A-Za-z-]+(?: (?!per)[A-Za-z]+)?")


@lru_cache(maxsize=1024)  # few values recur
def find_unit(value: str) -> str | None:
    """Return a probability without its numbers: nothing, `%`, `/`, ` out of `, ` percent`, ` (%)`; None if it
    is no probability."""
    return _NUMBER.sub("", value) if VALUE.fullmatch(value) else None


def find_numbered(texts: Sequence[str]) -> list[str]:
    """Return the texts that hold a digit."""
    digits = "\0".join(texts).encode("utf-8", "surrogatepass").translate(None, _NO_DIGITS).split(b"\0")
    return [text for text, some in zip(texts, digits, strict=True) if some]


def zero_digits(text: str, *, lettered: bool = True) -> str:
    """Return the text with zeros as its digits and, where it is `lettered`, as the letters of a list."""
    if lettered:
        text = _LETTERED.sub(_replace_letters, text)
    for digit in "123456789":
        text = text.replace(digit, "0")
    return text


def _replace_letters(mark: re.Match[str]) -> str:
    return mark[1] + "0" * (mark.end() - mark.end(1))


def make_skeleton(gap: str) -> str:
    """Return a text between turns without a rule at its beginning, with one digit for any number and one kind
    of straight quotation marks.

    Python literals use either kind.
    """
    return DIGITS.sub("0", _RULE.sub("", gap)).replace("'", '"')
