"""One run from start to end: conversations, then the finished files.

The job's conversations, or this piece of them, are made first. With `top_up`, exactly the missing number of
scenarios is then planned, repeatedly, so the result does not depend on the order of outcomes. If the protocol
divides scenarios into rounds, each round is settled before the next begins.

The files (shards, manifest, rejected.jsonl) are streamed from the settled ledger, and can be made again from
it at any time.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from edgen.config import ANNOTATOR, Job, load_kept_job, resolve_values
from edgen.core.digest import compute_fingerprint
from edgen.core.errors import EdgenError, FailureKind, ShortError
from edgen.core.files import write_lines
from edgen.core.system import run_in_thread
from edgen.core.text import join_first
from edgen.core.values import RejectionReason
from edgen.core.version import __version__
from edgen.execution.early_stop import GATED
from edgen.execution.ordered_gates import MakeInOrder, decide_in_order
from edgen.execution.rounds import prepare_rounds
from edgen.families.base import make_record_id
from edgen.planning.backend_files import keep_backend_files
from edgen.planning.load import keep_template
from edgen.planning.plan import Plan
from edgen.protocols.base import find_rounds
from edgen.space import render_space_files
from edgen.space.splits import HeldOutGroups, choose_common_side
from edgen.store.inputs_copy import keep_copy
from edgen.store.ledger import SELECTION, Ledger, RunPlan, RunStatus, read_selection
from edgen.store.run_facts import SPACE, SpaceFacts
from edgen.store.run_folder import RunFolder
from edgen.store.shards import FILE_DIGESTS, SplitCounts, digest_files, find_damaged_files, write_shards

if TYPE_CHECKING:  # writing files needs no session
    from edgen.execution.session import RunSession

# Facts in the ledger
JOB = "job"  # the job as a manifest describes it
WRITTEN = "written"  # the mark of the written files


class RunSummary(NamedTuple):
    """The facts about a run that its files state. `description`: the job, from `describe_job`."""

    job: Job
    status: RunStatus
    description: Mapping[str, Any]
    template_sha256: str
    space_sha256: str


def describe_job(job: Job) -> dict[str, Any]:
    """Return the job for a manifest, as plain values. Settings that shape neither answers nor files are left
    out, so that pieces made with different ones have equal manifests. Files of backends are named without
    their folder."""
    plain = resolve_values(job)
    for name, backend in job.backends.items():
        for key in backend.FILES:
            if (path := plain["backends"][name][key]) is not None:
                plain["backends"][name][key] = Path(path).name
    left_out = ("limits", "batch", "on", "workers", "partitions", "stop_when_useless")
    return {key: value for key, value in plain.items() if key not in left_out}


def make_run_plan(
    job: Job, under: str, part: range | None = None, *, scenarios: int | None = None
) -> RunPlan:
    """Return the plan of a run of a job. `under`: its fingerprint. `part`: the scenarios to make, None for
    all. `scenarios`: the end of the scenarios with a top-up."""
    whole = range(job.conversations)
    wanted = whole if part is None else part
    return RunPlan(
        name=job.name,
        fingerprint=under,
        scenarios=wanted.stop if scenarios is None else scenarios,
        replicates=job.replicates,
        asked=len(wanted) * job.replicates,
        first=wanted.start,
        of=None if wanted == whole else job.conversations,
        rounds=find_rounds(job).total,
    )


async def write_files(
    made: RunSummary,
    rundir: RunFolder,
    ledger: Ledger,
    side: HeldOutGroups,
    *,
    overwrite: bool = True,
    note: Callable[[str], None] = lambda _: None,
) -> None:
    """Write the files of a run; `side` is the test side over all the job's arms. Unless `overwrite`, keep
    them if they exist and match the results; `note` gets a sentence that names damaged ones."""
    mark = compute_files_mark(made.job, made.status, side)
    if not overwrite and ledger.read_fact(WRITTEN) == mark:
        damaged = await run_in_thread(find_damaged_files, rundir, ledger.read_fact(FILE_DIGESTS))
        if not damaged:
            return
        note(f"{rundir.path}: damaged files are written again from the ledger: {join_first(damaged, 5)}.")
    keep_copy(ledger, rundir)
    # No mark until all files are written: after a kill, they are written again.
    ledger.set_fact(WRITTEN, "")
    await ledger.flush()
    await run_in_thread(_write, made, rundir, ledger, side)
    ledger.set_fact(FILE_DIGESTS, await run_in_thread(digest_files, rundir))
    ledger.set_fact(WRITTEN, mark)


def _write(made: RunSummary, rundir: RunFolder, ledger: Ledger, side: HeldOutGroups) -> None:
    """Write accepted conversations to shards, and the rest, with reasons, to rejected.jsonl."""
    outcomes = ledger.open_outcomes(made.status.plan.scope)
    counts: Counter[bool] = Counter()
    for group, count in outcomes.iterate_groups():
        counts[side.is_test(group)] += count
    with contextlib.closing(outcomes.iterate_records()) as records:
        write_shards(
            rundir.shards,
            ((side.is_test(group), record) for _, _, group, record in records),
            SplitCounts(train=counts[False], test=counts[True]),
            made.job.shards,
            _describe_run(made, ledger),
        )
    refused = (
        {
            "id": make_record_id(made.job.name, scenario, replicate),
            "status": status,
            "reason": reason,
            "detail": detail,
            "reply": None if reply is None else reply.text,
        }
        for scenario, replicate, status, reason, detail, reply in outcomes.list_refused()
    )
    write_lines(rundir.rejected, map(msgspec.json.encode, refused))


def _describe_run(made: RunSummary, ledger: Ledger) -> dict[str, Any]:
    """Return the manifest's contents besides its files."""
    status, under = made.status, made.status.plan.fingerprint
    selection = read_selection(ledger.read_fact(SELECTION), ledger.path)
    return {
        "job": made.description,
        "fingerprint": under,
        "simulated": ledger.read_fact("simulated") == under,
        "template_sha256": made.template_sha256,
        "space_sha256": made.space_sha256,
        "planned": status.planned,
        "rejected": dict(sorted(status.rejected.items())),
        "failed": dict(sorted(status.failed.items())),
        "edgen": __version__,
        **({} if selection is None else {"selection": msgspec.to_builtins(selection)}),
    }


