"""One process's work on a ledger: clients, a scheduler, and notes of progress.

The tasks may be conversations, comparisons or others.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from edgen.config import CallSettings, Limits, find_backend_name
from edgen.core.errors import EdgenError, ShortError, SignalError
from edgen.core.values import TaskId
from edgen.core.version import __version__
from edgen.execution.client.admission import Admission
from edgen.execution.client.budget import Budget
from edgen.execution.client.budget_lease import BudgetLease
from edgen.execution.client.form_support import restore_forms
from edgen.execution.client.model_client import ModelClient
from edgen.execution.client.person_client import PersonClient
from edgen.execution.online_scheduler import make_online_scheduler
from edgen.execution.open_batches import end_batch_period
from edgen.execution.progress import Events, ProgressCounts
from edgen.execution.scheduler import Scheduler, SchedulerFactory, Work
from edgen.protocols.parts import Tasks
from edgen.providers import Backend, list_servers
from edgen.store.budget_book import PICO, BudgetBook, BudgetUse
from edgen.store.ledger import OPEN, Ledger, LedgerReader, OutstandingCalls, RunPlan, sum_charges_at
from edgen.store.ledger.facts import (
    END,
    OWNER,
    RETRIES,
    SERVERS,
    TIMEOUTS,
    WORKERS,
    JsonFact,
    ServerCounts,
    SessionEnd,
    add_servers,
)

_STAYS = "This run's share of the budget counts as spent until the run starts again."
_NOTE_EVERY = 1.0  # seconds between notes of the session's counts

# Returns the tokens and US dollars used, given a price function of (prompt, completion) tokens.
Charged = Callable[[Callable[[int, int], float]], tuple[int, float]]


Service = tuple[Any, Any]  # type and address of a service


def make_clients(
    settings: CallSettings,
    backends: Mapping[str, Backend],
    roles: Iterable[str],
    budget: Budget | None = None,
    out: OutstandingCalls | None = None,
    existing: Iterable[ModelClient] = (),
    admissions: dict[Service, Admission] | None = None,
) -> dict[str, ModelClient]:
    """Return the client of each role. `backends` are by their names in the job; roles of one backend share
    its client, and clients of one service share its admission. `out`: notes of outstanding calls under a
    budget; None: no notes. `existing`: existing clients to share. `admissions`: existing admissions by
    service; new ones are added to it."""
    limits = settings.limits
    made = {client.name: client for client in existing}
    known = {} if admissions is None else admissions
    for client in made.values():
        known |= dict.fromkeys(_list_services(client.backend), client.admission)

    def make(name: str) -> ModelClient:
        if name not in made:
            services = _list_services(backends[name])
            admission = next((known[one] for one in services if one in known), None) or Admission(limits)
            known.update(dict.fromkeys(services, admission))
            config = settings.backends[name]
            kind = PersonClient if config.BY_PEOPLE else ModelClient
            made[name] = client = kind(name, config, backends[name], admission, limits, budget, out)
            if isinstance(client, PersonClient):
                client.stand_ins = tuple(make(other) for other in config.others if other in backends)
        return made[name]

    return {role: make(find_backend_name(settings, role)) for role in roles}


def _list_services(backend: Backend) -> list[Service]:
    """Return the (type, address) pairs of a backend's service: one for each server."""
    kind = backend.identity["type"]
    return [(kind, address) for address in list_servers(backend) or (backend.identity["base_url"],)]


class SharedState:
    """State shared by concurrent sessions of one run: the budget, the services' admissions, and the
    schedulers, which stop together. Create one per start, for one event loop."""

    def __init__(self, limits: Limits) -> None:
        self.budget = Budget(limits.max_tokens, limits.max_cost) if limits.capped else None
        self.admissions: dict[Service, Admission] = {}
        self.schedulers: list[Scheduler] = []


