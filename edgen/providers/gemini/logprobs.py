"""Log probabilities as Google lists them, in a candidate's `logprobsResult`: the tokens that were chosen, and beside them the
likely ones at each place. What is 0 is left out.

https://ai.google.dev/api/generate-content#LogprobsResult
"""

from __future__ import annotations

from edgen.core.values import Token
from edgen.providers.tokens import Told, join_tokens, read_token


def read_tokens(result: object) -> tuple[Token, ...] | None:
    """The tokens of an answer; None where none are told, or what is told cannot be true."""
    chosen, top = _list(result, "chosenCandidates"), _list(result, "topCandidates")
    return join_tokens(
        [_read(one) for one in chosen], [[_read(it) for it in _list(one, "candidates")] for one in top]
    )


def _list(value: object, name: str) -> list[object]:
    listed = value.get(name) if isinstance(value, dict) else None
    return listed if isinstance(listed, list) else []


def _read(value: object) -> Told | None:
    return (
        read_token(value.get("token"), None, value.get("logProbability", 0.0))
        if isinstance(value, dict)
        else None
    )
