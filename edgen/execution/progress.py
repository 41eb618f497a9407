"""Progress of a run: events for any number of listeners, running counts, and snapshots of the state.

run · start · progress · rate · retries · circuit_opened · circuit_closed · batch · note · stage · finish

are the events. `text` is a sentence for a person; `facts` are the same as JSON-able values.
"""

from __future__ import annotations

import contextlib
import functools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import msgspec
from msgspec import UNSET, UnsetType

from edgen.core.text import describe_reasons, format_compact_duration, format_dollars, format_short, round_usd
from edgen.core.values import Status, Usage
from edgen.store.ledger import LedgerCounts, RunStatus, TokenCounts
from edgen.store.ledger.facts import WorkerCounts


class Event(msgspec.Struct, frozen=True):
    """One event."""

    name: str
    text: str = ""
    facts: dict[str, Any] = {}


Listener = Callable[[Event], object]


class Events(msgspec.Struct, eq=False):
    """A channel for events. Without listeners, it does nothing."""

    listeners: list[Listener] = []
    """Each listener gets every event. It must not raise or block."""

    def listen(self, listener: Listener) -> None:
        """Send every event from now on to `listener`."""
        self.listeners.append(listener)

    def tell(self, name: str, text: str = "", **facts: Any) -> None:
        """Send an event with this name, text and facts."""
        self.send(Event(name, text, facts))

    @contextlib.contextmanager
    def report_stages(self) -> Iterator[Callable[[str], None]]:
        """Yield a function to call with the name of the present stage, for work without counts."""
        tell = partial(self.tell, "stage")
        try:
            yield tell
        finally:
            tell("")

    def send(self, event: Event) -> None:
        """Send an event to every listener."""
        for listener in self.listeners:
            listener(event)


class ProgressCounts(LedgerCounts):
    """The running counts of a run. At every moment planned = accepted + rejected + failed + pending. Calls,
    tokens and cost are this session's; `cost_usd` is None while no backend has a price."""

    planned: int = 0  # conversations
    accepted: int = 0  # conversations
    rejected: Counter[str] = msgspec.field(default_factory=Counter)  # conversations by reason
    failed: Counter[str] = msgspec.field(default_factory=Counter)  # conversations by reason
    # Retried calls by reason: the kind of failure, or why an answer was unusable.
    retried_by: Counter[str] = msgspec.field(default_factory=Counter)
    kept: int = 0  # conversations settled by earlier sessions

    def settle(self, status: Status, reason: str | None, count: int = 1) -> None:
        if status is Status.ACCEPTED:
            self.accepted += count
        elif status is Status.REJECTED:
            self.rejected[reason or "unknown"] += count
        else:
            self.failed[reason or "unknown"] += count

    def add_answer(self, usage: Usage | None, cost_usd: float | None) -> None:
        """Count a fetched answer and its charges."""
        self.made += 1
        if usage is not None:
            self.add(usage)
        if cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + cost_usd

    def take(self, status: RunStatus) -> None:
        """Take over the counts of everything that earlier sessions settled."""
        self.planned, self.accepted = status.planned, status.accepted
        self.rejected, self.failed = Counter(status.rejected), Counter(status.failed)
        self.kept = self.ended

    @property
    def ended(self) -> int:
        return self.accepted + self.rejected.total() + self.failed.total()

    @property
    def pending(self) -> int:
        return self.planned - self.ended


class CallCounts(msgspec.Struct, frozen=True):
    """Calls of all starts; `replayed`: of the last start; `now`: of the start that ends, if one ends."""

    made: int
    replayed: int
    retried: int
    now: int | UnsetType = UNSET


class Tokens(msgspec.Struct, frozen=True, omit_defaults=True):
    """Counts of tokens. `cache_read`, `cache_write`: prompt tokens read from a service's prompt cache, or
    written to it; left out if 0."""

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


class UsageCounts(msgspec.Struct, frozen=True):
    """Calls, tokens and cost; `cost_usd` is in US dollars, None if no backend has a price."""

    calls: CallCounts
    tokens: Tokens
    cost_usd: float | None

    @classmethod
    def of(cls, counts: LedgerCounts) -> UsageCounts:
        """Return the counts of a ledger, or of a running session."""
        calls = CallCounts(counts.made, counts.replayed, counts.retried)
        return cls(calls, Tokens.of(counts), round_usd(counts.cost_usd))


