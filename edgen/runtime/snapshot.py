"""The state of a run, or of one arm, at one moment: the values that bars, logs, metrics and callbacks
show."""

from __future__ import annotations

from typing import Any

import msgspec

from edgen.core.count_text import describe_reasons, format_short
from edgen.core.durations import span
from edgen.core.events import Event
from edgen.core.text import dollars
from edgen.execution.scheduler import ProgressCounts
from edgen.runtime.usage import Usage
from edgen.store.ledger import RunStatus


class Flow(msgspec.Struct, frozen=True):
    """Flow of calls to one service: calls under way, calls allowed, and whether it requested a pause."""

    in_flight: int
    window: int
    circuit_open: bool


class Activity(msgspec.Struct, frozen=True, kw_only=True):
    """Values that exist only during work. Seconds and counts are of this start; budgets are None without a
    limit."""

    in_flight: int = 0
    timeouts: int = 0  # attempts without an answer in time
    per_second: float = 0.0
    wait: float = 0.0  # seconds until calls go to the service again
    flows: dict[str, Flow] = {}
    paused_seconds: float = 0.0
    last_answer: float | None = None
    batches_out: int = 0
    batch_requests_out: int = 0
    budget_left_usd: float | None = None
    budget_left_tokens: int | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the values for JSON: timeouts if there are any, and calls in flight."""
        timeouts = {"timeouts": self.timeouts} if self.timeouts else {}
        return {**timeouts, "in_flight": self.in_flight}


class Title(msgspec.Struct, frozen=True):
    """Title of the work: its name, its arm, and the names of its two kinds of outcomes."""

    name: str
    arm: str = ""
    outcomes: tuple[str, str] = ("accepted", "rejected")


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """State of a run, or of one arm, at one moment. `counts` are its own, tokens and cost those of this
    start; `total` is the usage of all starts. `activity` is None without work."""

    title: Title
    counts: ProgressCounts
    total: Usage
    activity: Activity | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the values of all starts, and under `now` those of this start."""
        counts = self.counts
        return {
            **{key: getattr(counts, key) for key in ("planned", "accepted", "rejected", "failed", "pending")},
            **msgspec.to_builtins(self.total),
            "now": msgspec.to_builtins(Usage.of(counts)),
            **({"retried": dict(counts.retried_by)} if counts.retried_by else {}),
            **({} if self.activity is None else self.activity.as_json()),
        }


class StatusEvent(Event, frozen=True, kw_only=True):
    """An event that says how the work stands: `start`, `progress`, and `finish` at its end."""

    snapshot: Snapshot


def usage_before(status: RunStatus) -> Usage:
    """Return the usage of earlier starts, without replayed calls."""
    return Usage.of(msgspec.structs.replace(status.counts, replayed=0))


def still_snapshot(status: RunStatus, title: Title) -> Snapshot:
    """Return the state of a run without work, from its ledger."""
    counts = ProgressCounts()
    counts.take(status)
    return Snapshot(title=title, counts=counts, total=usage_before(status))


def describe_progress(snapshot: Snapshot) -> str:
    """Describe the progress of work in a line."""
    counts, activity = snapshot.counts, snapshot.activity or Activity()
    accepted, rejected = snapshot.title.outcomes
    parts = [
        f"{activity.per_second:.1f}/s",
        f"{counts.accepted:,} {accepted}",
        f"{counts.rejected.total():,} {rejected}",
        f"{activity.in_flight} in flight",
        f"{format_short(counts.prompt_tokens + counts.completion_tokens)} tokens",
    ]
    if counts.failed:
        parts.append(f"{counts.failed.total():,} failed")
    if counts.retried_by:
        parts.append(f"retried: {describe_reasons(counts.retried_by)}")
    if activity.timeouts:
        parts.append(f"{activity.timeouts:,} timeouts")
    if activity.wait > 1:
        parts.append(f"told to wait {span(activity.wait)}")
    if counts.cost_usd is not None:
        parts.append(dollars(counts.cost_usd))
    return " · ".join(parts)
