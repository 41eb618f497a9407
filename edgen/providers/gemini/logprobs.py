"""Log probabilities in Google's format, a candidate's `logprobsResult`: the chosen tokens and the likeliest
ones at each place. Zeros are omitted.

https://ai.google.dev/api/generate-content#LogprobsResult
"""

from __future__ import annotations

from edgen.plugin.providers import StatedToken, Token, join_tokens, read_token


def read_tokens(result: object) -> tuple[Token, ...] | None:
    """Return the tokens of an answer; None if they are missing or invalid."""
    chosen, top = _list(result, "chosenCandidates"), _list(result, "topCandidates")
    return join_tokens(
        [_read(one) for one in chosen], [[_read(it) for it in _list(one, "candidates")] for one in top]
    )


def _list(value: object, name: str) -> list[object]:
    listed = value.get(name) if isinstance(value, dict) else None
    return listed if isinstance(listed, list) else []


def _read(value: object) -> StatedToken | None:
    return (
        read_token(value.get("token"), None, value.get("logProbability", 0.0))
        if isinstance(value, dict)
        else None
    )
