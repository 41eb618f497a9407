"""Log probabilities in the format of OpenAI's APIs: a token with its bytes, and the likely tokens at its
place.

https://platform.openai.com/docs/api-reference/chat/object: `choices[].logprobs.content`. An `output_text` of
the Responses API has the same fields. With `post_sampling_probs`, llama.cpp has `prob` and `top_probs`
instead: probabilities after a grammar.
"""

from __future__ import annotations

import math

from edgen.plugin.providers import LEAST, StatedToken, Token, join_tokens, read_token

_MOST = 1.0001  # servers' probabilities may be rounded up


def read_tokens(listed: object) -> tuple[Token, ...] | None:
    """Return the tokens of an answer; None if they are missing or invalid."""
    if not isinstance(listed, list):
        return None
    return join_tokens([_read(one) for one in listed], [_read_top(one) for one in listed])


def _read(value: object) -> StatedToken | None:
    if not isinstance(value, dict):
        return None
    logprob = value["logprob"] if "logprob" in value else _read_prob(value.get("prob"))
    return read_token(value.get("token"), value.get("bytes"), logprob)


def _read_prob(value: object) -> float | None:
    """Convert a probability to a log probability; None if it is invalid."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST:
        return None
    return math.log(value) if value > 0 else LEAST


def _read_top(value: object) -> list[StatedToken | None]:
    listed = value.get("top_logprobs", value.get("top_probs")) if isinstance(value, dict) else None
    return [_read(one) for one in listed] if isinstance(listed, list) else []