class RunSession:
    """Tasks, the backends of `roles`, and their ledger.

    `backends` are by their names in the job. `elsewhere`: functions that return the use of the same budget by
    other ledgers of the run. `scheduler` creates the scheduler. `shared`: state shared with concurrent
    sessions, each of which counts its own ledger's use.
    """

    def __init__(
        self,
        tasks: Tasks,
        backends: Mapping[str, Backend],
        ledger: Ledger,
        *,
        roles: Iterable[str],
        elsewhere: Iterable[Charged] = (),
        scheduler: SchedulerFactory = make_online_scheduler,
        shared: SharedState | None = None,
    ) -> None:
        self.limits = tasks.call_settings.limits
        shared = shared or SharedState(self.limits)
        ledger.prepare_session()
        self.ledger = ledger
        self.budget = None if shared.budget is None else self._open_budget(shared.budget)
        self.events = Events()
        self.counts = ProgressCounts()
        self._clients = make_clients(
            tasks.call_settings,
            backends,
            roles,
            self.budget,
            None if self.budget is None else ledger.out,
            admissions=shared.admissions,
        )
        restore = partial(restore_forms, ledger, self.events, {})
        for client in self._clients.values():
            client.restore_forms = restore
        identities = {role: client.backend.identity for role, client in self._clients.items()}
        self.fingerprint = tasks.make_fingerprint(identities)
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
        none: dict[JsonFact[Any], Any] = {RETRIES: {}, TIMEOUTS: 0, SERVERS: {}}
        self._before = {fact: fact.read(ledger.read_fact, ledger.path) or no for fact, no in none.items()}
        self._noted = {**self._before, WORKERS: {}}

    def _open_budget(self, whole: Budget) -> Budget:
        """Return this session's budget under the caps of the whole run, with a lease of its own if runs share
        a budget."""
        if self.limits.budget is None:
            return whole
        tokens, usd = self.ledger.sum_charges(lambda _prompt, _completion: 0.0)
        lease = BudgetLease(BudgetBook(Path(self.limits.budget)), self._name_owner())
        lease.settle_before(BudgetUse(tokens, round(usd * PICO)))
        return whole.make_concurrent(lease, self._sum_settled(lambda _prompt, _completion: 0.0))

    def _name_owner(self) -> str:
        """Return this ledger's name as the owner of a lease, with its path: a copy elsewhere is another
        owner."""
        known = self.ledger.read_fact(OWNER)
        if known is None:
            known = secrets.token_hex(8)
            self.ledger.set_fact(OWNER, known)
        return _name_owner(known, self.ledger.path)

    def _restore(self, budget: Budget, elsewhere: Iterable[Charged]) -> None:
        """Count the earlier use of the budget, without outstanding batches, which are reserved instead."""

        def find_highest_cost(prompt_tokens: int, completion_tokens: int) -> float:
            """Return the highest cost, over all backends, of an answer that is stored without a cost."""
            return max(
                client.charges.compute_most_cost(prompt_tokens, completion_tokens)
                for client in self._clients.values()
            )

        used = [charged(find_highest_cost) for charged in (self._sum_settled, *elsewhere)]
        budget.restore(sum(tokens for tokens, _ in used), sum(usd for _, usd in used))

    def _sum_settled(self, price: Callable[[int, int], float]) -> tuple[int, float]:
        """Return (tokens, US dollars) of the ledger, without outstanding batches; see
        `Ledger.sum_charges`."""
        tokens, usd = self.ledger.sum_charges(price)
        for batch in self.ledger.list_batches(*OPEN):
            _, held_tokens, held_usd = self.ledger.out.read_sums(batch.number)
            tokens, usd = tokens - held_tokens, usd - held_usd
        return tokens, usd

    @property
    def admissions(self) -> dict[str, Admission]:
        """The admission of each service, by the first role that uses it."""
        found: dict[str, Admission] = {}
        for role, client in self._clients.items():
            if client.admission not in found.values():
                found[role] = client.admission
        return found

    @property
    def unpaid(self) -> bool:
        """True if no call in flight costs money."""
        return all(client.unpaid for client in self._clients.values() if client.in_flight)

    @property
    def timeouts(self) -> int:
        """The number of attempts of this session that got no answer in time."""
        return sum(client.timeouts for client in {*self._clients.values()})

    @property
    def servers(self) -> dict[str, ServerCounts]:
        """The counts of this session's calls by server, for services that have several."""
        return {
            address: ServerCounts(lane.answers, lane.failures)
            for admission in self.admissions.values()
            if len(admission.lanes) > 1
            for address, lane in admission.lanes.items()
        }

    def announce(self, plan: RunPlan) -> None:
        """Note the plan in the ledger."""
        self.ledger.set_fact("plan", msgspec.json.encode(plan).decode())

    def count_kept(self, first: int, end: int, replicates: int) -> None:
        """Count in one query the settled outcomes of this fingerprint with first <= scenario < end."""
        for status, reason, count in self.ledger.count_settled(self.fingerprint, first, end, replicates):
            self.counts.settle(status, reason, count)
            self.counts.kept += count

    def list_pending(
        self, units: Iterable[tuple[int, TaskId]], first: int, end: int, *, counted: bool = False
    ) -> Iterator[tuple[int, TaskId]]:
        """Yield the units without a settled outcome of this fingerprint, and count the others. `units`
        ascend, with first <= scenario < end. `counted`: `count_kept` has counted them."""
        settled = self.ledger.list_settled(self.fingerprint, first, end)
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
        """Note progress once a second within the body, and how it ended after it."""
        noting = asyncio.create_task(self._note_regularly())
        state, message, reason = "stopped", None, "bug"
        try:
            if self.limits.budget is not None:
                await (
                    self.ledger.flush()
                )  # the owner must be on disk before any lease, or nobody could settle it
            yield
            state, reason = "complete", ""
        except EdgenError as error:
            message, reason = str(error), error.reason
            if isinstance(error, ShortError):
                state = "short"
            raise
        except asyncio.CancelledError:
            reason = "interrupted"
            raise
        finally:
            noting.cancel()
            self.close_budget()
            if state != "stopped" and self.ledger.list_batches():
                end_batch_period(self.ledger)
            self._note(state, message, reason)

    def close_budget(self) -> None:
        """Return this session's lease of a shared budget; a later call takes a new lease."""
        if self.budget is None:
            return
        try:
            self.budget.close()
        except EdgenError as problem:
            self.events.tell("note", f"{problem} {_STAYS}")

    async def _note_regularly(self) -> None:
        while True:
            await asyncio.sleep(_NOTE_EVERY)
            self._note("running", None)

    def _sum_counts(self) -> dict[JsonFact[Any], Any]:
        """Return the counts of all sessions, and the workers of this one."""
        before = self._before
        return {
            RETRIES: dict(sorted((Counter(before[RETRIES]) + self.counts.retried_by).items())),
            TIMEOUTS: before[TIMEOUTS] + self.timeouts,
            SERVERS: add_servers(before[SERVERS], self.servers),
            WORKERS: dict(self.scheduler.workers),
        }

    def _note(self, state: str, message: str | None, reason: str = "") -> None:
        """Note the session's state and counts. `reason`: one word for an early end; empty without one."""
        try:
            for fact, value in self._sum_counts().items():
                if value != self._noted[fact]:
                    fact.note(self.ledger.set_fact, value)
                    self._noted[fact] = value
            if reason:
                END.note(self.ledger.set_fact, SessionEnd(self._number, reason))
            self.ledger.note_session(
                self._number,
                replayed=self.counts.replayed,
                retried=self.counts.retried,
                state=state,
                message=message,
            )
        except EdgenError:  # the ledger has failed, and its error is already being raised
            return


def make_signal_error(signal_number: int) -> SignalError:
    """Return the error that stops the run after a signal."""
    return SignalError(
        signal_number,
        "Interrupted. All answers are stored; run the same command again to resume.",
    )


def settle_lease(budget: str, ledger: Path, note: Callable[[str], None]) -> None:
    """Return a finished run's lease, which a kill may have left open. `note` gets a sentence if the budget's
    book cannot be used."""
    with LedgerReader(ledger) as reader:
        known = reader.read_fact(OWNER)
    if known is None:
        return
    tokens, usd = sum_charges_at(ledger, lambda _prompt, _completion: 0.0)
    try:
        book = BudgetBook(Path(budget), create=False)
        if book.path.exists():
            book.end(_name_owner(known, ledger), BudgetUse(tokens, round(usd * PICO)))
    except EdgenError as problem:
        note(f"{problem} {_STAYS}")


def _name_owner(known: str, ledger: Path) -> str:
    return f"{known} {os.path.realpath(ledger)}"
