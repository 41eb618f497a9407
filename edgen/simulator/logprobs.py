"""Log probabilities of the simulated model's tokens, and of alternatives.

A token is four characters, as in usage. Like the answer, the numbers follow from the request. A judge that
answers with a number is as certain as the qualities differ: the token with the number, and the same token
with the other number, share their probability by `judge.compute_leaning`. `1` and `2` also share it at the
first token, unless that begins JSON.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from random import Random

import msgspec

from edgen.core.values import Message, Reply, Token
from edgen.simulator import judge
from edgen.simulator.config import CHARS_PER_TOKEN

MOST = 20  # tokens returned at one position
_BARE = 0.85  # share of the number, in a verdict that begins with its number
_DRESSED = 0.12  # share of the numbers, in a verdict that begins otherwise
_SAID = 0.97  # share of the number, in a verdict that began otherwise
_LIKELY = 0.98  # share of the listed tokens in the remaining probability
_NUMBER, _OTHER = re.compile("[12]"), str.maketrans("12", "21")
_COMMON = (
    " the", " and", " you", " are", " for", " not", " but", " can", " how", " why", " one", " two", " let",
    " see",
    " say", " yes", " our", " all", " new", " way", " was", " had", " its", " out",
)  # fmt: skip


def score(reply: Reply, messages: Sequence[Message], key: bytes, fault: str | None, top: int) -> Reply:
    """Return the reply to the request of this key, with its content fault, with the tokens of its text, or of
    its refusal, and at most `top` likely ones at each position, including the chosen token."""
    leaning = judge.compute_leaning(messages, reply.text, fault)
    rng = Random(int.from_bytes(key, "big"))  # noqa: S311 - reproducible, not secret
    text = reply.refusal if reply.refusal and reply.finish_reason == "stop" else reply.text
    tokens = []
    number = _NUMBER.search(text) if leaning is not None else None
    for start in range(0, len(text), CHARS_PER_TOKEN):
        said = text[start : start + CHARS_PER_TOKEN]
        sure = 1 - 0.5 * rng.random() ** 2
        shares = {said: sure}
        if leaning is not None and number is not None and start <= number.start() < start + CHARS_PER_TOKEN:
            shares = _share_numbers(said, leaning, _DRESSED if start == 0 and len(said) > 1 else _SAID)
        if leaning is not None and not start and not said.startswith("{"):
            shares = _share_opening(said, shares, leaning)
        tokens.append(_make_token(said, shares, top, rng))
    return msgspec.structs.replace(reply, tokens=tuple(tokens))


def _share_numbers(said: str, leaning: float, share: float) -> dict[str, float]:
    """Return the probabilities of the token with a verdict's number, and of the same token with the other
    number. They sum to `share`."""
    own = leaning if "1" in said else 1 - leaning
    return {said: share * own, said.translate(_OTHER): share * (1 - own)}


def _share_opening(said: str, shares: dict[str, float], leaning: float) -> dict[str, float]:
    """Return the first tokens of a verdict: both numbers, and this verdict's beginning if it does not start
    with its number."""
    begun = shares if _NUMBER.search(said) else {said: _DRESSED}
    return {**begun, "1": _BARE * leaning, "2": _BARE * (1 - leaning)}


def _make_token(said: str, shares: dict[str, float], top: int, rng: Random) -> Token:
    """Return a token with its `top` alternatives, including itself. `shares` has the known probabilities."""
    left = (1 - sum(shares.values())) * _LIKELY
    start = int(rng.random() * len(_COMMON))
    for other in _COMMON[start:] + _COMMON[:start]:
        if other not in shares:
            left /= 2
            shares[other] = left
    logs = {text: math.log(max(share, 1e-12)) for text, share in shares.items()}
    likely = sorted(logs.items(), key=lambda pair: -pair[1])[:top]
    if top and all(text != said for text, _ in likely):
        likely[-1] = (said, logs[said])
    return Token(said, logs[said], tuple(likely))
