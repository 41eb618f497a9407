"""Log probabilities in the format of OpenAI's APIs: a token with its bytes, and the likely ones at its place.

https://platform.openai.com/docs/api-reference/chat/object: `choices[].logprobs.content`; those of an
`output_text` of the Responses API have the same fields.
"""

from __future__ import annotations

from edgen.core.values import Token
from edgen.providers.tokens import Told, join_tokens, read_token


def read_tokens(listed: object) -> tuple[Token, ...] | None:
    """Return the tokens of an answer; None if they are missing or invalid."""
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
