"""What every scheduler is to the session that it is handed to, and what it works with.

A scheduler runs tasks to their outcomes; how the answers come, call by call or in batches, is its own affair. All
keep the same promises: every reply is in the ledger before a task sees it, nothing is asked that the ledger knows,
and a run that was stopped can go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, Protocol

from edgen.core.errors import EdgenError
from edgen.core.events import Events
from edgen.core.values import TaskId
from edgen.execution.client.budget import Budget
from edgen.execution.client.model_client import ModelClient
from edgen.execution.progress_counts import ProgressCounts
from edgen.protocols.task import Tasks
from edgen.store.ledger import Ledger


class Work(NamedTuple):
    """The tasks, the client of each role, and where everything is kept and counted. `fingerprint` names what shapes
    the outcomes; `budget` is None where nothing caps the run."""

    tasks: Tasks
    clients: Mapping[str, ModelClient]
    ledger: Ledger
    fingerprint: str
    counts: ProgressCounts
    events: Events
    budget: Budget | None = None


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
