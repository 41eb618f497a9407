"""Interface between session and schedulers.

A scheduler runs tasks to their outcomes, by single calls or batches. Every scheduler guarantees: each reply
is in the ledger before a task sees it, no request that the ledger can answer is sent, and a stopped run can
resume.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from edgen.core.errors import EdgenError
from edgen.core.events import Events
from edgen.core.values import Status, TaskId, Usage
from edgen.store.ledger import Ledger, LedgerCounts, RunStatus
from edgen.store.ledger.facts import WorkerCounts

if TYPE_CHECKING:  # showing counts needs no client
    from edgen.execution.client.budget import Budget
    from edgen.execution.client.model_client import ModelClient
    from edgen.protocols.parts import Tasks


class ProgressCounts(LedgerCounts):
    """The running counts of a run. At every moment planned = accepted + rejected + failed + pending. Calls,
    tokens and cost are this session's; `cost_usd` is None while no backend has a price."""

    planned: int = 0  # conversations
    accepted: int = 0  # conversations
    rejected: Counter[str] = msgspec.field(default_factory=Counter)  # conversations by reason
    failed: Counter[str] = msgspec.field(default_factory=Counter)  # conversations by reason
    # Retried calls by reason: the kind of failure, or why an answer was unusable.
    retried_by: Counter[str] = msgspec.field(default_factory=Counter)
    kept: int = 0  # outcomes settled by earlier sessions

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
        """Count everything that earlier sessions settled."""
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
    """Tasks, and the means to make them."""

    tasks: Tasks  # tasks to make
    clients: Mapping[str, ModelClient]  # by role
    ledger: Ledger  # of replies and outcomes
    fingerprint: str  # of everything that shapes the outcomes
    counts: ProgressCounts  # running counts
    events: Events  # sent to listeners
    budget: Budget | None = None  # None without caps
    beside: Sequence[Scheduler] = ()
    """Schedulers of all sessions that share the work, this one's too: an error that stops one stops all."""


class Scheduler(Protocol):
    """A runner of tasks that ends when all are settled or the run is stopped."""

    @property
    def stopped(self) -> EdgenError | None:
        """The reason to stop, None while the run continues."""

    @property
    def in_flight(self) -> int:
        """The number of requests running at the services."""

    @property
    def paused_for(self) -> float:
        """Seconds that a service has asked to wait, 0 if none has."""

    @property
    def workers(self) -> Mapping[str, WorkerCounts]:
        """The worker processes by node and process; empty if all is done by this one."""

    def stop(self, reason: EdgenError, grace: float | None = None) -> None:
        """Begin nothing more. Calls in flight may end within `grace` seconds (None: the default). The first
        reason counts."""

    def hurry(self) -> None:
        """End the wait for calls in flight."""

    async def run(self, units: Iterator[tuple[int, TaskId]]) -> None:
        """Work through (scenario, task) pairs. Raises the reason if the run was stopped. On cancellation,
        stop cleanly before passing it on."""


SchedulerFactory = Callable[[Work], Scheduler]
