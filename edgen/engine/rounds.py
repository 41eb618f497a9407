"""Drives tasks by provider batch jobs: rounds, each of all requests that wait for an answer.

A round walks every pending task from the ledger to its first request without an answer, writes these to files,
and has each file carried to the provider and its answers back (`courier`). Then the next, until all is settled;
a conversation of twenty turns takes twenty rounds. Between rounds nothing is in memory but the numbers of what is
pending, eight bytes each.
"""

from __future__ import annotations

import asyncio
import time
from array import array
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from edgen.backends.batches import Batches
from edgen.config import Price, backend_name
from edgen.durations import seconds
from edgen.engine.collecting import Collector
from edgen.engine.courier import Courier
from edgen.engine.drive import Driver
from edgen.engine.line import Line
from edgen.engine.results import Reading, read_results
from edgen.engine.task import Tasks
from edgen.engine.walk import GO_ON, Ends, Walk
from edgen.errors import RETRYABLE, CallError, EdgenError, HandedOver, ProviderError, UsageError
from edgen.events import Events
from edgen.ledger import OPEN, REPLICATES, Batch, Ledger, Outstanding, unit_number
from edgen.limits import Budget, BudgetExhausted, Reservation
from edgen.model import Request

_BREATH = 50  # tasks that are walked before others get their turn
_SINCE = "batches_since"  # fact: when the first batch was sent of those that the run is being made with


@dataclass(frozen=True, slots=True)
class BatchWay:
    """The batch service of each backend, by its name in the job. `write_only`: the folder that request files are
    written to, where nothing is to be sent."""

    services: Mapping[str, Batches]
    write_only: Path | None = None


def still_out(batches: Sequence[Batch]) -> UsageError:
    """Why a run whose batches are out is not gone on with call by call."""
    numbers = ", ".join(str(batch.number) for batch in batches[:5])
    count = f"{len(batches)} batches" if len(batches) > 1 else "a batch"
    verb = "are" if len(batches) > 1 else "is"
    if all(batch.state == "written" for batch in batches):
        return UsageError(
            f"request files of this run are out with somebody ({count}: {numbers}), and asking their requests again "
            "would pay twice. Read the results with `edgen batch read RUN FILES`, or give them up with "
            "`edgen batch cancel RUN`."
        )
    return UsageError(
        f"{count} of this run {verb} at the provider ({numbers}), and asking their requests again would pay twice. "
        "Go on with --via batch, or end them with `edgen batch cancel RUN`, which keeps what they have answered."
    )


