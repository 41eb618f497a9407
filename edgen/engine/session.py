"""One process's work on a ledger: backends behind their limits, a driver, and how it stands, noted.

What is worked on, conversations or comparisons, is the tasks' affair.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping

import msgspec

from edgen import __version__
from edgen.backends import Backend
from edgen.engine.drive import Driver
from edgen.engine.line import budget_of, lines
from edgen.engine.rounds import BatchWay, Rounds, still_out
from edgen.engine.tally import Tally
from edgen.engine.task import Tasks
from edgen.errors import EdgenError, ShortError, SignalError
from edgen.events import Events
from edgen.ledger import OPEN, Ledger, RunPlan

_NOTE_EVERY = 1.0  # seconds between notes of the session's counts

# Tokens and US dollars that something has used, given what a token costs (prompt, completion).
Charged = Callable[[Callable[[int, int], float]], tuple[int, float]]

AnyDriver = Driver | Rounds  # call by call, or batch by batch


class Session:
    """Tasks, the backends that answer for `roles`, and the ledger that keeps it all.

    `backends` are by their names in the job. `elsewhere`: what other ledgers of the same run have used
    of the same budget. `way`: how batches are made, where calls are not made one by one.
    """

    def __init__(
        self,
        tasks: Tasks,
        backends: Mapping[str, Backend],
        ledger: Ledger,
        *,
        roles: Iterable[str],
        elsewhere: Iterable[Charged] = (),
        way: BatchWay | None = None,
    ) -> None:
        budget = budget_of(tasks.job.limits)
        self.ledger = ledger
        self.events = Events()
        self.tally = Tally()
        self._lines = lines(tasks.job, backends, budget, roles)
        self.fingerprint = tasks.fingerprint({role: x.backend.identity for role, x in self._lines.items()})
        if budget is not None:
            used = [charged(self._dearest) for charged in (ledger.charged, *elsewhere)]
            budget.restore(sum(tokens for tokens, _ in used), sum(usd for _, usd in used))
        online = Driver(tasks, self._lines, ledger, self.fingerprint, self.tally)
        self.driver: AnyDriver = online
        if way is not None:
            self.driver = Rounds(tasks, self._lines, ledger, online, way, self.events, budget)
        elif waiting := ledger.out.batches(*OPEN):
            raise still_out(waiting)
        self._number = ledger.begin_session(os.getpid(), socket.gethostname(), __version__)

    def _dearest(self, prompt_tokens: int, completion_tokens: int) -> float:
        """The most that an answer stored without a cost can have cost, whichever backend gave it."""
        return max(line.price_of(prompt_tokens, completion_tokens) for line in self._lines.values())

    def announce(self, name: str, scenarios: int, replicates: int, asked: int, planned: int) -> None:
        """Note what is planned: `asked` of them are wanted."""
        self.tally.planned = planned
        plan = RunPlan(
            name=name,
            fingerprint=self.fingerprint,
            scenarios=scenarios,
            replicates=replicates,
            asked=asked,
            planned=None if planned == scenarios * replicates else planned,
        )
        self.ledger.set_fact("plan", msgspec.json.encode(plan).decode())

    def pending(self, units: Iterable[tuple[int, int]], first: int, end: int) -> Iterator[tuple[int, int]]:
        """Of ascending (index, replicate) units with first <= index < end, those without an outcome that
        still stands; the others are counted."""
        settled = self.ledger.settled(self.fingerprint, first, end)
        known = next(settled, None)
        for here in units:
            while known is not None and known[:2] < here:
                known = next(settled, None)
            if known is not None and known[:2] == here:
                self.tally.settle(known[2], known[3])
                self.tally.kept += 1
            else:
                yield here

    @contextlib.asynccontextmanager
    async def noted(self) -> AsyncIterator[None]:
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
            self._note(state, message)

    async def _note_regularly(self) -> None:
        while True:
            await asyncio.sleep(_NOTE_EVERY)
            self._note("running", None)

    def _note(self, state: str, message: str | None) -> None:
        try:
            self.ledger.note_session(
                self._number,
                replayed=self.tally.replayed,
                retried=self.tally.retried,
                state=state,
                message=message,
            )
        except EdgenError:  # the ledger stopped; that error is already on its way
            return


def interrupted(signal_number: int) -> SignalError:
    """The reason to stop with when a signal came."""
    return SignalError(
        signal_number,
        "Interrupted. Everything answered is stored; start the same command again and it goes on where it stopped.",
    )
