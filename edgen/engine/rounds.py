"""Drives tasks by provider batch jobs: rounds, each of all requests that wait for an answer.

A round walks every pending task from the ledger to its first request without an answer, writes these to files,
and has each file carried to the provider and its answers back (`courier`). Then the next, until all is settled;
a conversation of twenty turns takes twenty rounds. Between rounds nothing is in memory but the numbers of what is
pending, eight bytes each.
"""

from __future__ import annotations

import asyncio
import math
import time
from array import array
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from edgen.backends.batches import Batches
from edgen.config import Price
from edgen.durations import seconds
from edgen.engine.collecting import Collector
from edgen.engine.courier import Courier
from edgen.engine.drive import Driver
from edgen.engine.line import Line
from edgen.engine.owned import require_own
from edgen.engine.results import Reading, read_results
from edgen.engine.sweeping import Sweep
from edgen.engine.task import Tasks
from edgen.engine.walk import GO_ON, Ends
from edgen.errors import EdgenError, FailureKind, HandedOver, ProviderError, UsageError
from edgen.events import Events
from edgen.ledger import OPEN, REPLICATES, Batch, Ledger, Outstanding, unit_number
from edgen.limits import Budget, BudgetExhausted, Reservation

_WORTH = 4  # a round that a budget cuts to less than one part in so many of the largest such one is not sent
_MADE = "batches_made"  # fact: all was made since a batch was last begun
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
    where = "ready to be sent" if all(batch.state == "ready" for batch in batches) else "at the provider"
    return UsageError(
        f"{count} of this run {verb} {where} ({numbers}), and asking their requests again would pay twice. "
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
        self._errors = 0  # lines that held one
        self._short: BudgetExhausted | None = None  # what the budget did not cover of the last round
        self._largest = 0  # requests of the largest round that the budget cut short
        self._holds: dict[int, Reservation] = {}
        self._fruitless = 0  # rounds in a row that brought nothing
        self._check(ledger.out.batches(*OPEN))

    def _check(self, out: Sequence[Batch]) -> None:
        """Take over what is out; refuse what cannot be gone on with."""
        require_own(self._ledger.path, out, self._way.services)
        written = [batch for batch in out if batch.state == "written"]
        sent = [batch for batch in out if batch.state not in ("written", "ready")]
        if foreign := [batch for batch in out if batch.fingerprint != self._fingerprint]:
            numbers = ", ".join(str(batch.number) for batch in foreign[:5])
            raise UsageError(
                f"batches of this run ({numbers}) were made by another form of its job, or another edgen. "
                "Undo the change to wait for them; or `edgen batch cancel RUN` ends them and keeps what they have "
                "answered."
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
        await self._begin_afresh()
        number = 1 + max((batch.round for batch in self._ledger.out.batches()), default=0)
        if self._way.write_only is None:
            await self._carry(self._ledger.out.batches(*OPEN))
        for batch in self._ledger.out.batches("ready"):  # made to be sent, and never sent
            gone = msgspec.structs.replace(batch, state="dropped", message="written anew, to be sent by hand")
            await self._ledger.out.note(gone, clear=True)
        first = True
        while self._way.write_only is not None or not self._late():
            made = await self._sweep(pending, number, first=first)
            first = False
            if self._way.write_only is not None:
                self._hand_over(made)
            if not made and not pending:
                return
            answered, errors = self.tally.made, self._errors
            await self._carry(made)
            self._count_fruitless(answered=self.tally.made > answered, progress=self._errors > errors)
            number += 1
        if pending:
            self._say(f"{len(pending):,} conversations are asked online from now on (batch.online_after)")
            self._is_online = True

    async def _sweep(self, pending: array[int], number: int, *, first: bool) -> list[Batch]:
        """One round's requests, written to files; `pending` keeps what waits for them."""
        sweep = Sweep(
            self._tasks,
            self._lines,
            self._ledger,
            self._ends,
            self.tally,
            partial(self._collector, number),
            first=first,
            healthy=not self._fruitless,
        )
        made = await sweep.run(pending)
        self._out += sweep.asked
        if first:  # what this start fetched is no replay
            self.tally.replayed = max(0, self.tally.replayed - self.tally.made)
        self._short = sweep.short
        if sweep.short is not None and not made:
            raise sweep.short
        if sweep.short is not None and self._way.write_only is None:
            self._largest = max(self._largest, sweep.asked)
            if sweep.asked * _WORTH < self._largest:
                await self._leave(made, sweep.short)
        return made

    async def _leave(self, made: Sequence[Batch], short: BudgetExhausted) -> None:
        """Each round under a budget leaves room for a smaller one, without end, and each may take a day: stop."""
        requests = sum(batch.requests for batch in made)
        for batch in made:
            gone = msgspec.structs.replace(batch, state="dropped", message="too few for a round")
            await self._ledger.out.note(gone, clear=True)
        raise BudgetExhausted(
            f"{short} What is left covers {requests} requests at most, too few for another round of batches; without "
            "--via batch they can be asked call by call."
        )

    def _collector(self, number: int, name: str, line: Line) -> Collector:
        job = self._tasks.job
        return Collector(
            self._ledger,
            self._way.services[name],
            line,
            fingerprint=self._fingerprint,
            backend=name,
            round_=number,
            folder=self._way.write_only,
            name=job.name,
            room=job.batch.max_requests,
            budget=self._budget,
            holds=self._holds,
        )

    async def _begin_afresh(self) -> None:
        """What failed for good is tried again by the first start after the run was made, as it is with calls made one
        by one; until then it stays failed, whatever the number of starts and rounds."""
        if self._ledger.fact(_MADE):
            self._ledger.out.forgive(FailureKind)
            self._ledger.set_fact(_MADE, "")
            await self._ledger.flush()

    # -- what is out

    async def _carry(self, batches: Iterable[Batch]) -> None:
        """Have batches carried to their ends, side by side."""
        batches = list(batches)
        if not batches:
            return
        since = self._since()
        if since is None or since > time.time():  # never, or by a clock that was set back since
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
        if self._budget is not None:
            self._budget.restore(courier.lost_tokens, courier.lost_usd)
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
        await read_results(path, service.read, self._ledger, price, sent_at=batch.sent_at, reading=reading)
        tally.made += reading.answered
        tally.prompt_tokens += reading.prompt_tokens
        tally.completion_tokens += reading.completion_tokens
        self._out = max(0, self._out - reading.answered)
        if job.backends[batch.backend].price is not None:
            tally.cost_usd = (tally.cost_usd or 0.0) + reading.usd
        if self._budget is not None:
            self._budget.restore(reading.tokens, reading.usd)
        self._errors += reading.failed.total()
        if reading.unreadable:
            self._say(f"{path}: {reading.unreadable:,} lines cannot be read; the file is kept")
        if reading.strangers:
            self._say(
                f"{path}: {reading.strangers:,} lines are about nothing that this run asked (the first: "
                f"{reading.stranger[:80]!r}); they were left aside, and the file is kept"
            )

    async def _end_when_late(self, courier: Courier) -> None:
        while not self._late():  # noqa: ASYNC110
            await asyncio.sleep(1.0)  # the wall clock counts, which may be set
        self._say("batches are ended now, and the rest is asked online (batch.online_after)")
        courier.end()

    def _late(self) -> bool:
        """Whether the time for batches is over."""
        since = self._since()
        return self._after is not None and since is not None and time.time() - since >= self._after

    def _since(self) -> float | None:
        """When the first batch was sent, in seconds since the epoch; None if none was, or what is noted is no time."""
        try:
            since = float(self._ledger.fact(_SINCE) or "nan")
        except ValueError:
            return None
        return since if math.isfinite(since) else None

    def _count_fruitless(self, *, answered: bool, progress: bool) -> None:
        self._fruitless = 0 if answered else self._fruitless + 1
        if not progress and self._fruitless >= self._tasks.job.limits.attempts:
            raise ProviderError(
                f"{self._fruitless} rounds of batches in a row came back without one answer. The run stopped rather "
                f"than go on for nothing; see `edgen batch list RUN`. {GO_ON}"
            )

    def _hand_over(self, made: Sequence[Batch]) -> None:
        """The files are a person's to send from here on. Raises HandedOver unless there is nothing to ask."""
        earlier = [batch for batch in self._ledger.out.batches("written") if batch not in made]
        if not made and not earlier:
            return
        told = []
        if made:
            requests = sum(batch.requests for batch in made)
            told.append(f"{requests:,} requests are written to {self._way.write_only}: {_files(made)}.")
        if earlier:
            out = sum(self._ledger.out.sums(batch.number)[0] for batch in earlier)
            places = ", ".join(sorted({str(Path(batch.file).parent) for batch in earlier}))
            told.append(
                f"{out:,} requests of files written before are still out: {_files(earlier)} in {places}."
            )
        told.append(
            "Nothing was sent. When they are answered: `edgen batch read RUN FILES`, then this command again for the "
            "next round."
        )
        if self._short is not None:
            raise BudgetExhausted(f"{' '.join(told)} More is not written: {self._short}")
        raise HandedOver(" ".join(told))

    def _say(self, text: str) -> None:
        self._events.tell("note", text)


def _files(batches: Sequence[Batch]) -> str:
    names = ", ".join(Path(batch.file).name for batch in batches[:4])
    return names + (f" and {len(batches) - 4} more" if len(batches) > 4 else "")


def made(ledger: Ledger) -> None:
    """Once all is made: the time of its batches is over, and so are their failures."""
    if ledger.out.batches():
        ledger.set_fact(_SINCE, "")
        ledger.set_fact(_MADE, "1")
