"""Charges of an answer, from the service's counts and the minimum for its texts."""

from __future__ import annotations

import msgspec

from edgen.config import Price
from edgen.core.errors import CallError, FailureKind, ProviderError
from edgen.core.values import Reply, Usage
from edgen.prompting.token_bound import text_token_floor

# After an unreadable or late answer, or a broken connection, the service may charge nevertheless.
MAYBE_CHARGED = frozenset(
    {FailureKind.BAD_RESPONSE, FailureKind.BAD_OUTPUT, FailureKind.TIMEOUT, FailureKind.CONNECTION}
)


def floored(usage: Usage, reply: Reply, prompt: int = 0) -> Usage:
    """Return the usage of a reply, at least the minimum for the bytes of its texts and for a prompt of that
    many tokens."""
    said = sum(text_token_floor(one.text) for one in (reply, *reply.others))
    if usage.prompt_tokens >= prompt and usage.completion_tokens >= said:
        return usage
    return msgspec.structs.replace(
        usage,
        prompt_tokens=max(usage.prompt_tokens, prompt),
        completion_tokens=max(usage.completion_tokens, said),
    )


def cost_of(price: Price | None, usage: Usage, *, batch: bool = False) -> float:
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