def compute_files_mark(job: Job, status: RunStatus, side: HeldOutGroups) -> str:
    """Return the mark of a run's files: runs with equal marks have equal files."""
    plan = status.plan
    facts = (
        plan.fingerprint,
        job.name,
        plan.scenarios,
        job.replicates,
        status.accepted,
        status.planned - status.pending,
        job.split,
        job.shards,
        side,
        *([plan.first] if plan.first else []),
    )
    return compute_fingerprint(facts)


class ActiveRun:
    """A plan, its session, and the run's folder. `part`: the scenarios to make, None for all. `in_order`:
    creates the decision on gates that depend on earlier conversations."""

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
        """Return the run's plan. `scenarios`: the end of the scenarios with a top-up."""
        return make_run_plan(self._plan.job, self.session.fingerprint, self._part, scenarios=scenarios)

    def bind_folder(self, note: Callable[[str], None]) -> None:
        """Bind the folder to this plan: write the job, and set aside files of another form of it. `note` gets
        a sentence if there are any."""
        known = self._ledger.plan
        before = known.fingerprint if known is not None else self.session.fingerprint
        if self.session.fingerprint in (before, self._read_noted_fingerprint()):
            self._rundir.end_setting_aside()  # a killed start may have begun it
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
        """Return the fingerprint in the folder's copy of the job: after an early kill, only the copy is up to
        date."""
        if not self._rundir.job.exists():
            return None
        try:
            noted = load_kept_job(self._rundir.job).resolved
        except EdgenError:
            return None
        return None if noted is None else noted.fingerprint

    async def make_all(self) -> None:
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
        description = describe_job(plan.job)
        made = RunSummary(
            plan.job, self._ledger.read_status(), description, plan.template_sha256, plan.space_sha256
        )
        own = choose_common_side([self.iterate_groups()], plan.job.split.test) if side is None else side
        await write_files(
            made,
            self._rundir,
            self._ledger,
            own,
            overwrite=counts.kept != counts.planned,
            note=lambda text: self.session.events.tell("note", text),
        )
        if counts.accepted < self._wanted.asked:
            raise ShortError(self._describe_shortage(of_arms=side is not None))

    async def _make(self) -> None:
        """Make conversations until enough are accepted or no more are planned."""
        job = self._plan.job
        if self._sated is not None:
            self._announce(self._sated.plan.scenarios)
            return
        first, end, barren, before = self._wanted.first, self._wanted.scenarios, 0, 0
        while True:
            self._announce(end)
            for number, start, stop in self._plan.rounds.split(first, end):
                if number >= self._plan.prepared_rounds:
                    await prepare_rounds(self._plan, self._ledger, self.session.fingerprint, number)
                # itertools.product would hold all the numbers at once.
                units = (
                    (scenario, replicate)
                    for scenario in range(start, stop)
                    for replicate in range(job.replicates)
                )
                await self.session.scheduler.run(self.session.list_pending(units, start, stop, counted=True))
            await self._decide_in_order(end)
            missing = self._wanted.asked - self.counts.accepted
            barren = 0 if self.counts.accepted > before else barren + end - first
            # After many scenarios without an accepted conversation, plan no more.
            if not job.top_up or missing <= 0 or barren >= GATED:
                return
            first, end, before = end, end + -(-missing // job.replicates), self.counts.accepted
            self.session.count_kept(first, end, job.replicates)

    async def _decide_in_order(self, end: int) -> None:
        """Decide the gates that depend on earlier conversations, for all scenarios below `end`; further plans
        and files depend on them."""
        if not self._plan.gates.ordered:
            return
        assert self._in_order is not None, "a plan with ordered gates needs `in_order`"
        scope = msgspec.structs.replace(self._announced.scope, end=end)
        await decide_in_order(self._plan, self._ledger, self.counts, scope, self._in_order)

    def _find_sated_status(self) -> RunStatus | None:
        """Return the status of a top-up with enough accepted conversations, so that no failure is retried;
        else None."""
        # Ordered gates may be undecided, which makes the count unknown.
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
            from edgen.execution.failure_texts import ADVICE

            more = f" {ADVICE[FailureKind.CONTEXT_OVERFLOW]}"
        elif "no_branch" in lost:
            more = " A lower `branch.at`, or `at: sampled`, leaves conversations before they end."
        elif self._plan.job.top_up and any(_is_gate_rejection(reason) for reason in lost):
            more = (
                f" None of the last {GATED} scenarios or more passed, so no more are planned; "
                "see the reasons in rejected.jsonl, and `gates` in the job."
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
