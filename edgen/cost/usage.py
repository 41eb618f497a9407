"""Use and cost of calls: sums and intervals of an estimate."""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from edgen.config import BackendConfig, Job, find_backend, list_asked_roles
from edgen.core.options import Via
from edgen.core.values import Usage
from edgen.stats.quantiles import t95

# Minimum mean tokens of prompts that a service may cache. By their guides, no known service caches fewer than
# 1,024. Half of that where caching costs more, since counts may be wrong.
_CACHED_FROM, _WRITTEN_FROM = 1024, 512
# A million tokens of each kind: prompt, answer, prompt read from a cache, prompt written to it.
_MILLION = (Usage(10**6, 0), Usage(0, 10**6), Usage(10**6, 0, 10**6), Usage(10**6, 0, 0, 10**6))


class CallUse(NamedTuple):
    """Use of calls."""

    calls: float = 0.0
    """Number of calls."""
    prompt: float = 0.0
    """Prompt tokens."""
    completion: float = 0.0
    """Completion tokens."""
    usd: float = 0.0
    """US dollars; 0 for calls without a price."""
    saved: float = 0.0
    """US dollars that a prompt cache may save, if its use is unknown."""
    added: float = 0.0
    """US dollars that a prompt cache may add, if its use is unknown."""

    @property
    def tokens(self) -> float:
        return self.prompt + self.completion

    def plus(self, other: CallUse) -> CallUse:
        return CallUse(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    def times(self, factor: float) -> CallUse:
        return CallUse(*(mine * factor for mine in self))

    def less(self, other: CallUse) -> CallUse:
        """Return the use minus `other`, never below zero."""
        return CallUse(*(max(mine - theirs, 0.0) for mine, theirs in zip(self, other, strict=True)))


class UsageRange(NamedTuple):
    """The use of a job: low, expected, high."""

    low: CallUse
    expected: CallUse
    high: CallUse

    def plus(self, other: UsageRange) -> UsageRange:
        return UsageRange(*(mine.plus(theirs) for mine, theirs in zip(self, other, strict=True)))

    def times(self, factor: float) -> UsageRange:
        return UsageRange(*(level.times(factor) for level in self))

    def with_cache(self) -> UsageRange:
        """Return the low end with all possible savings of a prompt cache, the high end with all its
        additional cost."""
        low, expected, high = self
        return UsageRange(
            low._replace(usd=max(low.usd - low.saved, 0.0)),
            expected,
            high._replace(usd=high.usd + high.added),
        )

    def widen(self, factor: float) -> UsageRange:
        return UsageRange(self.low.times(1 / factor), self.expected, self.high.times(factor))

    def split(self, calls: float) -> tuple[UsageRange, UsageRange]:
        """Split into the use of `calls` calls and the use of the others; all calls count equally."""
        shares = [min(calls / level.calls, 1.0) if level.calls else 0.0 for level in self]
        pairs = list(zip(self, shares, strict=True))
        theirs, others = (level.times(p) for level, p in pairs), (level.times(1 - p) for level, p in pairs)
        return UsageRange(*theirs), UsageRange(*others)


class RolePrices:
    """The prices per token of a job's roles. `asked`: the backend of each role, None for the roles of the
    job's conversations."""

    def __init__(self, job: Job, via: Via, asked: Mapping[str, BackendConfig] | None = None) -> None:
        asked = find_asked_backends(job) if asked is None else asked
        prices = {role: backend.price for role, backend in asked.items()}
        self.priced = all(price is not None for price in prices.values())
        self._prices, self._batch = prices, via == "batch"
        # If True, a cap in dollars has no effect.
        self.free = self.priced and not any(self._compute_highest_cost(role, 1e6, 1e6) for role in prices)

    def price_calls(self, role: str, calls: float, prompt: float, completion: float) -> CallUse:
        """Return the use of `calls` calls of a role: their cost without a prompt cache, and what a cache may
        save or add. Prompts too short for a cache do not change."""
        price = self._prices[role]
        if price is None:
            return CallUse(calls, prompt, completion)
        per_prompt, per_completion, read, write = (
            price.cost(kind, batch=self._batch) / 1e6 for kind in _MILLION
        )
        usd, each = prompt * per_prompt + completion * per_completion, prompt / calls if calls else 0.0
        saved = prompt * max(per_prompt - read, 0.0) if each >= _CACHED_FROM else 0.0
        added = prompt * max(write - per_prompt, 0.0) if each >= _WRITTEN_FROM else 0.0
        return CallUse(calls, prompt, completion, usd, saved, added)

    def price_usage(self, role: str, usage: Usage) -> CallUse:
        """Return the use of one counted call of a role."""
        price = self._prices[role]
        usd = 0.0 if price is None else price.cost(usage, batch=self._batch)
        return CallUse(1.0, usage.prompt_tokens, usage.completion_tokens, usd)

    def price_calls_at_most(self, role: str, calls: float, prompt: float, completion: float) -> CallUse:
        """Return the use of `calls` calls of a role, with their maximum cost."""
        return CallUse(calls, prompt, completion, self._compute_highest_cost(role, prompt, completion))

    def find_highest_cost(self, prompt: int, completion: int) -> float:
        """Return the highest possible cost of an answer of any role."""
        return max(self._compute_highest_cost(role, prompt, completion) for role in self._prices)

    def _compute_highest_cost(self, role: str, prompt: float, completion: float) -> float:
        price = self._prices[role]
        return 0.0 if price is None else price.compute_highest_cost(prompt, completion, batch=self._batch)


def find_asked_backends(job: Job) -> dict[str, BackendConfig]:
    """Return the backend of each role of the job's conversations."""
    return {role: find_backend(job, role) for role in list_asked_roles(job)}


def add_up(parts: Iterable[CallUse]) -> CallUse:
    """Return the sum of all parts."""
    return functools.reduce(CallUse.plus, parts, CallUse())


def predict(seen: Sequence[CallUse], scenarios: float) -> UsageRange:
    """Predict the sums over this many new scenarios from observed ones (at least one).

    The 95% interval for the sum of n future draws from m observed ones is n times the mean, plus or minus t(m
    - 1) s sqrt(n + n²/m) (Hahn and Meeker, "Statistical Intervals", 1991). To allow for unseen events, s
    includes one more scenario, with one more call than the mean, in the spirit of Agresti and Coull's
    interval for shares (1998). Otherwise a hundred scenarios without a second ask would rule one out.
    """
    n, m = scenarios, len(seen)
    mean = add_up(seen).times(1 / m)
    one_more = mean.plus(mean.times(1 / mean.calls)) if mean.calls else mean
    spreads = map(statistics.stdev, zip(*seen, one_more, strict=True))
    half = CallUse(*(t95(m) * spread * math.sqrt(n + n * n / m) for spread in spreads))
    expected = mean.times(n)
    low = expected.less(half)
    fewest = min(used.calls for used in seen) * n
    return UsageRange(low._replace(calls=max(low.calls, fewest)), expected, expected.plus(half))
