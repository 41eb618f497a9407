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
from edgen.engine.rounds import BatchWay, Rounds, made, still_out
from edgen.engine.tally import Tally
from edgen.engine.task import Tasks
from edgen.errors import EdgenError, ShortError, SignalError
from edgen.events import Events
from edgen.ledger import OPEN, Ledger, RunPlan
from edgen.limits import Admission

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
        ledger.take_over()
        self.ledger = ledger
        self.events = Events()
        self.tally = Tally()
        self.limits = tasks.job.limits
        self.budget = budget
        self._lines = lines(tasks.job, backends, budget, roles, ledger.out)
        self.fingerprint = tasks.fingerprint({role: x.backend.identity for role, x in self._lines.items()})
        if budget is not None:
            used = [charged(self._dearest) for charged in (ledger.charged, *elsewhere)]
            # What batches of this ledger have out is set aside, not spent.
            out = [ledger.out.sums(batch.number)[1:] for batch in ledger.out.batches(*OPEN)]
            budget.restore(
                sum(tokens for tokens, _ in used) - sum(tokens for tokens, _ in out),
                sum(usd for _, usd in used) - sum(usd for _, usd in out),
            )
        online = Driver(
            tasks,
            self._lines,
            ledger,
            self.fingerprint,
            self.tally,
            say=lambda text: self.events.tell("note", text),
        )
        self.driver: AnyDriver = online
        if way is not None:
            self.driver = Rounds(
                tasks, self._lines, ledger, self.fingerprint, online, way, self.events, budget
            )
        elif waiting := ledger.out.batches(*OPEN):
            raise still_out(waiting)
        self._number = ledger.begin_session(os.getpid(), socket.gethostname(), __version__)

    @property
    def admissions(self) -> dict[str, Admission]:
        """What admits calls to each service, by the first of the roles that ask it."""
        found: dict[str, Admission] = {}
        for role, line in self._lines.items():
            if line.admission not in found.values():
                found[role] = line.admission
        return found

    def _dearest(self, prompt_tokens: int, completion_tokens: int) -> float:
        """The most that an answer stored without a cost can have cost, whichever backend gave it."""
        return max(line.price_of(prompt_tokens, completion_tokens) for line in self._lines.values())

    def announce(
        self,
        name: str,
        scenarios: int,
        replicates: int,
        asked: int,
        planned: int,
        *,
        first: int = 0,
        of: int | None = None,
    ) -> None:
        """Note what is planned, as RunPlan has it: `asked` of them are wanted."""
        self.tally.planned = planned
        plan = RunPlan(
            name=name,
            fingerprint=self.fingerprint,
            scenarios=scenarios,
            replicates=replicates,
            asked=asked,
            planned=None if planned == (scenarios - first) * replicates else planned,
            first=first,
            of=of,
        )
        self.ledger.set_fact("plan", msgspec.json.encode(plan).decode())

    def count_kept(self, first: int, end: int, replicates: int) -> None:
        """Count, all at once, the outcomes of first <= index < end that still stand."""
        for status, reason, count in self.ledger.kept(self.fingerprint, first, end, replicates):
            self.tally.settle(status, reason, count)
            self.tally.kept += count

    def pending(
        self, units: Iterable[tuple[int, int]], first: int, end: int, *, counted: bool = False
    ) -> Iterator[tuple[int, int]]:
        """Of ascending (index, replicate) units with first <= index < end, those without an outcome that
        still stands; the others are counted, unless they are already (`count_kept`)."""
        settled = self.ledger.settled(self.fingerprint, first, end)
        known = next(settled, None)
        for here in units:
            while known is not None and known[:2] < here:
                known = next(settled, None)
            if known is None or known[:2] != here:
                yield here
            elif not counted:
                self.tally.settle(known[2], known[3])
                self.tally.kept += 1

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
            if state != "stopped":
                made(self.ledger)
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
