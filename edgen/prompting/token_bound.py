"""How many tokens a prompt will be, before anybody has counted: the most it can be, the least, and a guess.

All count UTF-8 bytes: the tokenizers in use fall back to bytes for what they do not know, so no text makes more tokens
than it has bytes, and English makes about one for four (OpenAI's rule of thumb). The most that a language gets out of a
token is 10.5 bytes (Hindi by OpenAI's o200k_base, against 4.4 for English; the Tamil, Thai and Georgian measured had 8
to 9); only runs of one character get more. So a count below a sixteenth of the bytes is none to charge by. Chat
templates put markers around each message and sometimes a system prompt of their own.
"""

from __future__ import annotations

from collections.abc import Iterable

from edgen.core.values import Message

_MARKERS_AT_MOST = 16  # tokens around one message
_OWN_PROMPT_AT_MOST = 64  # tokens that a chat template adds once
_MARKERS_USUALLY = 4
_AROUND_SCHEMA_AT_MOST = 500  # tokens that say what the schema is for
_BYTES_AT_MOST = 16  # in a token, over a whole text


def prompt_token_bound(messages: Iterable[Message], schema: bytes | None = None) -> int:
    """Tokens that the prompt will not exceed: what a budget has to set aside. A service may put the schema that the
    answer has to fit into the prompt, and some words of its own around it."""
    shown = 0 if schema is None else len(schema) + _AROUND_SCHEMA_AT_MOST
    return _OWN_PROMPT_AT_MOST + shown + sum(text_token_bound(m.content) + _MARKERS_AT_MOST for m in messages)


def prompt_token_estimate(messages: Iterable[Message], schema: bytes | None = None) -> int:
    """Tokens that the prompt will be, roughly: what a rate limit has to reckon with."""
    shown = 0 if schema is None else -(-len(schema) // 4)
    return shown + sum(-(-text_token_bound(m.content) // 4) + _MARKERS_USUALLY for m in messages)


def prompt_token_floor(messages: Iterable[Message]) -> int:
    """Tokens that the prompt has at least, whatever the service counts."""
    return sum(text_token_bound(m.content) for m in messages) // _BYTES_AT_MOST


def text_token_floor(text: str) -> int:
    """Tokens that a text has at least, whatever the service counts."""
    return text_token_bound(text) // _BYTES_AT_MOST


def text_token_bound(text: str) -> int:
    """Tokens that a text will not exceed: its bytes in UTF-8."""
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))
