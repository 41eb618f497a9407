"""One run from start to end: conversations, then the finished files.

First the job's conversations, or this piece of them, are made. With `top_up`, exactly as many scenarios as
are missing are then planned, repeatedly, so that the result depends on outcomes, not on their order. If the
protocol divides scenarios into rounds, one is settled before the next begins.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import msgspec

from edgen.config import ANNOTATOR, Job, list_arm_jobs, load_kept_job, resolve_values
from edgen.core.errors import DamagedError, EdgenError, FailureKind, ShortError, UsageError
from edgen.core.system import run_in_thread
from edgen.core.values import RejectionReason, Status
from edgen.core.version import __version__
from edgen.execution.early_stop import GATED
from edgen.execution.finish import JOB, RunSummary, describe_job, make_run_plan, write_files
from edgen.execution.ordered_gates import MakeInOrder, decide_in_order
from edgen.execution.rollout import ADVICE
from edgen.execution.session import RunSession
from edgen.families.base import Recorded
from edgen.planning.backend_files import keep_backend_files
from edgen.planning.gates import asks_for_near_duplicates
from edgen.planning.load import keep_template
from edgen.planning.plan import Plan
from edgen.protocols.base import find_rounds
from edgen.space import render_space_files
from edgen.space.splits import HeldOutGroups, choose_common_side
from edgen.store.inputs_copy import keep_copy
from edgen.store.ledger import Ledger, RunPlan, RunStatus, Scope
from edgen.store.ledger.facts import RoundEnd, make_round_fact_name, read_round_end
from edgen.store.ledger.problems import make_damaged_error
from edgen.store.run_facts import SPACE, SpaceFacts
from edgen.store.run_folder import RunFolder


async def prepare_rounds(plan: Plan, ledger: Ledger, fingerprint: str, number: int) -> None:
    """Prepare the rounds up to `number`. Those before it are settled."""
    while plan.prepared_rounds <= number:
        last = plan.prepared_rounds - 1
        end = await _note_end(plan, ledger, fingerprint, last)
        await run_in_thread(_prepare_next, plan, ledger, _make_scope(plan, fingerprint, last), end)


def restore_rounds(plan: Plan, ledger: Ledger, fingerprint: str) -> None:
    """Prepare the rounds whose earlier ones ended under another form of the job, without noting anything."""
    while plan.prepared_rounds < plan.rounds.total:
        last = plan.prepared_rounds - 1
        end = read_round_end(ledger.read_fact(_make_fact_name(plan, last)), ledger.path)
        if end is None:
            return
        try:
            _prepare_next(plan, ledger, _make_scope(plan, fingerprint, last), end)
        except DamagedError:  # or records of another family: the work itself reports the error
            return


async def _note_end(plan: Plan, ledger: Ledger, fingerprint: str, number: int) -> RoundEnd:
    """Note that a round has ended, unless noted. Conversations that had failed then stay excluded under
    another form of the job, too: an upgrade must not discard paid answers."""
    await ledger.flush()
    known = read_round_end(ledger.read_fact(_make_fact_name(plan, number)), ledger.path)
    if known is not None and known.fingerprint == fingerprint:
        return known
    outcomes = ledger.open_outcomes(_make_scope(plan, fingerprint, number))
    failed = {
        (scenario, task) for scenario, task, status, _ in outcomes.list_settled() if status is Status.FAILED
    }
    end = RoundEnd(fingerprint, tuple(sorted(failed | {*(known.failed if known is not None else ())})))
    ledger.set_fact(_make_fact_name(plan, number), msgspec.json.encode(end).decode())
    await ledger.flush()
    return end


def _prepare_next(plan: Plan, ledger: Ledger, scope: Scope, end: RoundEnd) -> None:
    with contextlib.closing(_iterate_accepted(plan, ledger, scope, end)) as made:
        plan.prepare_round(made)


def _iterate_accepted(
    plan: Plan, ledger: Ledger, scope: Scope, end: RoundEnd
) -> Generator[Recorded, None, None]:
    """Yield the accepted conversations of a round that count for later ones."""
    failed = {*end.failed}
    for scenario, task, _, record in ledger.open_outcomes(scope).iterate_records():
        if (scenario, task) in failed:
            continue
        try:
            yield plan.family.read(record)
        except (ValueError, msgspec.MsgspecError) as problem:
            raise make_damaged_error(ledger.path, f"a record cannot be read: {problem}") from None


def _make_fact_name(plan: Plan, number: int) -> str:
    return make_round_fact_name(number, plan.rounds.size, plan.job.replicates)


def _make_scope(plan: Plan, fingerprint: str, number: int) -> Scope:
    """Return the conversations of a round that is not the last."""
    first = number * plan.rounds.size
    return Scope(fingerprint, first + plan.rounds.size, plan.job.replicates, first)


def check_part(job: Job, part: range | None) -> None:
    """Raise UsageError unless a job has these scenarios and can be made in pieces."""
    if part is None:
        return
    if job.top_up:
        raise UsageError(
            "--range and `top_up: true` do not go together: how many scenarios a top-up plans depends on "
            "what "
            "becomes of all of them. Use --set top_up=false and a larger number of conversations instead."
        )
    if asks_for_near_duplicates(list_arm_jobs(job, job.name).values()):
        raise UsageError(
            "--range and a gate on near_duplicate do not go together: what is new in a piece may be in "
            "another one, too. "
            "Make the pieces without that gate (--set gates.NAME='True'), merge them, and `edgen select RUN "
            "--where 'not near_duplicate'`."
        )
    if part.stop > job.conversations:
        raise UsageError(
            f"--range {part.start}:{part.stop}: the job has {job.conversations} scenarios, so a range ends "
            f"at {job.conversations:,} at most. More of them: -n."
        )
    if part.start and find_rounds(job).total > 1:
        raise UsageError(
            f"--range {part.start}:{part.stop}: this job is made in rounds, and later rounds use the "
            f"results of earlier ones, so a piece of it starts at scenario 0. Use --range 0:{part.stop}."
        )


def check_piece(folder: Path, known: RunPlan, job: Job, asked: range | None) -> None:
    """Raise UsageError unless the request includes everything that the run in `folder` was planned to
    hold."""
    there = known.of is not None
    if asked is None and there:
        raise UsageError(
            f"{folder}: this run is a piece of its job, scenarios {known.first} to {known.scenarios - 1} of "
            f"{known.of}. Use --range {known.first}:{known.scenarios} to resume it, "
            f"--range 0:{job.conversations} to make all of them here, or choose another folder with -o."
        )
    if asked is not None and not (asked.start <= known.first and known.scenarios <= asked.stop):
        held = f"scenarios {known.first} to {known.scenarios - 1}" if there else "all scenarios of its job"
        again = (
            f"--range {known.first}:{known.scenarios}, or a range that contains it,"
            if there
            else "no --range"
        )
        raise UsageError(
            f"{folder}: this run holds {held}, and --range {asked.start}:{asked.stop} leaves some of them "
            f"out. Use {again} to resume it, or choose another folder for the piece with -o."
        )


class ActiveRun:
    """A plan, its session, and the run's folder. `part`: the scenarios to make, None for all; `in_order`:
    decides gates that depend on earlier conversations."""

    def __init__(
        self,
        plan: Plan,
        session: RunSession,
        rundir: RunFolder,
        part: range | None = None,
        in_order: MakeInOrder | None = None,
    ) -> None:
        self.session = session
        self.counts = session.counts
        self._plan = plan
        plan.forget_rounds()
        self._rundir = rundir
        self._ledger = session.ledger
        self._part = part
        self._in_order = in_order
        self._wanted = self._announced = self._make_plan()
        self.counts.planned = self._wanted.asked
        self._sated = self._find_sated_status()
        if self._sated is not None:
            self.counts.take(self._sated)
        else:
            session.count_kept(self._wanted.first, self._wanted.scenarios, plan.job.replicates)

    def _make_plan(self, scenarios: int | None = None) -> RunPlan:
        """Return the run's plan; with a top-up for that many scenarios in total."""
        return make_run_plan(self._plan.job, self.session.fingerprint, self._part, scenarios=scenarios)

    def adopt(self, note: Callable[[str], None]) -> None:
        """Bind the folder to this plan: note the job, and set aside the files of another form of it."""
        known = self._ledger.plan
        before = known.fingerprint if known is not None else self.session.fingerprint
        if self.session.fingerprint in (before, self._read_noted_fingerprint()):
            self._rundir.end_setting_aside()  # begun by a killed start
        elif (aside := self._rundir.set_aside()) is not None:
            note(
                "The job, its template or space, or edgen itself has changed since this run last ran: "
                f"its earlier files are kept in {aside}. Answers that the change does not touch are used "
                "again."
            )
        plan, job = self._plan, self._plan.job
        prompts = {**plan.prompts, **plan.extra_prompts}
        texts = render_space_files(plan.space)
        paths: dict[str, str] = {}
        for use, prompt in prompts.items():
            paths[use] = f"inputs/{keep_template(texts, prompt.name, prompt.text, prompt.schema)}"
        facts = {
            **resolve_values(job),
            "space": "inputs/space.yaml",
            "prompt": paths.pop("default", None),
            "prompts": paths,
            "resolved": {
                "edgen": __version__,
                "space": job.space,
                "space_sha256": plan.space_sha256,
                "prompts": {use: prompt.source for use, prompt in prompts.items()},
                "template_sha256": plan.template_sha256,
                "fingerprint": self.session.fingerprint,
            },
        }
        if plan.files:
            keep_backend_files(facts, plan.files, texts)
        self._rundir.write_job(facts, texts)
        keep_copy(self._ledger, self._rundir)
        self._ledger.set_fact(JOB, msgspec.json.encode(describe_job(job)).decode())
        facts_on_space = SpaceFacts(plan.space_sha256, plan.family.name, plan.space.roles)
        self._ledger.set_fact(SPACE, msgspec.json.encode(facts_on_space).decode())

    def _read_noted_fingerprint(self) -> str | None:
        """Return the fingerprint of the job noted in the folder: this plan's, if a kill came before any
        work."""
        if not self._rundir.job.exists():
            return None
        try:
            noted = load_kept_job(self._rundir.job).resolved
        except EdgenError:
            return None
        return None if noted is None else noted.fingerprint

    async def drive(self) -> None:
        """Make everything. Raises the error that stopped the run."""
        await self._make()
        await self._ledger.flush()
        self.session.close_budget()

    def iterate_groups(self) -> Iterator[tuple[int, int]]:
        """Yield (group hash, accepted conversations) of the results, by ascending hash."""
        return self._ledger.open_outcomes(self._announced.scope).iterate_groups()

    async def write(self, side: HeldOutGroups | None = None) -> None:
        """Write the result files, unless they are current; `side` is the test side, if chosen for several
        runs together. Raises ShortError if too few conversations were accepted."""
        counts, plan = self.counts, self._plan
        described = describe_job(plan.job)
        made = RunSummary(
            plan.job, self._ledger.read_status(), described, plan.template_sha256, plan.space_sha256
        )
        own = choose_common_side([self.iterate_groups()], plan.job.split.test) if side is None else side
        await write_files(made, self._rundir, self._ledger, own, anew=counts.kept != counts.planned)
        if counts.accepted < self._wanted.asked:
            raise ShortError(self._describe_shortage(of_arms=side is not None))

    async def _make(self) -> None:
        """Work until enough is accepted or no more is planned."""
        job = self._plan.job
        if self._sated is not None:
            self._announce(self._sated.plan.scenarios)
            return
        first, end, barren, before = self._wanted.first, self._wanted.scenarios, 0, 0
        while True:
            self._announce(end)
            for number, start, stop in self._plan.rounds.split(first, end):
                await prepare_rounds(self._plan, self._ledger, self.session.fingerprint, number)
                # Not itertools.product, which would hold all the numbers at once.
                units = (
                    (scenario, replicate)
                    for scenario in range(start, stop)
                    for replicate in range(job.replicates)
                )
                await self.session.scheduler.run(self.session.list_pending(units, start, stop, counted=True))
            await self._decide_in_order(end)
            missing = self._wanted.asked - self.counts.accepted
            barren = 0 if self.counts.accepted > before else barren + end - first
            # If none of a large plan is accepted, plan no more.
            if not job.top_up or missing <= 0 or barren >= GATED:
                return
            first, end, before = end, end + -(-missing // job.replicates), self.counts.accepted
            self.session.count_kept(first, end, job.replicates)

    async def _decide_in_order(self, end: int) -> None:
        """Decide the gates that depend on earlier conversations, for all scenarios below `end`; further plans
        and files depend on them."""
        if not self._plan.gates.ordered:
            return
        assert self._in_order is not None, "whoever makes a run with such gates brings what decides them"
        scope = msgspec.structs.replace(self._announced.scope, end=end)
        await decide_in_order(self._plan, self._ledger, self.counts, scope, self._in_order)

    def _find_sated_status(self) -> RunStatus | None:
        """Return the status of a top-up that has enough, so that no failure is retried."""
        # Undecided ordered gates make the count unknown.
        if not self._plan.job.top_up or self._plan.gates.ordered:
            return None
        status = self._ledger.read_status()
        same = status.plan == self._make_plan(status.plan.scenarios)
        return status if same and status.accepted >= self._wanted.asked and not status.pending else None

    def _announce(self, scenarios: int) -> None:
        self.counts.planned = (scenarios - self._wanted.first) * self._wanted.replicates
        self._announced = self._make_plan(scenarios)
        self.session.announce(self._announced)

    def _describe_shortage(self, *, of_arms: bool) -> str:
        counts = self.counts
        lost = {**counts.rejected, **counts.failed}
        reasons = ", ".join(
            f"{reason} {count}" for reason, count in sorted(lost.items(), key=lambda x: -x[1])
        )
        again = " Failed ones are tried again when the same command is run again." if counts.failed else ""
        more = ""
        if FailureKind.CONTEXT_OVERFLOW in lost:
            more = f" {ADVICE[FailureKind.CONTEXT_OVERFLOW]}"
        elif "no_branch" in lost:
            more = " A lower `branch.at`, or `at: sampled`, leaves conversations before they end."
        elif self._plan.job.top_up and any(_is_gate_rejection(reason) for reason in lost):
            more = (
                f" Of the last {GATED} scenarios or more none passed, so no more are planned; "
                "rejected.jsonl has what each of them was, and `gates` of the job what was asked."
            )
            if counts.rejected["no_labels"] and self._plan.gates.layers:
                more += (
                    f" Those with no_labels were not labelled: see the answers of the backend {ANNOTATOR}, "
                    "and its max_tokens."
                )
        elif not (self._plan.job.top_up or of_arms or self._wanted.of is not None):
            more = " `top_up: true` plans more until enough are accepted."
        return (
            f"{counts.accepted:,} of {self._wanted.asked:,} conversations were accepted "
            f"({reasons}).{again}{more}"
        )


def _is_gate_rejection(reason: str) -> bool:
    """Return whether conversations were rejected by a gate, or for missing labels that a gate needs."""
    return reason.startswith(f"{RejectionReason.GATE}:") or reason == RejectionReason.NO_LABELS
