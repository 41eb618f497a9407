"""The interface between a session and its scheduler.

A scheduler runs tasks to their outcomes, by single calls or batches. Every scheduler guarantees: each reply
is in the ledger before a task sees it, no request that the ledger can answer is sent, and a stopped run can
resume.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from edgen.core.errors import EdgenError
from edgen.core.values import TaskId
from edgen.execution.progress import Events, ProgressCounts
from edgen.store.ledger import Ledger
from edgen.store.ledger.facts import WorkerCounts

if TYPE_CHECKING:  # showing counts needs no client
    from edgen.execution.client.budget import Budget
    from edgen.execution.client.model_client import ModelClient
    from edgen.protocols.parts import Tasks


class Work(NamedTuple):
    """Tasks, and everything that a scheduler needs to run them."""

    tasks: Tasks  # tasks to run
    clients: Mapping[str, ModelClient]  # clients by role
    ledger: Ledger  # ledger of replies and outcomes
    fingerprint: str  # fingerprint of everything that shapes the outcomes
    counts: ProgressCounts  # running counts
    events: Events  # channel to listeners
    budget: Budget | None = None  # None without caps
    schedulers: Sequence[Scheduler] = ()
    """Schedulers of all concurrent sessions of the run, this one included: an error that stops one stops
    all."""


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
        """The worker processes, by node and process; empty if this process does all the work."""

    def stop(self, reason: EdgenError, grace: float | None = None) -> None:
        """Begin nothing more. Calls in flight may end within `grace` seconds (None: the default). The first
        reason counts."""

    def stop_waiting(self) -> None:
        """End the wait for calls in flight."""

    async def run(self, units: Iterator[tuple[int, TaskId]]) -> None:
        """Run (scenario, task) pairs to their outcomes. Raises the reason if the run was stopped. If
        cancelled, stops cleanly before it raises CancelledError."""


SchedulerFactory = Callable[[Work], Scheduler]
