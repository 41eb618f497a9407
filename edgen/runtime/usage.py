"""Usage of calls, in the form of every result: calls, tokens and US dollars, of a start, a run or several."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Protocol

import msgspec
from msgspec import UNSET, UnsetType

from edgen.core.count_text import round_usd
from edgen.store.ledger import Counts, TokenCounts


class Calls(msgspec.Struct, frozen=True):
    """Calls of all starts; `replayed` of the last; `now`, of the start that ends, where one does."""

    made: int
    replayed: int
    retried: int
    now: int | UnsetType = UNSET


class Tokens(msgspec.Struct, frozen=True, omit_defaults=True):
    """`cache_read` and `cache_write`: those of the prompt's that were read from a service's prompt cache, and
    written to it; left out where there are none."""

    prompt: int
    completion: int
    cache_read: int = 0
    cache_write: int = 0

    @classmethod
    def of(cls, counts: TokenCounts) -> Tokens:
        """Return the counts by kind."""
        return cls(
            counts.prompt_tokens,
            counts.completion_tokens,
            counts.cache_read_tokens,
            counts.cache_write_tokens,
        )

    def plus(self, other: Tokens) -> Tokens:
        """Return the sum of both."""
        pairs = zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)
        return Tokens(*map(sum, pairs))


class Usage(msgspec.Struct, frozen=True):
    """`cost_usd` is None while no backend has a price."""

    calls: Calls
    tokens: Tokens
    cost_usd: float | None

    @classmethod
    def of(cls, counts: Counts) -> Usage:
        """Return the counts of a ledger or of a session at work."""
        calls = Calls(counts.made, counts.replayed, counts.retried)
        return cls(calls, Tokens.of(counts), round_usd(counts.cost_usd))


class Amount(msgspec.Struct, frozen=True):
    """Tokens and US dollars at most."""

    tokens: int
    cost_usd: float

    @classmethod
    def of(cls, tokens: int, usd: float) -> Amount:
        """Return these amounts, the dollars rounded."""
        return cls(tokens, round_usd(usd) or 0.0)


class Counted(Protocol):
    """An object with counts of its usage."""

    @property
    def calls(self) -> Calls: ...
    @property
    def tokens(self) -> Tokens: ...
    @property
    def cost_usd(self) -> float | None: ...


def add_usage(each: Sequence[Counted]) -> Usage:
    """Return the sums of what several have used."""
    calls, tokens = [one.calls for one in each], [one.tokens for one in each]
    costs = [one.cost_usd for one in each if one.cost_usd is not None]
    return Usage(
        Calls(*(sum(getattr(one, key) for one in calls) for key in ("made", "replayed", "retried"))),
        functools.reduce(Tokens.plus, tokens, Tokens(0, 0)),
        round_usd(sum(costs)) if costs else None,
    )


def add_amounts(amounts: list[Amount]) -> Amount | UnsetType:
    """Return the sums of several amounts; UNSET without any."""
    if not amounts:
        return UNSET
    return Amount.of(sum(one.tokens for one in amounts), sum(one.cost_usd for one in amounts))
