"""A job's run: conversations made arm after arm, then train and test files with one test side for all arms.

Every run has at least one arm; without `arms:` in the job, it is the run's folder itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from edgen.config import Job
from edgen.core.errors import DamagedError, EdgenError, ShortError, UsageError, UselessError
from edgen.core.options import CallMode
from edgen.core.system import run_in_thread
from edgen.evaluation.measure_files import find_measure_files, load_job_measures, note_measure_files
from edgen.execution.costly_changes import find_dropped_arms, list_losses
from edgen.execution.ordered_gates import MakeInOrder
from edgen.execution.pieces import check_part
from edgen.execution.progress import ProgressCounts, Title
from edgen.execution.run import ActiveRun
from edgen.execution.scheduler import SchedulerFactory
from edgen.execution.session import Charged, RunSession, SharedState
from edgen.generation.options import GenerateOptions
from edgen.planning.kept_job import inline_files, make_job_for_run
from edgen.planning.load import JobSource, make_plans
from edgen.planning.plan import Plan
from edgen.planning.speakers import find_doubts
from edgen.providers import Backend
from edgen.runtime.backends import (
    close_backends,
    count_arms_at_once,
    list_configs,
    open_backends,
    open_scheduler,
)
from edgen.runtime.control import Control, explain_os_errors
from edgen.runtime.status import StatusReport, read_run_status
from edgen.runtime.supervise import Monitor, SupervisedWork, find_use_elsewhere, supervise
from edgen.space.splits import choose_common_side
from edgen.store.inputs_copy import restore_inputs
from edgen.store.ledger import Ledger
from edgen.store.ledger.facts import MEASURES
from edgen.store.locks import lock_run
from edgen.store.run_folder import RunFolder
from edgen.store.shards import Manifest, list_file_warnings, read_manifest

Arm = str


class ArmFiles(NamedTuple):
    """The finished files of an arm, and their folder."""

    arm: str
    folder: Path
    manifest: Manifest


@dataclass(frozen=True, slots=True)
class Generated:
    """The result of a run. `ended`: the error that ended it early; None without one. `files`: empty if it
    stopped."""

    folder: Path
    status: StatusReport
    files: tuple[ArmFiles, ...]
    ended: EdgenError | None


def find_folder(job: Job, options: GenerateOptions) -> RunFolder:
    """Return the folder of a job's run."""
    return RunFolder(options.output if options.output is not None else Path("outputs") / job.name)


def plan_arms(
    source: JobSource, options: GenerateOptions, control: Control
) -> tuple[JobSource, Mapping[Arm, Plan]]:
    """Return the job, with the backends' identities kept from its run, and the plan of each arm."""
    folder = find_folder(source.job, options)
    if folder.job.exists():
        from edgen.execution.client.fleet import keep_identities

        source = source._replace(job=keep_identities(source.job, folder))
    if source.job.measure_references:
        load_job_measures(source.job, source.allowed, control.trust)
    return source, make_plans(source.job, source.name, source.allowed)


async def generate(source: JobSource, options: GenerateOptions, control: Control) -> Generated:
    """Make the conversations of a job, and the files of accepted ones, here or in partitions.

    An error after the first call is in the result; an earlier error is raised.
    """
    if options.write_only is not None and options.via != "batch":
        raise UsageError("--write-only writes batch files; it goes with --via batch.")
    if options.write_only is not None and options.write_only.exists() and not options.write_only.is_dir():
        raise UsageError(
            f"--write-only {options.write_only}: this is not a folder; name one for the request files."
        )
    source, plans = plan_arms(source, options, control)
    folder = find_folder(source.job, options)
    if not (options.partitions or source.job.partitions or folder.partitions_folder.exists()):
        return await make_arms(source, plans, options, control)
    from edgen.generation.partitions import make_partitions

    if options.partitions:
        source = source._replace(job=msgspec.structs.replace(source.job, partitions=options.partitions))
    made = await make_partitions(source, options, folder, control)
    if not isinstance(made, int):
        return Generated(folder.path, made.status, (), made.ended)
    here = msgspec.structs.replace(options, on="here", workers=None)
    generated = await make_arms(source, plans, here, control)
    return replace(generated, status=generated.status.with_calls_now({"": made})) if made else generated


