"""What every scheduler is to the session that it is handed to, and what it works with.

A scheduler runs tasks to their outcomes; how the answers come, call by call or in batches, is its own affair. All
keep the same promises: every reply is in the ledger before a task sees it, nothing is asked that the ledger knows,
and a run that was stopped can go on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from edgen.core.errors import EdgenError
from edgen.core.events import Events
from edgen.core.values import Status, TaskId, Usage
from edgen.store.ledger import Counts, Ledger, RunStatus

if TYPE_CHECKING:  # whoever shows counts needs no client
    from edgen.execution.client.budget import Budget
    from edgen.execution.client.model_client import ModelClient
    from edgen.protocols.task import Tasks


class ProgressCounts(Counts):
    """The running count of a run. At every moment planned = accepted + rejected + failed + pending. Calls, tokens and
    cost are this session's; `cost_usd` is None while no backend has a price."""

    planned: int = 0
    accepted: int = 0
    rejected: Counter[str] = msgspec.field(default_factory=Counter)
    failed: Counter[str] = msgspec.field(default_factory=Counter)
    retried_by: Counter[str] = msgspec.field(default_factory=Counter)  # the same, by what went wrong
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
            self.add(usage)
        if cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + cost_usd

    def take(self, status: RunStatus) -> None:
        """Count what earlier sessions settled, all of it."""
        self.planned, self.accepted = status.planned, status.accepted
        self.rejected, self.failed = Counter(status.rejected), Counter(status.failed)
        self.kept = self.ended

    @property
    def ended(self) -> int:
        return self.accepted + self.rejected.total() + self.failed.total()

    @property
    def pending(self) -> int:
        return self.planned - self.ended


class Work(NamedTuple):
    """The tasks, the client of each role, and where everything is kept and counted. `fingerprint` names what shapes
    the outcomes; `budget` is None where nothing caps the run. `beside`: the schedulers of the sessions that share it, this
    work's among them: what stops one of them stops all."""

    tasks: Tasks
    clients: Mapping[str, ModelClient]
    ledger: Ledger
    fingerprint: str
    counts: ProgressCounts
    events: Events
    budget: Budget | None = None
    beside: Sequence[Scheduler] = ()


class Scheduler(Protocol):
    """Runs tasks until they are all settled or something stops the run."""

    @property
    def stopped(self) -> EdgenError | None:
        """Why the run stops, None while it goes on."""

    @property
    def in_flight(self) -> int:
        """Requests that the services work on now."""

    @property
    def paused_for(self) -> float:
        """Seconds that a service has asked to wait, 0 if none has."""

    def stop(self, reason: EdgenError, grace: float | None = None) -> None:
        """Begin nothing more. Calls in flight may end, in `grace` seconds (None: the usual). The first reason counts."""

    def hurry(self) -> None:
        """End the wait for calls in flight."""

    async def run(self, units: Iterator[tuple[int, TaskId]]) -> None:
        """Work through (scenario, task) pairs. Raises the reason if the run was stopped. Cancelled, it stops cleanly
        before it passes that on."""


SchedulerFactory = Callable[[Work], Scheduler]
