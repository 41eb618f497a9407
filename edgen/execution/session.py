"""One process's work on a ledger: backends behind their limits, a scheduler, and notes on how it stands.

What is worked on, conversations or comparisons, is the tasks' affair.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping

import msgspec

from edgen.config import Limits
from edgen.core.errors import EdgenError, ShortError, SignalError
from edgen.core.events import Events
from edgen.core.values import TaskId
from edgen.core.version import __version__
from edgen.execution.batch.open_batches import end_batch_period
from edgen.execution.client.admission import Admission
from edgen.execution.client.budget import Budget, budget_of
from edgen.execution.client.model_client import Service, make_clients
from edgen.execution.online_scheduler import call_by_call
from edgen.execution.scheduler import ProgressCounts, Scheduler, SchedulerFactory, Work
from edgen.protocols.task import Tasks
from edgen.providers import Backend
from edgen.store.ledger import OPEN, Ledger, RunPlan

_NOTE_EVERY = 1.0  # seconds between notes of the session's counts

# Tokens and US dollars that something has used, given what a token costs (prompt, completion).
Charged = Callable[[Callable[[int, int], float]], tuple[int, float]]


class Shared:
    """What sessions share that work side by side on one run: its budget, what admits calls to each service, and their
    end. To be made for each start, for one event loop."""

    def __init__(self, limits: Limits) -> None:
        self.budget = budget_of(limits)
        self.admissions: dict[Service, Admission] = {}
        self.schedulers: list[Scheduler] = []


class Session:
    """Tasks, the backends that answer for `roles`, and the ledger that keeps it all.

    `backends` are by their names in the job. `elsewhere`: what other ledgers of the same run have used
    of the same budget. `scheduler` makes what runs the tasks. `shared`: with the sessions beside this one, which count
    what their own ledgers have used themselves.
    """

    def __init__(
        self,
        tasks: Tasks,
        backends: Mapping[str, Backend],
        ledger: Ledger,
        *,
        roles: Iterable[str],
        elsewhere: Iterable[Charged] = (),
        scheduler: SchedulerFactory = call_by_call,
        shared: Shared | None = None,
    ) -> None:
        self.limits = tasks.call_settings.limits
        shared = shared or Shared(self.limits)
        self.budget = shared.budget
        ledger.take_over()
        self.ledger = ledger
        self.events = Events()
        self.counts = ProgressCounts()
        self._clients = make_clients(
            tasks.call_settings, backends, roles, self.budget, ledger.out, admissions=shared.admissions
        )
        identities = {role: client.backend.identity for role, client in self._clients.items()}
        self.fingerprint = tasks.fingerprint(identities)
        if self.budget is not None:
            self._restore(self.budget, elsewhere)
        work = Work(
            tasks,
            self._clients,
            ledger,
            self.fingerprint,
            self.counts,
            self.events,
            self.budget,
            shared.schedulers,
        )
        self.scheduler = scheduler(work)
        shared.schedulers.append(self.scheduler)
        self._number = ledger.begin_session(os.getpid(), socket.gethostname(), __version__)

    def _restore(self, budget: Budget, elsewhere: Iterable[Charged]) -> None:
        """Count what was used of the budget before: what the ledger's batches have out is set aside, not spent."""

        def dearest(prompt_tokens: int, completion_tokens: int) -> float:
            """The most that an answer stored without a cost can have cost, whichever backend gave it."""
            return max(client.price_of(prompt_tokens, completion_tokens) for client in self._clients.values())

        out = self.ledger.out
        used = [charged(dearest) for charged in (self.ledger.sum_charges, *elsewhere)]
        held = [out.sums(batch.number)[1:] for batch in out.batches(*OPEN)]
        budget.restore(
            sum(tokens for tokens, _ in used) - sum(tokens for tokens, _ in held),
            sum(usd for _, usd in used) - sum(usd for _, usd in held),
        )

    @property
    def admissions(self) -> dict[str, Admission]:
        """What admits calls to each service, by the first of the roles that ask it."""
        found: dict[str, Admission] = {}
        for role, client in self._clients.items():
            if client.admission not in found.values():
                found[role] = client.admission
        return found

    def announce(self, plan: RunPlan) -> None:
        """Note what is planned."""
        self.ledger.set_fact("plan", msgspec.json.encode(plan).decode())

    def count_kept(self, first: int, end: int, replicates: int) -> None:
        """Count, all at once, the outcomes of first <= index < end that still stand."""
        for status, reason, count in self.ledger.count_settled(self.fingerprint, first, end, replicates):
            self.counts.settle(status, reason, count)
            self.counts.kept += count

    def pending(
        self, units: Iterable[tuple[int, TaskId]], first: int, end: int, *, counted: bool = False
    ) -> Iterator[tuple[int, TaskId]]:
        """Of ascending (scenario, task) units with first <= index < end, those without an outcome that
        still stands; the others are counted, unless they are already (`count_kept`)."""
        settled = self.ledger.settled(self.fingerprint, first, end)
        known = next(settled, None)
        for here in units:
            while known is not None and known[:2] < here:
                known = next(settled, None)
            if known is None or known[:2] != here:
                yield here
            elif not counted:
                self.counts.settle(known[2], known[3])
                self.counts.kept += 1

    @contextlib.asynccontextmanager
    async def record(self) -> AsyncIterator[None]:
        """While the body works, note how it stands once a second; at its end, how it ended."""
        noting = asyncio.create_task(self._note_regularly())
        state, message = "stopped", None
        try:
            yield
            state = "complete"
        except EdgenError as error:
            message = str(error)
            if isinstance(error, ShortError):
                state = "short"
            raise
        finally:
            noting.cancel()
            if state != "stopped":
                end_batch_period(self.ledger)
            self._note(state, message)

    async def _note_regularly(self) -> None:
        while True:
            await asyncio.sleep(_NOTE_EVERY)
            self._note("running", None)

    def _note(self, state: str, message: str | None) -> None:
        try:
            self.ledger.note_session(
                self._number,
                replayed=self.counts.replayed,
                retried=self.counts.retried,
                state=state,
                message=message,
            )
        except EdgenError:  # the ledger stopped; that error is already on its way
            return


def interruption(signal_number: int) -> SignalError:
    """The reason to stop with when a signal came."""
    return SignalError(
        signal_number,
        "Interrupted. Everything answered is stored; start the same command again and it goes on where it stopped.",
    )