async def make_arms(
    source: JobSource, plans: Mapping[Arm, Plan], options: GenerateOptions, control: Control
) -> Generated:
    """Make the conversations of all arms, and the files of accepted ones.

    An error after the first call is in the result; an earlier error is raised.
    """
    return await _Generation(source, plans, options, control).make()


@dataclass
class _ArmWork:
    """The plan and backends of one arm, and its work in progress."""

    name: Arm  # name of the arm
    plan: Plan  # plan of the arm
    backends: Mapping[str, Backend]  # backends by name
    scheduler: SchedulerFactory  # makes the arm's scheduler
    folder: RunFolder  # folder of the arm
    ledger: Ledger = field(init=False)  # set at the start, like the next two
    run: ActiveRun = field(init=False)  # the work in progress
    noted: contextlib.AsyncExitStack = field(init=False)  # closing it ends the session
    made: bool = False  # everything is made


class _Generation:
    """One start of a job's run."""

    def __init__(
        self, source: JobSource, plans: Mapping[Arm, Plan], options: GenerateOptions, control: Control
    ) -> None:
        if options.scenarios is not None:
            for plan in plans.values():
                check_part(plan.job, options.scenarios)
        self._whole, self._plans, self._allowed = source.job, plans, source.allowed
        self._options, self._control = options, control
        self._folder = find_folder(source.job, options)
        self._counts: dict[str, ProgressCounts] = {}
        control.begin(source.job.name, folder=self._folder.path)

    async def make(self) -> Generated:
        folder = self._folder
        folder.refuse_links()
        if self._options.resume == "never" and folder.exists:
            raise UsageError(
                f"{folder.path}: this folder already holds a run. Choose another folder with -o, "
                "or leave out --resume never to resume it."
            )
        for sentence in (*self._allowed.doubts, *find_doubts(self._plans.values())):
            self._control.note(f"{sentence}.")
        for arm, plan in self._plans.items():
            if (own := folder.arm(arm)).ledger.exists():
                from edgen.selection.select import refuse_selected

                refuse_selected(own)
            if plan.gates.layers:
                from edgen.annotation.layer import require_job_layers

                require_job_layers(folder, plan.gates.layers)
            for sentence in plan.gates.notes if plan.job.gates else ():
                self._control.note(sentence)
            _find_ordered_gates(plan)  # a missing extra is reported before any call
        ended: EdgenError | None = None
        try:
            with lock_run(folder.path):
                await self._make()
        except EdgenError as error:
            ended = error
            # An error of a run that made progress is returned, so that its status is printed, too.
            if not (error.exit_code in (0, 3, 4, 5) or error.exit_code > 128) or not _has_status(folder):
                raise
        if ended is None:
            for arm, plan in self._plans.items():
                for sentence in list_file_warnings(plan.job.split, folder.arm(arm).shards):
                    self._control.note(sentence)
        made = {arm: counts.made for arm, counts in self._counts.items()}
        finished = ended is None or isinstance(ended, ShortError)
        return Generated(
            folder.path,
            read_run_status(folder).with_calls_now(made),
            tuple(map(self._find_files, self._plans)) if finished else (),
            ended,
        )

    def _find_files(self, arm: Arm) -> ArmFiles:
        shards = self._folder.arm(arm).shards
        return ArmFiles(arm, shards, read_manifest(shards))

    async def _make(self) -> None:
        folder, control = self._folder, self._control
        if all(folder.arm(arm).ledger.exists() for arm in self._plans):
            whole = inline_files(self._whole, self._allowed)
            from edgen.generation.finished import is_complete, report_finished

            if await is_complete(whole, self._plans, folder, self._options.scenarios, control):
                report_finished(self._whole.name, self._plans, folder, control)
                return
        control.check_deadline()
        async with contextlib.AsyncExitStack() as stack:
            # Before any change, so that no folder remains if a key is missing.
            arms = [await self._equip(arm, plan, stack) for arm, plan in self._plans.items()]
            with explain_os_errors(folder.path):
                folder.prepare(arms=bool(self._whole.arms))
                with folder.lock_for_writing() as dead:
                    self._restore_inputs()
                    if dead is not None:
                        control.note(f"{dead} was killed or crashed; its run is resumed.")
                    async with contextlib.AsyncExitStack() as open_runs:
                        await self._make_arms(arms, open_runs)

    def _restore_inputs(self) -> None:
        """Restore damaged inputs of the run from its ledger, so that they can be read until the job's inputs
        replace them. Without a copy in a ledger, the job's inputs replace them directly."""
        with contextlib.suppress(DamagedError):
            for path in restore_inputs(self._folder):
                self._control.note(f"{path}: it was damaged or edited, and is restored from the ledger.")

    async def _equip(self, arm: Arm, plan: Plan, stack: contextlib.AsyncExitStack) -> _ArmWork:
        """Open the backends of an arm. Merely writing request files needs no key."""
        options, job = self._options, plan.job
        trust = self._control.trust if options.write_only is None else None
        backends = await stack.enter_async_context(
            open_backends(
                list_configs(plan),
                job.limits,
                trust,
                arms=len(self._plans),
                at_once=count_arms_at_once(self._whole, self._plans),
                functions=self._control.functions,
                run=self._folder.path,
                arm=arm,
                together=[role for role in plan.speaking if plan.rules.by_people(role)],
            )
        )
        mode = CallMode(options.via, options.on, options.workers)
        opened = await stack.enter_async_context(
            open_scheduler(job, backends, mode, trust, options.write_only)
        )
        return _ArmWork(arm, plan, *opened, self._folder.arm(arm))

    async def _make_arms(self, arms: list[_ArmWork], stack: contextlib.AsyncExitStack) -> None:
        """Make the arms, one after another or several at once, then their files. An arm that falls short, or
        has useless answers, does not stop the others."""
        control = self._control
        measures = find_measure_files(self._whole, self._allowed) if self._whole.measure_references else []
        for arm in arms:
            if arm.name:
                arm.folder.prepare()
                stack.enter_context(arm.folder.lock_for_writing())
            ledger = Ledger(
                arm.folder.ledger,
                create=not arm.folder.job.exists(),
                people=any(arm.plan.rules.by_people(role) for role in arm.plan.roles),
            )
            arm.ledger = await stack.enter_async_context(ledger)
            if measures or arm.ledger.read_fact(MEASURES) is not None:
                for changed in note_measure_files(arm.ledger, measures):
                    control.note(
                        f"{changed}: this file of measures has changed. Conversations made before are not "
                        "gated again."
                    )
        self._control.require_consent(self._list_losses(arms))
        if self._whole.arms:
            self._folder.number_arms(self._plans)
            self._folder.write_job(*make_job_for_run(self._whole, self._allowed))
        useless: dict[Arm, UselessError] = {}
        for group in self._iterate_groups(arms):
            shared = SharedState(self._whole.limits)
            parts: list[SupervisedWork] = []
            for arm in group:
                # The first session of a group counts the budget's use by other ledgers; each session counts
                # its own.
                ledgers = [one.folder.ledger for one in group]
                elsewhere = () if parts else find_use_elsewhere(self._folder, *ledgers)
                await self._begin(arm, elsewhere, shared, stack)
                work = partial(self._work, arm, arms, useless)
                parts.append(SupervisedWork(arm.run.session, Title(arm.plan.job.name, arm.name), work))
            await supervise(parts, self._control)
            for arm in group:
                await close_backends(arm.plan, arm.backends)  # the next arms need the connections
        if useless:
            raise UselessError(
                " ".join(f"{arm}: {error}" if arm else str(error) for arm, error in useless.items())
            )

    def _iterate_groups(self, arms: list[_ArmWork]) -> Iterator[list[_ArmWork]]:
        """Yield groups of arms that are made at the same time."""
        for first in range(0, len(arms), at_once := count_arms_at_once(self._whole, self._plans)):
            yield arms[first : first + at_once]

    async def _work(
        self, arm: _ArmWork, arms: list[_ArmWork], useless: dict[Arm, UselessError], monitor: Monitor
    ) -> None:
        """Make an arm; after the last arm, write the files of all. An arm with useless answers ends alone,
        and is added to `useless`."""
        try:
            await arm.run.make_all()
        except UselessError as error:
            useless[arm.name] = error
            with contextlib.suppress(UselessError):
                async with arm.noted:
                    raise
        arm.made = True
        if all(one.made for one in arms) and not useless:
            monitor.say_stage("writing files")
            await self._write(arms)

    async def _begin(
        self,
        arm: _ArmWork,
        elsewhere: Iterable[Charged],
        shared: SharedState,
        stack: contextlib.AsyncExitStack,
    ) -> None:
        session = RunSession(
            arm.plan,
            arm.backends,
            arm.ledger,
            roles=arm.plan.roles,
            elsewhere=elsewhere,
            scheduler=arm.scheduler,
            shared=shared,
        )
        arm.run = ActiveRun(
            arm.plan, session, arm.folder, self._options.scenarios, _find_ordered_gates(arm.plan)
        )
        self._counts[arm.name] = arm.run.counts
        arm.run.bind_folder(self._control.note)
        # The session ends after the arm's own files are written, so that its note is about this arm.
        arm.noted = await stack.enter_async_context(contextlib.AsyncExitStack())
        await arm.noted.enter_async_context(arm.run.session.record())

    async def _write(self, arms: list[_ArmWork]) -> None:
        """Write the files of all arms. Raises ShortError if an arm falls short."""
        side = None
        if self._whole.arms:
            side = choose_common_side([arm.run.iterate_groups() for arm in arms], self._whole.split.test)
        short = []
        for arm in arms:
            await arm.ledger.flush()
        if any(arm.plan.gates.layers for arm in arms):
            from edgen.annotation.layer import write_job_layers

            await run_in_thread(write_job_layers, self._folder)
        for arm in arms:
            try:
                async with arm.noted:
                    await arm.run.write(side)
            except ShortError as error:
                short.append(f"{arm.name}: {error}" if arm.name else str(error))
        if short:
            raise ShortError(" ".join(short))

    def _list_losses(self, arms: list[_ArmWork]) -> list[object]:
        """Return the losses that need the user's consent, before any run changes."""
        losses: list[object] = []
        if self._folder.job.exists():
            losses += find_dropped_arms(self._folder, self._plans)
        for arm in arms:
            if arm.ledger.lost_replies or arm.ledger.read_fact("plan") is not None:
                part, via = self._options.scenarios, self._options.via
                losses += list_losses(arm.plan, arm.backends, arm.folder, arm.ledger, part, via)
        return losses


def _find_ordered_gates(plan: Plan) -> MakeInOrder | None:
    """Return the class that decides a plan's gates on earlier conversations; None without such gates."""
    if not plan.gates.ordered:
        return None
    from edgen.evaluation.near_duplicate_gates import GatedConversations

    return GatedConversations


def _has_status(folder: RunFolder) -> bool:
    """Return whether the run has a status; an error can occur before its ledgers are created."""
    try:
        return folder.begun and read_run_status(folder) is not None
    except EdgenError:
        return False
