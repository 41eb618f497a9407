"""Bounds on a prompt's tokens before a service has counted them: a maximum, and an estimate.

Both count UTF-8 bytes: current tokenizers fall back to bytes, so no text has more tokens than bytes, and
English has about four bytes per token (OpenAI's rule of thumb). Chat templates put markers around each
message and sometimes add a system prompt.
"""

from __future__ import annotations

from collections.abc import Iterable

from edgen.core.pictures import Counted, count_picture_tokens
from edgen.core.text import count_utf8_bytes
from edgen.core.values import Message

_MARKERS_AT_MOST = 16  # tokens around one message
_OWN_PROMPT_AT_MOST = 64  # tokens that a chat template adds once
_MARKERS_USUALLY = 4
_AROUND_SCHEMA_AT_MOST = 500  # tokens that introduce the schema


def count_most_prompt_tokens(
    messages: Iterable[Message], schema: bytes | None = None, counted: Counted | None = None
) -> int:
    """Return the maximum tokens of a prompt, which a budget reserves. A service may put the schema of the
    answer into the prompt, with some words around it. `counted` says how the service counts the tokens of a
    picture."""
    messages = [*messages]
    shown = 0 if schema is None else len(schema) + _AROUND_SCHEMA_AT_MOST
    shown += sum(count_picture_tokens(m.content, counted).most for m in messages if counted is not None)
    return _OWN_PROMPT_AT_MOST + shown + sum(count_utf8_bytes(m.content) + _MARKERS_AT_MOST for m in messages)


def estimate_prompt_tokens(
    messages: Iterable[Message], schema: bytes | None = None, counted: Counted | None = None
) -> int:
    """Return the estimated tokens of a prompt, for a rate limit."""
    messages = [*messages]
    shown = 0 if schema is None else -(-len(schema) // 4)
    shown += sum(count_picture_tokens(m.content, counted).expected for m in messages if counted is not None)
    return shown + sum(-(-count_utf8_bytes(m.content) // 4) + _MARKERS_USUALLY for m in messages)
