"""Log probabilities as OpenAI's APIs list them: a token with its bytes, and the likely ones in its place.

https://platform.openai.com/docs/api-reference/chat/object: `choices[].logprobs.content`; those of an `output_text` of
the Responses API have the same fields.
"""

from __future__ import annotations

from edgen.core.values import Token
from edgen.providers.tokens import Told, join_tokens, read_token


def read_tokens(listed: object) -> tuple[Token, ...] | None:
    """The tokens of an answer; None where none are told, or what is told cannot be true."""
    if not isinstance(listed, list):
        return None
    return join_tokens([_read(one) for one in listed], [_read_top(one) for one in listed])


def _read(value: object) -> Told | None:
    if not isinstance(value, dict):
        return None
    return read_token(value.get("token"), value.get("bytes"), value.get("logprob"))


def _read_top(value: object) -> list[Told | None]:
    listed = value.get("top_logprobs") if isinstance(value, dict) else None
    return [_read(one) for one in listed] if isinstance(listed, list) else []
