"""The tokens and US dollars of calls to one backend: their maximum before, and the charge after an answer.

Counts below a sixteenth of the bytes of a text are not used for charging. The highest measured rate of a
language is 10.5 bytes per token (Hindi by OpenAI's o200k_base, against 4.4 for English; Tamil, Thai and
Georgian had 8 to 9); only runs of one character have more.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import msgspec

from edgen.config import BackendConfig, Price
from edgen.config.backends import find_prices
from edgen.core.errors import CallError, FailureKind, ProviderError
from edgen.core.text import count_utf8_bytes
from edgen.core.values import Message, Reply, Request, Usage
from edgen.prompting.token_bound import count_most_prompt_tokens, estimate_prompt_tokens

_BYTES_AT_MOST = 16  # per token, over a whole text
# After an unreadable or late answer, or a broken connection, the service may charge nevertheless.
MAYBE_CHARGED = frozenset(
    {FailureKind.BAD_RESPONSE, FailureKind.BAD_OUTPUT, FailureKind.TIMEOUT, FailureKind.CONNECTION}
)


class Charges:
    """The charges of a backend by its price and limits in the job. It learns how far the service counts
    beyond the bounds."""

    def __init__(self, config: BackendConfig) -> None:
        self._price = config.price
        self._max_tokens, self._room = config.max_tokens, config.room
        self._counted = partial(find_prices(config).picture_tokens, config.model)
        # Prompt and completion tokens: the most that the service counted beyond the bounds.
        self._beyond = (0, 0)

    def estimate(self, request: Request) -> int:
        """Return about how many tokens the prompt of a request has, for a rate."""
        return estimate_prompt_tokens(request.messages, request.schema, self._counted)

    def estimate_at_most(self, request: Request) -> tuple[int, int]:
        """Return the maximum prompt and completion tokens of a request, as far as known: a service may again
        count as far beyond the bounds as before."""
        prompt, room = self._count_most_tokens(request)
        return prompt + self._beyond[0], room + self._beyond[1]

    def _count_most_tokens(self, request: Request) -> tuple[int, int]:
        prompt = count_most_prompt_tokens(request.messages, request.schema, self._counted)
        return prompt, (self._room(request.max_tokens_scale) or 0) * request.choices

    def learn(self, reply: Reply, request: Request) -> None:
        """Learn from counts beyond the bounds, caused for example by a hidden prompt or thoughts."""
        if (usage := reply.usage) is not None:
            prompt, room = self._count_most_tokens(request)
            more, longer = usage.prompt_tokens - prompt, usage.completion_tokens - room
            self._beyond = (max(self._beyond[0], more), max(self._beyond[1], longer))

    def charge(self, reply: Reply, request: Request) -> tuple[int, float | None]:
        """Return the charges of an answer: tokens, and US dollars if there is a price. Without counts, charge
        the maximum; for counts below the minimum for the bytes, charge that minimum."""
        usage = reply.usage
        if usage is None:
            prompt, room = self.estimate_at_most(request)
            least = count_least_text_tokens if self._max_tokens else count_utf8_bytes
            used = prompt, max(room, sum(least(one.text) for one in (reply, *reply.others)))
            return sum(used), None if self._price is None else self.compute_most_cost(*used)
        usage = apply_token_floor(usage, reply, count_least_prompt_tokens(request.messages))
        tokens = usage.prompt_tokens + usage.completion_tokens
        return tokens, None if self._price is None else compute_cost(self._price, usage)

    def compute_most_cost(self, prompt_tokens: int, completion_tokens: int, *, batch: bool = False) -> float:
        """Return the maximum cost of these tokens, in US dollars to the picodollar, by the job's price; 0
        without one."""
        if self._price is None:
            return 0.0
        return to_picodollars(self._price.compute_highest_cost(prompt_tokens, completion_tokens, batch=batch))


def count_least_prompt_tokens(messages: Iterable[Message]) -> int:
    """Return the minimum tokens of a prompt for any tokenizer."""
    size = 0
    for message in messages:  # for each answer, so without a generator
        size += count_utf8_bytes(message.content)
    return size // _BYTES_AT_MOST


def count_least_text_tokens(text: str) -> int:
    """Return the minimum tokens of a text for any tokenizer."""
    return count_utf8_bytes(text) // _BYTES_AT_MOST


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
