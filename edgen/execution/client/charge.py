"""What an answer is charged at, by what was counted and what its texts must have taken."""

from __future__ import annotations

import msgspec

from edgen.config import Price
from edgen.core.values import Reply, Usage
from edgen.prompting.token_bound import text_token_floor


def floored(usage: Usage, reply: Reply, prompt: int = 0) -> Usage:
    """The usage of a reply, no less than the bytes of its texts and a prompt of so many tokens allow."""
    said = sum(text_token_floor(one.text) for one in (reply, *reply.others))
    if usage.prompt_tokens >= prompt and usage.completion_tokens >= said:
        return usage
    return msgspec.structs.replace(
        usage,
        prompt_tokens=max(usage.prompt_tokens, prompt),
        completion_tokens=max(usage.completion_tokens, said),
    )


def cost_of(price: Price | None, usage: Usage, *, batch: bool = False) -> float:
    """US dollars for tokens as they were counted, 0 without a price; in whole picodollars, so that the budget and the
    ledger come to the same sums."""
    return 0.0 if price is None else to_picodollars(price.cost(usage, batch=batch))


def to_picodollars(dollars: float) -> float:
    """US dollars, rounded to whole picodollars."""
    return round(dollars, 12)