class Amount(msgspec.Struct, frozen=True):
    """A maximum of tokens and of US dollars."""

    tokens: int
    cost_usd: float

    @classmethod
    def of(cls, tokens: int, usd: float) -> Amount:
        """Return the amounts, with rounded dollars."""
        return cls(tokens, round_usd(usd) or 0.0)


class Counted(Protocol):
    """An object with counts of its usage."""

    @property
    def calls(self) -> CallCounts: ...
    @property
    def tokens(self) -> Tokens: ...
    @property
    def cost_usd(self) -> float | None: ...


def add_usage(each: Sequence[Counted]) -> UsageCounts:
    """Return the total usage of several objects."""
    calls, tokens = [one.calls for one in each], [one.tokens for one in each]
    costs = [one.cost_usd for one in each if one.cost_usd is not None]
    return UsageCounts(
        CallCounts(*(sum(getattr(one, key) for one in calls) for key in ("made", "replayed", "retried"))),
        functools.reduce(Tokens.plus, tokens, Tokens(0, 0)),
        round_usd(sum(costs)) if costs else None,
    )


def add_amounts(amounts: list[Amount]) -> Amount | UnsetType:
    """Return the sums of several amounts; UNSET without any."""
    if not amounts:
        return UNSET
    return Amount.of(sum(one.tokens for one in amounts), sum(one.cost_usd for one in amounts))


def count_usage_before(status: RunStatus) -> UsageCounts:
    """Return the usage of earlier starts, without replayed calls."""
    return UsageCounts.of(msgspec.structs.replace(status.counts, replayed=0))


class Flow(msgspec.Struct, frozen=True):
    """Flow of calls to one server of a role: calls in flight, calls allowed, and whether its circuit is open
    (a pause, or unreachable). `server`: its address, if the service has several."""

    role: str
    server: str
    in_flight: int
    window: int
    circuit_open: bool


class Activity(msgspec.Struct, frozen=True, kw_only=True):
    """Values that exist only while a run works. Seconds and counts are of this start."""

    in_flight: int = 0  # calls in flight
    timeouts: int = 0  # attempts without an answer in time
    per_second: float = 0.0  # conversations settled per second
    wait: float = 0.0  # seconds until calls go to the service again
    flows: tuple[Flow, ...] = ()  # the flow of each server's calls
    workers: Mapping[str, WorkerCounts] = {}  # workers of a cluster, by name
    paused_seconds: float = 0.0  # seconds without calls, by request of the service
    last_answer: float | None = None  # seconds since the epoch; None before the first
    batches_out: int = 0  # batches at providers
    batch_requests_out: int = 0  # requests in these
    budget_left_usd: float | None = None  # None without a limit
    budget_left_tokens: int | None = None  # None without a limit

    def as_json(self) -> dict[str, Any]:
        """Return the values for JSON: calls in flight, and timeouts unless 0."""
        timeouts = {"timeouts": self.timeouts} if self.timeouts else {}
        return {**timeouts, "in_flight": self.in_flight}


class Title(msgspec.Struct, frozen=True):
    """Title of the work: its name, its arm, and the names of its two kinds of outcomes."""

    name: str
    arm: str = ""
    outcomes: tuple[str, str] = ("accepted", "rejected")


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """State of a run, or of one arm, at one moment. `counts`: outcomes of all starts, but calls, tokens and
    cost of this start. `total`: usage of all starts. `activity`: None if the run is not at work."""

    title: Title
    counts: ProgressCounts
    total: UsageCounts
    activity: Activity | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the values of all starts, and under `now` those of this start."""
        counts = self.counts
        return {
            **{key: getattr(counts, key) for key in ("planned", "accepted", "rejected", "failed", "pending")},
            **msgspec.to_builtins(self.total),
            "now": msgspec.to_builtins(UsageCounts.of(counts)),
            **({"retried": dict(counts.retried_by)} if counts.retried_by else {}),
            **({} if self.activity is None else self.activity.as_json()),
        }


class StatusEvent(Event, frozen=True, kw_only=True):
    """An event with the state of the work: `start`, `progress` or `finish`."""

    snapshot: Snapshot


def read_still_snapshot(status: RunStatus, title: Title) -> Snapshot:
    """Return the state of a run that is not at work, from its ledger."""
    counts = ProgressCounts()
    counts.take(status)
    return Snapshot(title=title, counts=counts, total=count_usage_before(status))


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
        parts.append(f"told to wait {format_compact_duration(activity.wait)}")
    if counts.cost_usd is not None:
        parts.append(format_dollars(counts.cost_usd))
    return " · ".join(parts)