class Rounds:
    """Runs tasks until they are all settled or something stops the run; see Driver, whose methods these are."""

    def __init__(
        self,
        tasks: Tasks,
        lines: Mapping[str, Line],
        ledger: Ledger,
        fingerprint: str,
        online: Driver,
        way: BatchWay,
        events: Events,
        budget: Budget | None,
    ) -> None:
        self.tally = online.tally
        self._tasks = tasks
        self._lines = lines
        self._ledger = ledger
        self._fingerprint = fingerprint
        self._online = online
        self._way = way
        self._events = events
        self._budget = budget
        self._ends = Ends(ledger, fingerprint, self.tally, self.stop, tasks.job.limits.stop_after_failures)
        self._after = seconds(after) if (after := tasks.job.batch.online_after) is not None else None
        self._reason: EdgenError | None = None
        self._stopping = asyncio.Event()
        self._is_online = False
        self._out = 0  # requests that are out
        # Requests that got errors for answers, in this session: how often, and the last of them.
        self._failures: dict[bytes, tuple[int, CallError]] = {}
        self._holds: dict[int, Reservation] = {}
        self._errors = 0  # lines that held one
        self._fruitless = 0  # rounds in a row that brought nothing
        self._short: BudgetExhausted | None = None  # what the budget did not cover of this round
        self._check(ledger.out.batches(*OPEN))

    def _check(self, out: Sequence[Batch]) -> None:
        """Take over what is out; refuse what cannot be gone on with."""
        written = [batch for batch in out if batch.state == "written"]
        sent = [batch for batch in out if batch.state != "written"]
        if foreign := [batch for batch in out if batch.fingerprint != self._fingerprint]:
            numbers = ", ".join(str(batch.number) for batch in foreign[:5])
            raise UsageError(
                f"batches of this run ({numbers}) were made by another form of its job, or another edgen. "
                "`edgen batch cancel RUN` ends them and keeps what they have answered; then start again."
            )
        if (written and self._way.write_only is None) or (sent and self._way.write_only is not None):
            raise still_out(written if self._way.write_only is None else sent)
        for batch in out:
            count, tokens, usd = self._ledger.out.sums(batch.number)
            self._out += count
            if self._budget is not None:
                self._holds[batch.number] = self._budget.take(tokens, usd)

    @property
    def stopped(self) -> EdgenError | None:
        """Why the run stops, None while it goes on."""
        return self._reason

    @property
    def in_flight(self) -> int:
        """Requests that are out."""
        return self._online.in_flight if self._is_online else self._out

    @property
    def paused_for(self) -> float:
        """Seconds that a service has asked to wait, 0 if none has."""
        return self._online.paused_for

    def stop(self, reason: EdgenError, grace: float | None = None) -> None:
        """Send nothing more, and wait no longer; batches that are out stay known. The first reason counts."""
        if self._is_online:
            self._online.stop(reason, grace)
        if self._reason is None:
            self._reason = reason
            self._stopping.set()

    def hurry(self) -> None:
        """Stop at once."""
        self._online.hurry()

    async def run(self, units: Iterator[tuple[int, int]]) -> None:
        """Work through (index, replicate) pairs. Raises the reason if the run was stopped."""
        pending = array("q", (unit_number(*unit) for unit in units))
        await self._unless_stopped(self._rounds(pending))
        if self._is_online:
            await self._online.run(divmod(number, REPLICATES) for number in pending)

    async def _unless_stopped(self, work: Coroutine[Any, Any, None]) -> None:
        working = asyncio.create_task(work)
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            either: set[asyncio.Future[Any]] = {working, stopping}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (working, stopping):
                task.cancel()
            await asyncio.gather(working, stopping, return_exceptions=True)
        if self._reason is not None:
            raise self._reason
        working.result()

    async def _rounds(self, pending: array[int]) -> None:
        """Round after round, until nothing is pending or the rest is to be asked online."""
        number = 1 + max((batch.round for batch in self._ledger.out.batches()), default=0)
        if self._way.write_only is None:
            await self._carry(self._ledger.out.batches(*OPEN))
        first = True
        while not self._late():
            self._short = None
            made = await self._sweep(pending, number, first=first)
            first = False
            if self._way.write_only is not None:
                await self._hand_over(made)
            if not made and not pending:
                return
            if self._short is not None and not made:
                raise self._short
            answered, errors = self.tally.made, self._errors
            await self._carry(made)
            self._count_fruitless(answered=self.tally.made > answered, progress=self._errors > errors)
            number += 1
        if pending:
            self._say(f"{len(pending):,} conversations are asked online from now on (batch.online_after)")
            self._is_online = True

    # -- one round

    async def _sweep(self, pending: array[int], number: int, *, first: bool) -> list[Batch]:
        """Settle what the ledger has all answers for; write what is to be asked. `pending` keeps what is left.
        Returns the batches made, ready to be sent."""
        waiting = bool(self._ledger.out.batches(*OPEN))
        asked: set[bytes] = set()  # in this round, where tasks ask one another's requests
        collectors: dict[str, Collector] = {}
        left = 0
        try:
            for count, unit in enumerate(pending):
                if count % _BREATH == 0:
                    await asyncio.sleep(0)
                if await self._advance(unit, number, collectors, asked, first=first, waiting=waiting):
                    pending[left] = unit
                    left += 1
            for collector in collectors.values():
                await collector.close()
        finally:
            for collector in collectors.values():
                collector.abandon()
        del pending[left:]
        await self._ledger.flush()
        return [batch for collector in collectors.values() for batch in collector.made]

    async def _advance(
        self,
        unit: int,
        number: int,
        collectors: dict[str, Collector],
        asked: set[bytes],
        *,
        first: bool,
        waiting: bool,
    ) -> bool:
        """Walk one task as far as the ledger leads; whether it still waits for an answer."""
        index, replicate = divmod(unit, REPLICATES)
        walk = Walk(self._tasks.task(index, replicate))
        known = self._ledger.replies(index, replicate)
        try:
            request = walk.start()
            while request is not None:
                line = self._lines[request.role]
                key = line.key(request)
                reply = known.get(key)
                if reply is None and self._tasks.shares:
                    reply = self._ledger.reply(request.address, key)
                if reply is not None:
                    self.tally.replayed += first
                    request = walk.answer(reply, key, line)
                    continue
                if (failure := self._given_up(key)) is None:
                    if key in asked or (waiting and self._ledger.out.has(request.address, key)):
                        return True
                    try:
                        await self._ask(request, key, line, number, collectors)
                    except CallError as problem:  # it cannot be written as a request
                        failure = problem
                    else:
                        if self._tasks.shares:
                            asked.add(key)
                        return True
                request = walk.fail(failure)
        except CallError as failure:
            if not self._fruitless:  # others were answered: it is not the service
                self._ends.answered()
            self._ends.fail(index, replicate, walk, failure)
            return False
        finally:
            walk.close()
        self._ends.settle(index, replicate, walk)
        return False

    def _given_up(self, key: bytes) -> CallError | None:
        """The failure of a request that is not to be asked again, None where it is."""
        tries, failure = self._failures.get(key, (0, None))
        if failure is None or (failure.kind in RETRYABLE and tries < self._tasks.job.limits.attempts):
            return None
        return failure

    async def _ask(
        self, request: Request, key: bytes, line: Line, number: int, collectors: dict[str, Collector]
    ) -> None:
        """Write a request to the file of its backend. Raises CallError where it cannot be written."""
        name = backend_name(self._tasks.job, request.role)
        collector = collectors.get(name)
        if collector is None:
            collector = collectors[name] = self._collector(name, line, number)
        if await collector.add(request, key):
            self._out += 1
            self.tally.retried += key in self._failures
        elif self._budget is not None:
            most = line.most(request)
            self._short = self._budget.exhausted(sum(most), line.price_of(*most, batch=True))

    def _collector(self, name: str, line: Line, number: int) -> Collector:
        job, path = self._tasks.job, self._ledger.path
        return Collector(
            self._ledger,
            self._way.services[name],
            line,
            fingerprint=self._fingerprint,
            backend=name,
            round_=number,
            folder=self._way.write_only or path.with_name(f"{path.stem}.batches"),
            name=job.name,
            room=job.batch.max_requests,
            budget=self._budget,
            holds=self._holds,
        )

    # -- what is out

    async def _carry(self, batches: Iterable[Batch]) -> None:
        """Have batches carried to their ends, side by side."""
        batches = list(batches)
        if not batches:
            return
        since = self._ledger.fact(_SINCE)
        if not since or float(since) > time.time():  # never, or by a clock that was set back since
            self._ledger.set_fact(_SINCE, repr(time.time()))
            await self._ledger.flush()
        courier = Courier(self._tasks.job, self._ledger, self._way.services, self._events, self._take)
        carrying = [asyncio.create_task(courier.carry(batch)) for batch in batches]
        ending = asyncio.create_task(self._end_when_late(courier))
        try:
            await asyncio.gather(*carrying)
        finally:
            for task in (*carrying, ending):
                task.cancel()
            await asyncio.gather(*carrying, ending, return_exceptions=True)
        self._out = sum(self._ledger.out.sums(batch.number)[0] for batch in self._ledger.out.batches(*OPEN))
        for batch in batches:
            if self._budget is not None and (held := self._holds.pop(batch.number, None)) is not None:
                self._budget.settle(held, 0, 0.0)
        if self._reason is not None:
            raise self._reason

    async def _take(self, batch: Batch, path: Path) -> None:
        """Read one result file of a batch."""
        reading = Reading()
        job, tally = self._tasks.job, self.tally

        def price(_row: Outstanding) -> Price | None:
            return job.backends[batch.backend].price

        service = self._way.services[batch.backend]
        await read_results(
            path,
            service.read,
            self._ledger,
            price,
            sent_at=batch.sent_at,
            reading=reading,
            failed=self._failed,
        )
        tally.made += reading.answered
        tally.prompt_tokens += reading.prompt_tokens
        tally.completion_tokens += reading.completion_tokens
        self._out = max(0, self._out - reading.answered)
        if job.backends[batch.backend].price is not None:
            tally.cost_usd = (tally.cost_usd or 0.0) + reading.usd
        if self._budget is not None:
            self._budget.restore(reading.tokens, reading.usd)
        if reading.strangers or reading.unreadable:
            self._say(
                f"{path}: {reading.strangers + reading.unreadable} lines are about nothing that this run asked"
                + (f" (the first: {reading.stranger[:80]!r})" if reading.stranger else "")
                + "; they were left aside, and the file is kept"
            )

    def _failed(self, row: Outstanding, failure: CallError) -> None:
        self._errors += 1
        self._failures[row.key] = (self._failures.get(row.key, (0, failure))[0] + 1, failure)

    async def _end_when_late(self, courier: Courier) -> None:
        while not self._late():  # noqa: ASYNC110
            await asyncio.sleep(1.0)  # the wall clock counts, which may be set
        self._say("batches are ended now, and the rest is asked online (batch.online_after)")
        courier.end()

    def _late(self) -> bool:
        """Whether the time for batches is over."""
        since = self._ledger.fact(_SINCE)
        if self._after is None or not since:
            return False
        return time.time() - float(since) >= self._after

    def _count_fruitless(self, *, answered: bool, progress: bool) -> None:
        self._fruitless = 0 if answered else self._fruitless + 1
        if not progress and self._fruitless >= self._tasks.job.limits.attempts:
            raise ProviderError(
                f"{self._fruitless} rounds of batches in a row came back without one answer. The run stopped rather "
                f"than go on for nothing; see `edgen batch list RUN`. {GO_ON}"
            )

    async def _hand_over(self, made: Sequence[Batch]) -> None:
        """The files are a person's to send from here on. Raises HandedOver unless there is nothing to ask."""
        for batch in made:
            await self._ledger.out.note(msgspec.structs.replace(batch, state="written"))
        written = self._ledger.out.batches("written")
        if not written:
            return
        folder = self._way.write_only
        names = ", ".join(Path(batch.file).name for batch in written[:4]) + (
            ", …" if len(written) > 4 else ""
        )
        requests = sum(self._ledger.out.sums(batch.number)[0] for batch in written)
        raise HandedOver(
            f"{requests:,} requests are written to {folder} ({names}), and nothing was sent. When they are answered: "
            "`edgen batch read RUN FILES`, then this command again for the next round."
        )

    def _say(self, text: str) -> None:
        self._events.tell("note", text)


def forget_since(ledger: Ledger) -> None:
    """Once a run is made: the time of its batches is over."""
    if ledger.fact(_SINCE):
        ledger.set_fact(_SINCE, "")
