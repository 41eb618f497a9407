"""What calls use, and what it costs: the sums and intervals that an estimate is made of."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from edgen.config import BackendConfig, Job, Price, backend_name, roles_asked
from edgen.stats.quantiles import t95

Way = Literal["online", "batch"]


class Used(NamedTuple):
    """Calls, prompt tokens, completion tokens, US dollars (those without a price count nothing)."""

    calls: float = 0.0
    prompt: float = 0.0
    completion: float = 0.0
    usd: float = 0.0

    @property
    def tokens(self) -> float:
        return self.prompt + self.completion

    def plus(self, other: Used) -> Used:
        return Used(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    def times(self, factor: float) -> Used:
        return Used(*(mine * factor for mine in self))

    def less(self, other: Used) -> Used:
        """Without what is there already, and never below nothing."""
        return Used(*(max(mine - theirs, 0.0) for mine, theirs in zip(self, other, strict=True)))


class Range(NamedTuple):
    """What a job uses: at the low end, as expected, at the high end."""

    low: Used
    expected: Used
    high: Used

    def plus(self, other: Range) -> Range:
        return Range(*(mine.plus(theirs) for mine, theirs in zip(self, other, strict=True)))

    def times(self, factor: float) -> Range:
        return Range(*(level.times(factor) for level in self))

    def widened(self, factor: float) -> Range:
        return Range(self.low.times(1 / factor), self.expected, self.high.times(factor))

    def parted(self, calls: float) -> tuple[Range, Range]:
        """What so many of the calls use, and what the others do, each call taken to use alike."""
        shares = [min(calls / level.calls, 1.0) if level.calls else 0.0 for level in self]
        pairs = list(zip(self, shares, strict=True))
        theirs, others = (level.times(p) for level, p in pairs), (level.times(1 - p) for level, p in pairs)
        return Range(*theirs), Range(*others)


class Rates:
    """What the roles of a job pay per token, by the way in which they are asked."""

    def __init__(self, job: Job, via: Way) -> None:
        prices = {role: backend.price for role, backend in backends_asked(job).items()}
        self.priced = all(price is not None for price in prices.values())
        self._rates = {role: _per_token(price, via) for role, price in prices.items()}
        self.free = self.priced and not any(map(any, self._rates.values()))  # a cap in dollars binds nothing

    def used(self, role: str, calls: float, prompt: float, completion: float) -> Used:
        """So many calls of a role, with what they cost."""
        per_prompt, per_completion = self._rates[role]
        return Used(calls, prompt, completion, prompt * per_prompt + completion * per_completion)

    def dearest(self, prompt: int, completion: int) -> float:
        """The most that an answer can have cost, whichever role gave it."""
        return max(self.used(role, 1, prompt, completion).usd for role in self._rates)


def backends_asked(job: Job) -> dict[str, BackendConfig]:
    """The backend of each role that the job's conversations ask."""
    return {role: job.backends[backend_name(job, role)] for role in roles_asked(job)}


def add_up(parts: Iterable[Used]) -> Used:
    """The sum of all."""
    whole = Used()
    for part in parts:
        whole = whole.plus(part)
    return whole


def predict(seen: Sequence[Used], scenarios: float) -> Range:
    """The sums over so many scenarios that are still to come, from those that were seen (one at least).

    The 95% interval for the sum of n future draws from m seen ones: n times their mean, give or take
    t(m - 1) s sqrt(n + n²/m) (Hahn and Meeker, "Statistical Intervals", 1991). What never happened may: one
    more scenario with one more call than the mean counts towards s, as if it had been seen, in the spirit of
    Agresti and Coull's interval for shares (1998); else a hundred scenarios without a second ask would rule
    the second ask out.
    """
    n, m = scenarios, len(seen)
    mean = add_up(seen).times(1 / m)
    one_more = mean.plus(mean.times(1 / mean.calls)) if mean.calls else mean
    spreads = map(statistics.stdev, zip(*seen, one_more, strict=True))
    half = Used(*(t95(m) * spread * math.sqrt(n + n * n / m) for spread in spreads))
    expected = mean.times(n)
    low = expected.less(half)
    fewest = min(used.calls for used in seen) * n
    return Range(low._replace(calls=max(low.calls, fewest)), expected, expected.plus(half))


def _per_token(price: Price | None, via: Way) -> tuple[float, float]:
    if price is None:
        return 0.0, 0.0
    share = price.batch if via == "batch" else 1.0
    return price.prompt * share / 1e6, price.completion * share / 1e6
