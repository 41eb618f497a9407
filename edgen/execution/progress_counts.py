"""The running count of a run: what `progress` shows while the ledger is written."""

from __future__ import annotations

from collections import Counter

import msgspec

from edgen.core.values import Status, Usage


class ProgressCounts(msgspec.Struct):
    """At every moment planned = accepted + rejected + failed + pending. Tokens and cost are this
    session's; `cost_usd` is None while no backend has a price."""

    planned: int = 0
    accepted: int = 0
    rejected: Counter[str] = msgspec.field(default_factory=Counter)
    failed: Counter[str] = msgspec.field(default_factory=Counter)
    made: int = 0
    replayed: int = 0
    retried: int = 0
    retried_by: Counter[str] = msgspec.field(default_factory=Counter)  # the same, by what went wrong
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None
    kept: int = 0  # outcomes that an earlier session settled

    def settle(self, status: Status, reason: str | None, count: int = 1) -> None:
        if status is Status.ACCEPTED:
            self.accepted += count
        elif status is Status.REJECTED:
            self.rejected[reason or "unknown"] += count
        else:
            self.failed[reason or "unknown"] += count

    def add_answer(self, usage: Usage | None, cost_usd: float | None) -> None:
        """Count an answer that was fetched, and what it is charged at."""
        self.made += 1
        if usage is not None:
            self.prompt_tokens += usage.prompt_tokens
            self.completion_tokens += usage.completion_tokens
        if cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + cost_usd

    def take(self, accepted: int, rejected: dict[str, int], failed: dict[str, int]) -> None:
        """Count what earlier sessions settled, all of it."""
        self.accepted, self.rejected, self.failed = accepted, Counter(rejected), Counter(failed)
        self.kept = self.ended

    @property
    def ended(self) -> int:
        return self.accepted + self.rejected.total() + self.failed.total()

    @property
    def pending(self) -> int:
        return self.planned - self.ended
