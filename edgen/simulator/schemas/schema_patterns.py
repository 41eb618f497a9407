"""Texts that match the pattern of a JSON Schema."""

from __future__ import annotations

import re
import re._parser as regex_parser  # type: ignore[import-not-found]
import string
from collections.abc import Iterator
from random import Random
from typing import Any

MOST_TEXT = 10_000  # characters of one text that a schema may require
_CLASSES = {
    "CATEGORY_DIGIT": string.digits,
    "CATEGORY_SPACE": " ",
    "CATEGORY_WORD": string.ascii_letters + string.digits + "_",
    "CATEGORY_NOT_DIGIT": string.ascii_letters,
    "CATEGORY_NOT_SPACE": string.ascii_letters,
    "CATEGORY_NOT_WORD": " .,",
}
_ANY = string.ascii_lowercase


class UnfitSchema(Exception):  # noqa: N818 - an answer to give, not a failure of this program
    """An unsupported schema. Its text is a sentence for the caller."""


def make_match(pattern: str, rng: Random) -> str:
    """Return a text that matches a regular expression. Raises UnfitSchema."""
    if len(pattern) > 1000:
        raise UnfitSchema("a pattern has more than 1,000 characters")
    try:
        parsed = regex_parser.parse(pattern)
    except (re.error, RecursionError, OverflowError):
        raise UnfitSchema(f"the pattern {pattern[:80]!r} cannot be read") from None
    return "".join(_make_pieces(parsed, rng))


def _make_pieces(parsed: Any, rng: Random) -> Iterator[str]:
    for kind, value in parsed:
        match str(kind):
            case "LITERAL":
                yield chr(value)
            case "NOT_LITERAL":
                yield next(letter for letter in _ANY if ord(letter) != value)
            case "ANY":
                yield rng.choice(_ANY)
            case "IN":
                yield rng.choice(_list_members(value))
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                low, high, part = value
                if low > MOST_TEXT:
                    raise UnfitSchema("a pattern repeats something too often")
                for _ in range(rng.randint(low, min(high, low + 3))):
                    yield from _make_pieces(part, rng)
            case "SUBPATTERN":
                yield from _make_pieces(value[-1], rng)
            case "BRANCH":
                yield from _make_pieces(rng.choice(value[1]), rng)
            case "AT":
                pass
            case other:
                raise UnfitSchema(f"{other} in a pattern cannot be simulated")


def _list_members(parts: Any) -> str:
    """Return enough characters of a character class."""
    refused, found = False, ""
    for kind, value in parts:
        match str(kind):
            case "NEGATE":
                refused = True
            case "LITERAL":
                found += chr(value)
            case "RANGE":
                found += "".join(map(chr, range(value[0], min(value[1], value[0] + 200) + 1)))
            case "CATEGORY":
                found += _CLASSES[str(value)]
    if refused:
        found = "".join(set(string.ascii_letters + string.digits + " .-") - set(found))
    if not found:
        raise UnfitSchema("a pattern has a class without characters")
    return "".join(sorted(set(found)))
