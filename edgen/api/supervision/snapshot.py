"""How a run, or one arm of it, stands at one moment: the values that bars, logs, metrics and callbacks show."""

from __future__ import annotations

from typing import Any

import msgspec

from edgen.core.durations import span
from edgen.core.events import Event
from edgen.core.figures import format_money, format_short
from edgen.execution.scheduler import ProgressCounts
from edgen.store.ledger import RunStatus


class Usage(msgspec.Struct, frozen=True):
    """Calls, tokens and cost. `cost_usd` is None while no backend has a price."""

    made: int = 0
    replayed: int = 0
    retried: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None

    def plus(self, other: Usage) -> Usage:
        """Both together; `replayed` is that of this one."""
        costs = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Usage(
            self.made + other.made,
            self.replayed,
            self.retried + other.retried,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            round(sum(costs), 12) if costs else None,
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "calls": {"made": self.made, "replayed": self.replayed, "retried": self.retried},
            "tokens": {"prompt": self.prompt_tokens, "completion": self.completion_tokens},
            "cost_usd": self.cost_usd,
        }


class Flow(msgspec.Struct, frozen=True):
    """How calls go to one service: how many it works on, how many it may, and whether it asked to wait."""

    in_flight: int
    window: int
    circuit_open: bool


class Activity(msgspec.Struct, frozen=True, kw_only=True):
    """What only work that goes on has. Seconds and counts are of this start; budgets are None without a limit."""

    in_flight: int = 0
    per_second: float = 0.0
    wait: float = 0.0  # seconds until calls go to the service again
    flows: dict[str, Flow] = {}
    retried_by: dict[str, int] = {}
    paused_seconds: float = 0.0
    last_answer: float | None = None
    batches_out: int = 0
    batch_requests_out: int = 0
    budget_left_usd: float | None = None
    budget_left_tokens: int | None = None


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """At every moment planned = accepted + rejected + failed + pending. `now` is what this start used, `total` what all
    starts used; `kept` outcomes were there before. `activity` is None where nothing is done."""

    name: str
    arm: str = ""
    outcomes: tuple[str, str] = ("accepted", "rejected")  # what the two kinds of outcomes are called
    planned: int
    accepted: int
    rejected: dict[str, int]
    failed: dict[str, int]
    kept: int
    now: Usage
    total: Usage
    activity: Activity | None = None

    @property
    def ended(self) -> int:
        return self.accepted + sum(self.rejected.values()) + sum(self.failed.values())

    @property
    def pending(self) -> int:
        return self.planned - self.ended

    def as_json(self) -> dict[str, Any]:
        """Those of all starts, and under `now` what this start did."""
        return {
            "planned": self.planned,
            "accepted": self.accepted,
            "rejected": self.rejected,
            "failed": self.failed,
            "pending": self.pending,
            **self.total.as_json(),
            "now": self.now.as_json(),
            **({} if self.activity is None else {"in_flight": self.activity.in_flight}),
        }


class StatusEvent(Event, frozen=True, kw_only=True):
    """An event that says how the work stands: `start`, `progress`, and `finish` at its end."""

    snapshot: Snapshot


def usage_before(status: RunStatus) -> Usage:
    """What earlier starts used."""
    counts = status.counts
    return Usage(
        counts.made, 0, counts.retried, counts.prompt_tokens, counts.completion_tokens, counts.cost_usd
    )


def usage_now(tally: ProgressCounts) -> Usage:
    """What this start has used."""
    return Usage(
        tally.made,
        tally.replayed,
        tally.retried,
        tally.prompt_tokens,
        tally.completion_tokens,
        tally.cost_usd,
    )


def still_snapshot(status: RunStatus, name: str, arm: str) -> Snapshot:
    """A run at which nothing is done, as its ledger has it."""
    snapshot = Snapshot(
        name=name,
        arm=arm,
        planned=status.planned,
        accepted=status.accepted,
        rejected=status.rejected,
        failed=status.failed,
        kept=0,
        now=Usage(),
        total=usage_before(status),
    )
    return msgspec.structs.replace(snapshot, kept=snapshot.ended)


def describe_progress(snapshot: Snapshot) -> str:
    """How work stands, in a line."""
    now, activity = snapshot.now, snapshot.activity or Activity()
    accepted, rejected = snapshot.outcomes
    parts = [
        f"{activity.per_second:.1f}/s",
        f"{snapshot.accepted} {accepted}",
        f"{sum(snapshot.rejected.values())} {rejected}",
        f"{activity.in_flight} in flight",
        f"{format_short(now.prompt_tokens + now.completion_tokens)} tokens",
    ]
    if snapshot.failed:
        parts.append(f"{sum(snapshot.failed.values())} failed")
    if now.retried:
        parts.append(f"{now.retried} retried")
    if activity.wait > 1:
        parts.append(f"told to wait {span(activity.wait)}")
    if now.cost_usd is not None:
        parts.append(format_money(now.cost_usd))
    return " · ".join(parts)
