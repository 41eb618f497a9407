"""The tokens and US dollars of calls to one backend: their maximum before, and the charge after an answer."""

from __future__ import annotations

from functools import partial

from edgen.config import BackendConfig
from edgen.config.backends import find_prices
from edgen.core.values import Reply, Request
from edgen.prompting.token_bound import (
    apply_token_floor,
    compute_cost,
    count_least_prompt_tokens,
    count_least_text_tokens,
    count_most_prompt_tokens,
    count_most_text_tokens,
    estimate_prompt_tokens,
    to_picodollars,
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
            least = count_least_text_tokens if self._max_tokens else count_most_text_tokens
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
