"""One run from start to end: rounds of conversations, then the finished files.

The first round is what the job asks for, or the piece of it that this run is. With `top_up`, each further
round plans just as many scenarios as are still missing, so that what is made depends on outcomes alone, not
on their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from edgen.config import Job, load_job, resolved_values
from edgen.core.errors import EdgenError, ShortError, UsageError
from edgen.core.version import __version__
from edgen.execution.finish import RunSummary, describe_job, manifest_facts, write_files
from edgen.execution.online_scheduler import call_by_call
from edgen.execution.scheduler import SchedulerFactory
from edgen.execution.session import Charged, Session
from edgen.planning.load import free_file_name
from edgen.planning.plan import Plan
from edgen.providers import Backend
from edgen.space import dump_space
from edgen.space.splits import HeldOutGroups, choose_common_side
from edgen.store.ledger import Ledger, RunPlan, RunStatus, Scope
from edgen.store.run_folder import RunFolder

EVERYTHING = "job"  # the ledger's fact: the job as a manifest holds it
_HOPELESS = 50  # scenarios in a row, of whole rounds, of which none is accepted: no more are planned


def check_part(job: Job, part: range | None) -> None:
    """Raise UsageError unless a job has these scenarios and can be made in pieces."""
    if part is None:
        return
    if job.top_up:
        raise UsageError(
            "--range and `top_up: true` do not go together: how many scenarios a top-up plans depends on what "
            "becomes of all of them. Say --set top_up=false, and ask for some more conversations instead."
        )
    if part.stop > job.conversations:
        raise UsageError(
            f"--range {part.start}:{part.stop}: the job has {job.conversations} scenarios, so a range ends at "
            f"{job.conversations} at most. More of them: -n."
        )


def check_piece(folder: Path, known: RunPlan, job: Job, asked: range | None) -> None:
    """Raise UsageError unless all that the run in `folder` was to hold until now is in what is asked for."""
    there = known.of is not None
    if asked is None and there:
        raise UsageError(
            f"{folder}: this run is a piece of its job, scenarios {known.first} to {known.scenarios - 1} of "
            f"{known.of}. Say --range {known.first}:{known.scenarios} to go on with it, "
            f"--range 0:{job.conversations} to make all of them here, or choose another folder with -o."
        )
    if asked is not None and not (asked.start <= known.first and known.scenarios <= asked.stop):
        held = f"scenarios {known.first} to {known.scenarios - 1}" if there else "all scenarios of its job"
        again = f"--range {known.first}:{known.scenarios}, or one that it is in," if there else "no --range"
        raise UsageError(
            f"{folder}: this run holds {held}, and --range {asked.start}:{asked.stop} leaves some of them out. "
            f"Say {again} to go on with it, or choose another folder for the piece with -o."
        )


class Run:
    """A plan, its backends (by their names in the job) and its folder. `execute` does it all; `scheduler`
    is there to be stopped. `elsewhere`, `scheduler`: see Session. `part`: the scenarios to make, None for all.

    Raises UsageError where the folder holds another piece of the job than is asked for here."""

    def __init__(
        self,
        plan: Plan,
        backends: Mapping[str, Backend],
        rundir: RunFolder,
        ledger: Ledger,
        elsewhere: Iterable[Charged] = (),
        *,
        scheduler: SchedulerFactory = call_by_call,
        part: range | None = None,
    ) -> None:
        self.plan = plan
        self.rundir = rundir
        self.ledger = ledger
        check_part(plan.job, part)
        self._part = _piece(plan.job, part)
        self._known = ledger.plan
        if self._known is not None:
            check_piece(rundir.path, self._known, plan.job, part)
        self.session = Session(
            plan, backends, ledger, roles=plan.roles, elsewhere=elsewhere, scheduler=scheduler
        )
        self.scheduler = self.session.scheduler
        self.counts = self.session.counts
        self.counts.planned = self._asked
        self.fingerprint = self.session.fingerprint
        self._sated = self._known_sated()
        if self._sated is not None:
            self.counts.take(self._sated.accepted, self._sated.rejected, self._sated.failed)
            self.counts.planned = self._sated.planned
        else:
            self.session.count_kept(self._first, self._end, plan.job.replicates)
        self._scenarios = 0  # planned, once all was made

    def adopt(self, note: Callable[[str], None]) -> None:
        """Make the folder this plan's: note the job, and set aside what another form of it finished."""
        before = self._known.fingerprint if self._known is not None else self.fingerprint
        if self.fingerprint in (before, self._noted_fingerprint()):
            self.rundir.end_setting_aside()  # which a start that was killed began
        elif (aside := self.rundir.set_aside()) is not None:
            note(
                "The job, its template or space, or edgen itself has changed since this run was last worked on: "
                f"its earlier files are kept in {aside}. Answers that the change does not touch are used again."
            )
        plan, job = self.plan, self.plan.job
        prompts = {**plan.prompts, **plan.extra_prompts}
        texts = {"space.yaml": dump_space(plan.space)}
        paths: dict[str, str] = {}
        for use, prompt in prompts.items():
            texts[name := free_file_name(texts, prompt.name, prompt.text)] = prompt.text
            paths[use] = f"inputs/{name}"
        facts = {
            **resolved_values(job),
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
        self.ledger.set_fact(EVERYTHING, msgspec.json.encode(describe_job(job)).decode())

    def _noted_fingerprint(self) -> str | None:
        """The fingerprint of the job that is noted in the folder: this plan's, if a kill came before any work."""
        try:
            noted = load_job(self.rundir.job).resolved
        except EdgenError:
            return None
        return None if noted is None else noted.fingerprint

    async def execute(self, on_finish: Callable[[], None] = lambda: None) -> None:
        """Make everything, then write the files.

        Raises ShortError if less was accepted than asked for, and whatever stopped the run.
        """
        async with self.session.record():
            await self.drive()
            on_finish()
            await self.write()

    async def drive(self) -> None:
        """Make everything. Raises whatever stopped the run."""
        self._scenarios = await self._rounds()
        await self.ledger.flush()

    def groups(self) -> Iterator[tuple[int, int]]:
        """(group hash, accepted conversations) of what was made, by ascending hash."""
        scope = Scope(self.fingerprint, self._scenarios, self.plan.job.replicates, self._first)
        return self.ledger.outcomes(scope).groups()

    async def write(self, side: HeldOutGroups | None = None) -> None:
        """Write the files of what was made, unless they stand; `side` is the test side, where it is chosen
        for several runs together. Raises ShortError if less was accepted than asked for."""
        counts, job = self.counts, self.plan.job
        facts = manifest_facts(describe_job(job), self.plan.template_sha256, self.plan.space_sha256)
        made = RunSummary(job, self.ledger.status(), facts)
        own = choose_common_side([self.groups], job.split.test) if side is None else side
        await write_files(made, self.rundir, self.ledger, own, anew=counts.kept != counts.planned)
        if counts.accepted < self._asked:
            raise ShortError(self._shortage(of_arms=side is not None))

    @property
    def _first(self) -> int:
        return 0 if self._part is None else self._part.start

    @property
    def _end(self) -> int:
        """Of the first round."""
        return self.plan.job.conversations if self._part is None else self._part.stop

    @property
    def _asked(self) -> int:
        job = self.plan.job
        return (job.conversations if self._part is None else len(self._part)) * job.replicates

    async def _rounds(self) -> int:
        """Work until enough is accepted or nothing more is planned; returns the scenarios planned."""
        job = self.plan.job
        if self._sated is not None:
            self._announce(self._sated.plan.scenarios)
            return self._sated.plan.scenarios
        first, end, barren, before = self._first, self._end, 0, 0
        while True:
            self._announce(end)
            # Not itertools.product, which would hold all the numbers at once.
            units = (
                (scenario, replicate) for scenario in range(first, end) for replicate in range(job.replicates)
            )
            await self.scheduler.run(self.session.pending(units, first, end, counted=True))
            missing = self._asked - self.counts.accepted
            barren = 0 if self.counts.accepted > before else barren + end - first
            if not job.top_up or missing <= 0 or barren >= _HOPELESS:
                return end
            first, end, before = end, end + -(-missing // job.replicates), self.counts.accepted
            self.session.count_kept(first, end, job.replicates)

    def _known_sated(self) -> RunStatus | None:
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
        planned = (scenarios - self._first) * job.replicates
        of = None if self._part is None else job.conversations
        self.session.announce(
            job.name, scenarios, job.replicates, self._asked, planned, first=self._first, of=of
        )

    def _shortage(self, *, of_arms: bool) -> str:
        counts = self.counts
        lost = {**counts.rejected, **counts.failed}
        reasons = ", ".join(
            f"{reason} {count}" for reason, count in sorted(lost.items(), key=lambda x: -x[1])
        )
        again = " Failed ones are tried again when the same command is run again." if counts.failed else ""
        more = ""
        if "no_branch" in lost:
            more = " A lower `branch.at`, or `at: sampled`, leaves conversations before they end."
        elif not (self.plan.job.top_up or of_arms or self._part is not None):
            more = " `top_up: true` plans more until enough are accepted."
        return f"{counts.accepted} of {self._asked} conversations were accepted ({reasons}).{again}{more}"


def _piece(job: Job, part: range | None) -> range | None:
    """The part that is asked for; None where it is all of the job."""
    return None if part is None or part == range(job.conversations) else part
