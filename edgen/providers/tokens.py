"""Tokens of an answer as reported by services, with checks, shared by all adapters.

A log probability is a number of at most 0. Services write -9999 for almost impossible tokens, and some omit
zeros.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from edgen.core.values import Token
from edgen.providers.failures import scrub

MOST_TOP = 20  # most likely tokens at one place; services return no more
LEAST = -9999.0
_DIGITS = 5  # decimals of a log probability
_NOISE = 1e-3  # some servers' probabilities add up to slightly more than 1


class StatedToken(NamedTuple):
    """A token as reported by a service: text, bytes if given, and log probability."""

    text: str
    data: bytes | None
    logprob: float


def read_token(text: object, data: object, logprob: object) -> StatedToken | None:
    """Build a token from a service's values; None if they are invalid."""
    value = _read_log(logprob)
    if not isinstance(text, str) or value is None:
        return None
    return StatedToken(scrub(text), _read_bytes(data), value)


def _read_log(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value <= _NOISE:
        return None
    return round(max(float(value), LEAST), _DIGITS) if value < 0 else 0.0


def _read_bytes(data: object) -> bytes | None:
    if not isinstance(data, list) or not all(type(one) is int and 0 <= one < 256 for one in data):
        return None
    return bytes(data)


def join_tokens(
    stated: Sequence[StatedToken | None], likely: Iterable[Sequence[StatedToken | None]]
) -> tuple[Token, ...] | None:
    """Return the tokens of an answer, with the likely ones at each place; None if a token is invalid.

    A character whose bytes span several tokens belongs to the last of them, so the tokens spell the answer.
    """
    if not stated:
        return None
    tops = iter(likely)
    texts = codecs.getincrementaldecoder("utf-8")("replace")
    tokens: list[Token] = []
    for one in stated:
        if one is None:
            return None
        text = one.text
        if one.data is not None:
            text = texts.decode(one.data)
        elif texts.getstate()[0]:
            text = texts.decode(b"", final=True) + text
        tokens.append(Token(scrub(text), one.logprob, _sort_likely(next(tops, ()))))
    if rest := texts.decode(b"", final=True):
        last = tokens[-1]
        tokens[-1] = Token(last.text + rest, last.logprob, last.top)
    return tuple(tokens)


def _sort_likely(likely: Sequence[StatedToken | None]) -> tuple[tuple[str, float], ...]:
    """Return the valid likely tokens of one place, the likeliest first."""
    found = [(one.text, one.logprob) for one in likely if one is not None]
    return tuple(sorted(found, key=lambda pair: -pair[1])[:MOST_TOP])
