"""One run from start to end: rounds of conversations, then the finished files.

The first round is what the job asks for. With `top_up`, each further round plans just as many
scenarios as are still missing, so that what is made depends on outcomes alone, not on their order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from edgen import __version__
from edgen.backends import Backend
from edgen.config import resolved
from edgen.engine.finish import finish, stamp
from edgen.engine.load import free_name
from edgen.engine.plan import Plan
from edgen.engine.rounds import BatchWay
from edgen.engine.session import Charged, Session
from edgen.errors import DataError, ShortError
from edgen.ledger import Ledger, RunPlan, RunStatus
from edgen.rundir import RunDir
from edgen.shards import verify_manifest
from edgen.space import dump_space
from edgen.splits import Side, choose

_HOPELESS = 50  # scenarios in a row, of whole rounds, of which none is accepted: no more are planned


class Run:
    """A plan, its backends (by their names in the job) and its folder. `execute` does it all; `driver`
    is there to be stopped. `elsewhere`, `way`: see Session. `part`: the scenarios to make, None for all."""

    def __init__(
        self,
        plan: Plan,
        backends: Mapping[str, Backend],
        rundir: RunDir,
        ledger: Ledger,
        elsewhere: Iterable[Charged] = (),
        *,
        way: BatchWay | None = None,
        part: range | None = None,
    ) -> None:
        self.plan = plan
        self.rundir = rundir
        self.ledger = ledger
        self.session = Session(plan, backends, ledger, roles=plan.roles, elsewhere=elsewhere, way=way)
        self._part = part
        self.driver = self.session.driver
        self.tally = self.session.tally
        self.tally.planned = plan.job.conversations * plan.job.replicates
        self.fingerprint = self.session.fingerprint
        self._scenarios = 0  # planned, once all was made

    def adopt(self, note: Callable[[str], None]) -> None:
        """Make the folder this plan's: note the job, and set aside what another form of it finished."""
        known = self.ledger.fact("plan")
        before = msgspec.json.decode(known, type=RunPlan).fingerprint if known else self.fingerprint
        if before != self.fingerprint and (aside := self.rundir.set_aside()) is not None:
            note(
                "The job, its template or space, or edgen itself has changed since this run was last worked on: "
                f"its earlier files are kept in {aside}. Answers that the change does not touch are used again."
            )
        plan, job = self.plan, self.plan.job
        prompts = {**plan.prompts, **plan.extra_prompts}
        texts = {"space.yaml": dump_space(plan.space)}
        paths: dict[str, str] = {}
        for use, prompt in prompts.items():
            texts[name := free_name(texts, prompt.name, prompt.text)] = prompt.text
            paths[use] = f"inputs/{name}"
        facts = {
            **resolved(job),
            "space": "inputs/space.yaml",
            "prompt": paths.pop("default", None),
            "prompts": paths,
            "resolved": {
                "edgen": __version__,
                "space": job.space,
                "space_sha256": plan.space_sha256,
                "prompts": {use: prompt.source for use, prompt in prompts.items()},
                "template_sha256": plan.template_sha256,
                "fingerprint": self.fingerprint,
            },
        }
        self.rundir.write_job(facts, texts)

    async def execute(self, on_finish: Callable[[], None] = lambda: None) -> None:
        """Make everything, then write the files.

        Raises ShortError if less was accepted than asked for, and whatever stopped the run.
        """
        async with self.session.noted():
            await self.drive()
            on_finish()
            await self.write()

    async def drive(self) -> None:
        """Make everything. Raises whatever stopped the run."""
        self._scenarios = await self._rounds()
        await self.ledger.flush()

    def groups(self) -> Iterator[tuple[int, int]]:
        """(group hash, accepted conversations) of what was made, by ascending hash."""
        return self.ledger.groups(self.fingerprint, self._scenarios, self.plan.job.replicates)

    async def write(self, side: Side | None = None) -> None:
        """Write the files of what was made, unless they stand; `side` is the test side, where it is chosen
        for several runs together. Raises ShortError if less was accepted than asked for."""
        job, tally = self.plan.job, self.tally
        mark = stamp(job, self.fingerprint, self._scenarios, tally.accepted, tally.ended, side)
        idle = tally.kept == tally.planned and self.ledger.fact("written") == mark
        if not (idle and await asyncio.to_thread(self._stand)):
            # Until all of them are there, no mark says that any is.
            self.ledger.set_fact("written", "")
            await self.ledger.flush()
            await asyncio.to_thread(self._finish, side)
            self.ledger.set_fact("written", mark)
        if tally.accepted < self._asked:
            raise ShortError(self._shortage(of_arms=side is not None))

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
            # Not itertools.product, which would hold all the numbers at once.
            units = (
                (scenario, replicate) for scenario in range(first, end) for replicate in range(job.replicates)
            )
            await self.driver.run(self.session.pending(units, first, end))
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
        planned = scenarios * job.replicates
        self.session.announce(job.name, scenarios, job.replicates, self._asked, planned)

    def _finish(self, side: Side | None) -> None:
        """Write the files."""
        if side is None:
            side = choose(self.groups(), sum(count for _, count in self.groups()), self.plan.job.split.test)
        job, tally = self.plan.job, self.tally
        describe = {
            "job": resolved(job),
            "fingerprint": self.fingerprint,
            "simulated": self.ledger.fact("simulated") == self.fingerprint,
            "template_sha256": self.plan.template_sha256,
            "space_sha256": self.plan.space_sha256,
            "planned": tally.planned,
            "rejected": dict(sorted(tally.rejected.items())),
            "failed": dict(sorted(tally.failed.items())),
            "edgen": __version__,
        }
        finish(job, self.rundir, self.ledger, self.fingerprint, self._scenarios, side, describe)

    def _stand(self) -> bool:
        """Whether the finished files are there, whole, as their manifest has them."""
        try:
            return self.rundir.rejected.exists() and not verify_manifest(self.rundir.shards)
        except DataError:
            return False

    def _shortage(self, *, of_arms: bool) -> str:
        tally = self.tally
        lost = {**tally.rejected, **tally.failed}
        reasons = ", ".join(
            f"{reason} {count}" for reason, count in sorted(lost.items(), key=lambda x: -x[1])
        )
        again = " Failed ones are tried again when the same command is run again." if tally.failed else ""
        more = ""
        if "no_branch" in lost:
            more = " A lower `branch.at`, or `at: sampled`, leaves conversations before they end."
        elif not (self.plan.job.top_up or of_arms):
            more = " `top_up: true` plans more until enough are accepted."
        return f"{tally.accepted} of {self._asked} conversations were accepted ({reasons}).{again}{more}"
