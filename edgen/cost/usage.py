"""What calls use, and what it costs: the sums that an estimate is made of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from edgen.config import Job, Price, backend_name, roles_asked

Way = Literal["online", "batch"]


class Used(NamedTuple):
    """Calls, prompt tokens, completion tokens, US dollars (those without a price count nothing)."""

    calls: float = 0.0
    prompt: float = 0.0
    completion: float = 0.0
    usd: float = 0.0

    def plus(self, other: Used) -> Used:
        return Used(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    def times(self, factor: float) -> Used:
        return Used(*(mine * factor for mine in self))


class Rates:
    """What the roles of a job pay per token, by the way in which they are asked."""

    def __init__(self, job: Job, via: Way) -> None:
        prices = {role: job.backends[backend_name(job, role)].price for role in roles_asked(job)}
        self.priced = all(price is not None for price in prices.values())
        self._rates = {role: _per_token(price, via) for role, price in prices.items()}
        self.free = self.priced and not any(map(any, self._rates.values()))  # a cap in dollars binds nothing

    def used(self, role: str, calls: float, prompt: float, completion: float) -> Used:
        """So many calls of a role, with what they cost."""
        per_prompt, per_completion = self._rates[role]
        return Used(calls, prompt, completion, prompt * per_prompt + completion * per_completion)

    def dearest(self, prompt: int, completion: int) -> float:
        """The most that an answer can have cost, whichever role gave it."""
        return max(
            prompt * of_prompt + completion * of_answer for of_prompt, of_answer in self._rates.values()
        )


def add_up(parts: Iterable[Used]) -> Used:
    """The sum of all."""
    whole = Used()
    for part in parts:
        whole = whole.plus(part)
    return whole


def _per_token(price: Price | None, via: Way) -> tuple[float, float]:
    if price is None:
        return 0.0, 0.0
    share = price.batch if via == "batch" else 1.0
    return price.prompt * share / 1e6, price.completion * share / 1e6
