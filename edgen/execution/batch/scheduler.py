"""A scheduler for batch services: rounds, each with all requests that wait for an answer.

A round runs every pending task from the ledger to its first unanswered request, writes these requests to
files, sends the files and reads the answers (`lifecycle`). Rounds repeat until every task is settled: a
conversation of twenty turns takes twenty rounds. Between rounds, memory holds only the numbers of pending
units.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from edgen.core.errors import HandedOver, ProviderError, UsageError
from edgen.core.text import join_first, seconds
from edgen.core.values import TaskId
from edgen.execution.batch.lifecycle import BatchLifecycle
from edgen.execution.batch.ownership import require_own
from edgen.execution.batch.results import ResultCounts
from edgen.execution.batch.round import RoundPlanner, WaitingTasks
from edgen.execution.client.budget import BudgetExhausted, Reservation
from edgen.execution.failure_texts import GO_ON
from edgen.execution.online_scheduler import OnlineScheduler
from edgen.execution.open_batches import (
    begin_batch_period,
    end_unsent,
    note_first_sent,
    open_batches_error,
    read_first_sent_time,
)
from edgen.execution.scheduler import Work
from edgen.providers.batches import BatchService
from edgen.store.ledger import OPEN, NotedBatch

_WORTH = 4  # a round that the budget cuts to under 1/_WORTH of the largest round is not sent


class BatchScheduler(OnlineScheduler):
    """A scheduler that uses batches, and single calls after batch.online_after. When stopped, it sends
    nothing more and does not wait; outstanding batches stay noted in the ledger.

    `services`: the batch service of each backend, by its name in the job. `write_only`: the folder for
    request files, if the user sends them.
    """

    def __init__(
        self, work: Work, services: Mapping[str, BatchService], write_only: Path | None = None
    ) -> None:
        super().__init__(work)
        settings = work.tasks.call_settings
        self._settings = settings
        self._services = services
        self._write_only = write_only
        self._after = seconds(after) if (after := settings.batch.online_after) is not None else None
        self._is_online = False
        self._out = 0  # outstanding requests
        self._errors = 0  # result lines with an error
        self._short: BudgetExhausted | None = None  # error if the budget did not cover all of the last round
        self._largest = 0  # requests of the largest round cut by the budget
        self._holds: dict[int, Reservation] = {}
        self._fruitless = 0  # rounds in a row without results
        self._check(work.ledger.list_batches(*OPEN))

    def _check(self, out: Sequence[NotedBatch]) -> None:
        """Take over outstanding batches. Raises UsageError if some cannot be resumed."""
        require_own(self._work.ledger.path, out, self._services)
        written = [batch for batch in out if batch.state == "written"]
        sent = [batch for batch in out if batch.state not in ("written", "ready")]
        if foreign := [batch for batch in out if batch.fingerprint != self._work.fingerprint]:
            numbers = ", ".join(str(batch.number) for batch in foreign[:5])
            raise UsageError(
                f"batches of this run ({numbers}) were made by another form of its job, or another edgen. "
                "Undo the change to wait for them; or `edgen batch cancel RUN` ends them and keeps what "
                "they have answered."
            )
        if (written and self._write_only is None) or (sent and self._write_only is not None):
            raise open_batches_error(written if self._write_only is None else sent)
        for batch in out:
            count, tokens, usd = self._work.ledger.out.read_sums(batch.number)
            self._out += count
            if self._work.budget is not None:
                self._holds[batch.number] = self._work.budget.take(tokens, usd)

    @property
    def in_flight(self) -> int:
        """The number of outstanding requests."""
        return super().in_flight if self._is_online else self._out

    async def run(self, units: Iterator[tuple[int, TaskId]]) -> None:
        """Run the units; see Scheduler."""
        pending = WaitingTasks(units)
        await self._run_unless_stopped(self._run_rounds(pending))
        if self._is_online:
            await super().run(iter(pending))

    async def _run_unless_stopped(self, work: Coroutine[Any, Any, None]) -> None:
        working = asyncio.create_task(work)
        try:
            await self._wait_until_stopped(working)
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
        if self.stopped is not None:
            raise self.stopped
        working.result()

    async def _run_rounds(self, pending: WaitingTasks) -> None:
        """Run rounds until nothing is pending or the rest goes online."""
        await begin_batch_period(self._work.ledger)
        number = 1 + max((batch.round for batch in self._work.ledger.list_batches()), default=0)
        if self._write_only is None:
            await self._carry(self._work.ledger.list_batches(*OPEN))
        for batch in self._work.ledger.list_batches("ready"):  # prepared, but never sent
            await end_unsent(self._work.ledger, batch, "written anew, to be sent by hand")
        first = True
        while self._write_only is not None or not self._is_late():
            made = await self._plan(pending, number, first=first)
            first = False
            if self._write_only is not None:
                self._hand_over(made)
            if not made and not pending:
                return
            answered, errors = self._work.counts.made, self._errors
            await self._carry(made)
            self._count_fruitless(answered=self._work.counts.made > answered, progress=self._errors > errors)
            number += 1
        if pending:
            self._say(f"{len(pending):,} conversations are generated online from now on (batch.online_after)")
            self._recorder.lenient = False
            self._recorder.note_answer()
            self._is_online = True

    async def _plan(self, pending: WaitingTasks, number: int, *, first: bool) -> list[NotedBatch]:
        """Write one round's requests to files; `pending` keeps the tasks that wait for an answer."""
        counts = self._work.counts
        replayed, self._recorder.lenient = counts.replayed, not self._fruitless
        planner = RoundPlanner(
            self._work,
            self._recorder,
            number,
            self._services,
            self._write_only,
            self._holds,
            fresh=counts.made > 0,
        )
        made = await planner.run(pending)
        self._out += planner.asked
        # Answers fetched by this start are not replays.
        counts.replayed = max(0, counts.replayed - counts.made) if first else replayed
        self._short = planner.short
        if planner.short is not None and not made:
            raise planner.short
        if planner.short is not None and self._write_only is None:
            self._largest = max(self._largest, planner.asked)
            if planner.asked * _WORTH < self._largest:
                await self._leave(made, planner.short)
        return made

    async def _leave(self, made: Sequence[NotedBatch], short: BudgetExhausted) -> None:
        """Stop the run, since the budget allows ever smaller rounds, and each may take a day. Raises
        BudgetExhausted."""
        requests = sum(batch.requests for batch in made)
        for batch in made:
            await end_unsent(self._work.ledger, batch, "too few for a round")
            self._release(batch)
        raise BudgetExhausted(
            f"{short} What is left covers {requests} requests at most, too few for another round of "
            "batches; without --via batch they can be asked call by call."
        )

    # -- outstanding batches

    async def _carry(self, batches: Iterable[NotedBatch]) -> None:
        """Carry batches to their ends concurrently."""
        batches = list(batches)
        if not batches:
            return
        await note_first_sent(self._work.ledger)
        lifecycle = BatchLifecycle(
            self._settings, self._work.ledger, self._services, self._work.events, self._count_results
        )
        carrying = [asyncio.create_task(lifecycle.complete(batch)) for batch in batches]
        ending = asyncio.create_task(self._end_when_late(lifecycle))
        try:
            await asyncio.gather(*carrying)
        finally:
            for task in (*carrying, ending):
                task.cancel()
            await asyncio.gather(*carrying, ending, return_exceptions=True)
        self._out = sum(
            self._work.ledger.out.read_sums(batch.number)[0]
            for batch in self._work.ledger.list_batches(*OPEN)
        )
        if self._work.budget is not None:
            self._work.budget.charge(lifecycle.lost_tokens, lifecycle.lost_usd)
        for batch in batches:
            self._release(batch)
        if self.stopped is not None:
            raise self.stopped

    def _release(self, batch: NotedBatch) -> None:
        """Release the budget reserved for an ended batch."""
        if self._work.budget is not None and (held := self._holds.pop(batch.number, None)) is not None:
            self._work.budget.settle(held, 0, 0.0)

    def _count_results(self, batch: NotedBatch, path: Path, reading: ResultCounts) -> None:
        """Add one result file's counts to the run's counts and budget."""
        counts = self._work.counts
        counts.made += reading.answered
        counts.add(reading)
        self._out = max(0, self._out - reading.answered)
        if self._settings.backends[batch.backend].price is not None:
            counts.cost_usd = (counts.cost_usd or 0.0) + reading.usd
        if self._work.budget is not None:
            self._work.budget.charge(reading.tokens, reading.usd)
        self._errors += reading.failed.total()
        if reading.unreadable:
            self._say(f"{path}: {reading.unreadable:,} lines cannot be read; the file is kept")
        if reading.strangers:
            self._say(
                f"{path}: {reading.strangers:,} lines answer no request of this run (the first: "
                f"{reading.stranger[:80]!r}); they were skipped, and the file is kept"
            )

    async def _end_when_late(self, lifecycle: BatchLifecycle) -> None:
        while not self._is_late():  # noqa: ASYNC110
            await asyncio.sleep(1.0)  # polls, since the wall clock may be changed
        self._say("batches are ended now, and the rest is generated online (batch.online_after)")
        lifecycle.end()

    def _is_late(self) -> bool:
        """Return whether batch.online_after has passed since the first batch."""
        since = read_first_sent_time(self._work.ledger)
        return self._after is not None and since is not None and time.time() - since >= self._after

    def _count_fruitless(self, *, answered: bool, progress: bool) -> None:
        self._fruitless = 0 if answered else self._fruitless + 1
        if not progress and self._fruitless >= self._settings.limits.attempts:
            raise ProviderError(
                f"{self._fruitless} rounds of batches in a row came back without any answer, so the run "
                f"stopped; see `edgen batch list RUN`. {GO_ON}"
            )

    def _hand_over(self, made: Sequence[NotedBatch]) -> None:
        """Leave the files for the user to send. Raises HandedOver unless there are no requests."""
        earlier = [batch for batch in self._work.ledger.list_batches("written") if batch not in made]
        if not made and not earlier:
            return
        told = []
        if made:
            requests = sum(batch.requests for batch in made)
            told.append(f"{requests:,} requests are written to {self._write_only}: {_describe_files(made)}.")
        if earlier:
            out = sum(self._work.ledger.out.read_sums(batch.number)[0] for batch in earlier)
            places = ", ".join(sorted({str(Path(batch.file).parent) for batch in earlier}))
            told.append(
                f"{out:,} requests of files written before are still out: {_describe_files(earlier)} in {places}."
            )
        told.append(
            "Nothing was sent. When they are answered: `edgen batch read RUN FILES`, then this command "
            "again for the next round."
        )
        if self._short is not None:
            raise BudgetExhausted(f"{' '.join(told)} More is not written: {self._short}")
        raise HandedOver(" ".join(told))

    def _say(self, text: str) -> None:
        self._work.events.tell("note", text)


def _describe_files(batches: Sequence[NotedBatch]) -> str:
    return join_first([Path(batch.file).name for batch in batches], 4)
