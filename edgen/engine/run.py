"""One run from start to end: rounds of conversations, then the finished files.

The first round is what the job asks for. With `top_up`, each further round plans just as many
scenarios as are still missing, so that what is made depends on outcomes alone, not on their order.
"""

from __future__ import annotations

import asyncio
import os
import random
import socket
from collections.abc import Callable, Iterator, Mapping

import msgspec

from edgen import __version__
from edgen.backends import Backend
from edgen.config import resolved
from edgen.engine.drive import Driver
from edgen.engine.finish import finish, stamp
from edgen.engine.line import Line
from edgen.engine.plan import Plan
from edgen.engine.tally import Tally
from edgen.errors import DataError, EdgenError, ShortError, SignalError
from edgen.ledger import Ledger, RunPlan, RunStatus
from edgen.limits import Budget
from edgen.rundir import RunDir
from edgen.shards import verify_manifest
from edgen.space import dump_space

_NOTE_EVERY = 1.0  # seconds between notes of the session's counts
_HOPELESS = 50  # scenarios in a row, of whole rounds, of which none is accepted: no more are planned


class Run:
    """A plan, its backends and its folder. `execute` does it all; `driver` is there to be stopped."""

    def __init__(self, plan: Plan, backends: Mapping[str, Backend], rundir: RunDir, ledger: Ledger) -> None:
        job = plan.job
        self.plan = plan
        self.rundir = rundir
        self.ledger = ledger
        self.tally = Tally(planned=job.conversations * job.replicates)
        self.fingerprint = plan.fingerprint({role: b.identity for role, b in backends.items()})
        limits = job.limits
        budget = None
        if limits.max_tokens is not None or limits.max_cost is not None:
            budget = Budget(limits.max_tokens, limits.max_cost)
        rng = random.Random()  # noqa: S311 - jitter of waits; nothing that is stored depends on it
        self._lines: dict[str, Line] = {
            role: Line(job.backends[role], backend, limits, budget, rng) for role, backend in backends.items()
        }
        if budget is not None:
            budget.restore(*ledger.charged(self._lines["default"].price_of))
        self.session = ledger.begin_session(os.getpid(), socket.gethostname(), __version__)
        self.driver = Driver(plan, self._lines, ledger, self.fingerprint, self.tally)

    def adopt(self, note: Callable[[str], None]) -> None:
        """Make the folder this plan's: note the job, and set aside what another form of it finished."""
        known = self.ledger.fact("plan")
        before = msgspec.json.decode(known, type=RunPlan).fingerprint if known else self.fingerprint
        if before != self.fingerprint and (aside := self.rundir.set_aside()) is not None:
            note(
                "The job, its template or space, or edgen itself has changed since this run was last worked on: "
                f"its earlier files are kept in {aside}. Answers that the change does not touch are used again."
            )
        job, prompt, space = self.plan.job, self.plan.prompt, self.plan.space
        template_name = f"{prompt.name}.j2"
        self.rundir.write_job(
            {
                **resolved(job),
                "space": "inputs/space.yaml",
                "prompt": f"inputs/{template_name}",
                "resolved": {
                    "edgen": __version__,
                    "space": job.space,
                    "space_sha256": self.plan.space_sha256,
                    "prompt": job.prompt,
                    "template_sha256": prompt.sha256,
                    "fingerprint": self.fingerprint,
                },
            },
            {"space.yaml": dump_space(space), template_name: prompt.text},
        )

    async def execute(self, on_finish: Callable[[], None] = lambda: None) -> None:
        """Make everything, then write the files.

        Raises ShortError if less was accepted than asked for, and whatever stopped the run.
        """
        noting = asyncio.create_task(self._note_regularly())
        state, message = "stopped", None
        try:
            scenarios = await self._rounds()
            await self.ledger.flush()
            on_finish()
            mark = stamp(self.plan.job, self.fingerprint, scenarios, self.tally.accepted, self.tally.ended)
            idle = self.tally.kept == self.tally.planned and self.ledger.fact("written") == mark
            if not (idle and await asyncio.to_thread(self._stand)):
                # Until all of them are there, no mark says that any is.
                self.ledger.set_fact("written", "")
                await self.ledger.flush()
                await asyncio.to_thread(self._finish, scenarios)
                self.ledger.set_fact("written", mark)
            asked = self._asked
            state = "complete" if self.tally.accepted >= asked else "short"
            if state == "short":
                raise ShortError(self._shortage())
        except EdgenError as error:
            message = str(error)
            raise
        finally:
            noting.cancel()
            self._note(state, message)

    @property
    def _asked(self) -> int:
        return self.plan.job.conversations * self.plan.job.replicates

    async def _rounds(self) -> int:
        """Work until enough is accepted or nothing more is planned; returns the scenarios planned."""
        job = self.plan.job
        if (sated := self._sated()) is not None:
            self._announce(sated.plan.scenarios)
            self.tally.take(sated.accepted, sated.rejected, sated.failed)
            return sated.plan.scenarios
        first, end, barren = 0, job.conversations, 0
        while True:
            self._announce(end)
            before = self.tally.accepted
            await self.driver.run(self._pending(first, end))
            missing = self._asked - self.tally.accepted
            barren = 0 if self.tally.accepted > before else barren + end - first
            if not job.top_up or missing <= 0 or barren >= _HOPELESS:
                return end
            first, end = end, end + -(-missing // job.replicates)

    def _sated(self) -> RunStatus | None:
        """The status of a top-up that already has all it wants: nothing of it is tried again."""
        if not self.plan.job.top_up:
            return None
        status = self.ledger.status()
        same = (status.plan.fingerprint, status.plan.asked, status.plan.replicates) == (
            self.fingerprint,
            self._asked,
            self.plan.job.replicates,
        )
        return status if same and status.accepted >= self._asked and not status.pending else None

    def _announce(self, scenarios: int) -> None:
        job = self.plan.job
        self.tally.planned = scenarios * job.replicates
        plan = RunPlan(
            name=job.name,
            fingerprint=self.fingerprint,
            scenarios=scenarios,
            replicates=job.replicates,
            asked=self._asked,
        )
        self.ledger.set_fact("plan", msgspec.json.encode(plan).decode())

    def _pending(self, first: int, end: int) -> Iterator[tuple[int, int]]:
        """(scenario, replicate) pairs without an outcome that still stands; the others are counted."""
        settled = self.ledger.settled(self.fingerprint, first, end)
        known = next(settled, None)
        for scenario in range(first, end):
            for replicate in range(self.plan.job.replicates):
                here = (scenario, replicate)
                while known is not None and known[:2] < here:
                    known = next(settled, None)
                if known is not None and known[:2] == here:
                    self.tally.settle(known[2], known[3])
                    self.tally.kept += 1
                else:
                    yield here

    def _finish(self, scenarios: int) -> None:
        """Write the files."""
        job, tally = self.plan.job, self.tally
        describe = {
            "job": resolved(job),
            "fingerprint": self.fingerprint,
            "simulated": self.ledger.fact("simulated") == self.fingerprint,
            "template_sha256": self.plan.prompt.sha256,
            "space_sha256": self.plan.space_sha256,
            "planned": tally.planned,
            "rejected": dict(sorted(tally.rejected.items())),
            "failed": dict(sorted(tally.failed.items())),
            "edgen": __version__,
        }
        finish(job, self.rundir, self.ledger, self.fingerprint, scenarios, describe)

    def _stand(self) -> bool:
        """Whether the finished files are there, whole, as their manifest has them."""
        try:
            return self.rundir.rejected.exists() and not verify_manifest(self.rundir.shards)
        except DataError:
            return False

    def _shortage(self) -> str:
        tally = self.tally
        lost = {**tally.rejected, **tally.failed}
        reasons = ", ".join(
            f"{reason} {count}" for reason, count in sorted(lost.items(), key=lambda x: -x[1])
        )
        again = " Failed ones are tried again when the same command is run again." if tally.failed else ""
        more = (
            "" if self.plan.job.top_up else " `top_up: true` in the job plans more until enough are accepted."
        )
        return f"{tally.accepted} of {self._asked} conversations were accepted ({reasons}).{again}{more}"

    async def _note_regularly(self) -> None:
        while True:
            await asyncio.sleep(_NOTE_EVERY)
            self._note("running", None)

    def _note(self, state: str, message: str | None) -> None:
        try:
            self.ledger.note_session(
                self.session,
                replayed=self.tally.replayed,
                retried=self.tally.retried,
                lost_tokens=sum(line.lost_tokens for line in self._lines.values()),
                lost_usd=sum(line.lost_usd for line in self._lines.values()),
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
