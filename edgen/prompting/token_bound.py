"""Bounds on a prompt's tokens before any service has counted: maximum, minimum, and an estimate.

All count UTF-8 bytes: current tokenizers fall back to bytes, so no text has more tokens than bytes, and
English has about four bytes per token (OpenAI's rule of thumb). The highest measured rate of a language is
10.5 bytes per token (Hindi by OpenAI's o200k_base, against 4.4 for English; Tamil, Thai and Georgian had 8 to
9); only runs of one character have more. So a count below a sixteenth of the bytes is not used for charging.
Chat templates put markers around each message and sometimes add a system prompt.

Once a service has answered, `floored` and `compute_cost` say what the answer is charged.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from edgen.config import Price
from edgen.core.errors import CallError, FailureKind, ProviderError
from edgen.core.pictures import Counted, count_picture_tokens
from edgen.core.values import Message, Reply, Usage

_MARKERS_AT_MOST = 16  # tokens around one message
_OWN_PROMPT_AT_MOST = 64  # tokens that a chat template adds once
_MARKERS_USUALLY = 4
_AROUND_SCHEMA_AT_MOST = 500  # tokens that introduce the schema
_BYTES_AT_MOST = 16  # per token, over a whole text


def count_most_prompt_tokens(
    messages: Iterable[Message], schema: bytes | None = None, counted: Counted | None = None
) -> int:
    """Return the maximum tokens of a prompt, which a budget reserves. A service may put the schema of the
    answer into the prompt, with some words around it. `counted`: the tokens of a picture."""
    messages = [*messages]
    shown = 0 if schema is None else len(schema) + _AROUND_SCHEMA_AT_MOST
    shown += sum(count_picture_tokens(m.content, counted).most for m in messages if counted is not None)
    return (
        _OWN_PROMPT_AT_MOST
        + shown
        + sum(count_most_text_tokens(m.content) + _MARKERS_AT_MOST for m in messages)
    )


def estimate_prompt_tokens(
    messages: Iterable[Message], schema: bytes | None = None, counted: Counted | None = None
) -> int:
    """Return the estimated tokens of a prompt, for a rate limit."""
    messages = [*messages]
    shown = 0 if schema is None else -(-len(schema) // 4)
    shown += sum(count_picture_tokens(m.content, counted).expected for m in messages if counted is not None)
    return shown + sum(-(-count_most_text_tokens(m.content) // 4) + _MARKERS_USUALLY for m in messages)


def count_least_prompt_tokens(messages: Iterable[Message]) -> int:
    """Return the minimum tokens of a prompt for any tokenizer."""
    size = 0
    for message in messages:  # for each answer, so without a generator
        size += count_most_text_tokens(message.content)
    return size // _BYTES_AT_MOST


def count_least_text_tokens(text: str) -> int:
    """Return the minimum tokens of a text for any tokenizer."""
    return count_most_text_tokens(text) // _BYTES_AT_MOST


def count_most_text_tokens(text: str) -> int:
    """Return the maximum tokens of a text: its bytes in UTF-8."""
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


# After an unreadable or late answer, or a broken connection, the service may charge nevertheless.
MAYBE_CHARGED = frozenset(
    {FailureKind.BAD_RESPONSE, FailureKind.BAD_OUTPUT, FailureKind.TIMEOUT, FailureKind.CONNECTION}
)


def apply_token_floor(usage: Usage, reply: Reply, prompt: int = 0) -> Usage:
    """Return the usage of a reply, at least the minimum for the bytes of its texts and for a prompt of that
    many tokens."""
    said = count_least_text_tokens(reply.text)
    for other in reply.others:
        said += count_least_text_tokens(other.text)
    if usage.prompt_tokens >= prompt and usage.completion_tokens >= said:
        return usage
    return msgspec.structs.replace(
        usage,
        prompt_tokens=max(usage.prompt_tokens, prompt),
        completion_tokens=max(usage.completion_tokens, said),
    )


def compute_cost(price: Price | None, usage: Usage, *, batch: bool = False) -> float:
    """Return US dollars for counted tokens, 0 without a price; in whole picodollars, so that budget and
    ledger compute equal sums."""
    return 0.0 if price is None else to_picodollars(price.cost(usage, batch=batch))


def to_picodollars(dollars: float) -> float:
    """Round US dollars to whole picodollars."""
    return round(dollars, 12)


def may_be_charged(problem: BaseException) -> bool:
    """Return whether the service may have worked on a call without a reply."""
    if isinstance(problem, CallError):
        return problem.kind in MAYBE_CHARGED and not problem.unsent
    return not isinstance(problem, ProviderError)  # else it was refused
