"""A judge at work on a run: asked with the run's job, kept in a ledger of its own in the run's folder."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from edgen.api.supervision.control import Control, explain_os_errors
from edgen.api.supervision.monitor import Monitor
from edgen.api.supervision.snapshot import Title
from edgen.api.supervision.supervise import Supervised, supervise_together, used_elsewhere
from edgen.config import BackendConfig, Job, check, load_job
from edgen.core.errors import UsageError
from edgen.core.values import Status
from edgen.execution.online_scheduler import call_by_call
from edgen.execution.scheduler import SchedulerFactory
from edgen.execution.session import Session, Shared
from edgen.planning.answer_schemas import check_schema
from edgen.preferences.judge import JudgeTasks
from edgen.prompting import Prompt
from edgen.providers import Backend
from edgen.store.ledger import Ledger, LedgerReader
from edgen.store.run_folder import RunFolder
from edgen.store.run_reader import RunReader


@contextlib.contextmanager
def open_for_reading(run: Path) -> Iterator[RunReader]:
    """The run, which nobody changes meanwhile. Raises RunError and LockedError."""
    rundir = RunFolder(run)
    rundir.require()
    with rundir.lock_for_reading(), RunReader(run) as reader:
        yield reader


@contextlib.contextmanager
def open_for_work(run: Path, control: Control, unit: str) -> Iterator[RunReader]:
    """The run, in which `unit` are about to be made. Raises RunError and LockedError."""
    rundir = RunFolder(run)
    rundir.require()
    with explain_os_errors(run), rundir.lock_for_writing() as dead, RunReader(run) as reader:
        if dead is not None:
            control.note(f"{dead} ended without saying so; its run is gone on with.")
        control.begin(reader.name, unit)
        control.check_deadline()
        yield reader


def load_judged_job(run: RunFolder, overrides: Iterable[str], settable: Sequence[str], of_what: str) -> Job:
    """The run's own job with these settings on top. Raises UsageError for one that does not count."""
    overrides = list(overrides)
    for override in overrides:
        if override.partition("=")[0].strip().split(".")[0] not in settable:
            raise UsageError(
                f"--set {override}: it does not count for {of_what}; these do: {', '.join(settable)}."
            )
    return load_job(run.job, overrides)


def find_backend(job: Job, named: str, who: str) -> BackendConfig:
    """The backend that asks as `who` ("judge", "annotator"): `ROLE`, or `JOB:ROLE`, or without a name the job's backend of
    that name, or its `default`. Raises UsageError."""
    path, _, role = named.rpartition(":")
    if not path and role.endswith((".yaml", ".yml")):
        path, role = role, ""
    if path:
        job = load_job(Path(path))
    if not role:
        role = who if who in job.backends else "default"
    if role not in job.backends:
        option = "--judge" if who == "judge" else "--by"
        raise UsageError(
            f"no backend '{role}' is in {path or 'the job of this run'} (there: {', '.join(job.backends)}). "
            f"Name one with {option} ROLE, or one of another job with {option} JOB.yaml:ROLE, or give one here: "
            f"--set 'backends.{who}={{type: openai, model: …}}'."
        )
    return job.backends[role]


def find_function(job: Job, config: BackendConfig, control: Control) -> Callable[..., Any] | None:
    """The function of the caller's that a backend of the job is, None where it is none."""
    functions = control.functions.items()
    return next((one for name, one in functions if job.backends.get(name) == config), None)


class JudgeAtWork(NamedTuple):
    """What a judge is asked, the backends that answer, what the work is called, and what runs it."""

    tasks: JudgeTasks
    backends: Mapping[str, Backend]
    title: Title
    scheduler: SchedulerFactory = call_by_call


async def run_judges(judges: Sequence[JudgeAtWork], folder: Path, control: Control) -> None:
    """Have judges of one run asked, side by side, what their ledgers in `folder` do not hold yet. They share the run's
    budget and the limits of each service. Raises what stopped them."""
    run, shared = judges[0].tasks.reader.rundir, Shared(judges[0].tasks.job.limits)
    paths = [judge_ledger(one.tasks, folder) for one in judges]
    async with contextlib.AsyncExitStack() as stack:
        parts: list[Supervised] = []
        for one, path in zip(judges, paths, strict=True):
            run.note_judge(one.tasks.judge.id, one.tasks.judge.facts, folder)
            ledger = await stack.enter_async_context(Ledger(path, logprobs=one.tasks.logprobs))
            session = Session(
                one.tasks,
                one.backends,
                ledger,
                roles=tuple(one.backends),
                elsewhere=() if parts else used_elsewhere(run, *paths),
                scheduler=one.scheduler,
                shared=shared,
            )
            session.counts.planned = one.tasks.planned
            parts.append(Supervised(session, one.title, _work_of(one.tasks, session)))
        await supervise_together(parts, control)


def _work_of(tasks: JudgeTasks, session: Session) -> Callable[[Monitor], Awaitable[object]]:
    return lambda _monitor: tasks.work_through(session)


def job_with(job: Job, role: str, config: BackendConfig, prompt: Prompt, source: Path) -> Job:
    """The run's job, read from `source`, with a backend as `role` that is asked with this template. Raises JobError."""
    check_schema(prompt, config, f"$.backends.{role}")
    held: Job = msgspec.structs.replace(job, backends={**job.backends, role: config})
    check(held, str(source))
    return held


async def run_judge(
    tasks: JudgeTasks,
    folder: Path,
    backends: Mapping[str, Backend],
    title: Title,
    control: Control,
    scheduler: SchedulerFactory = call_by_call,
) -> None:
    """As `run_judges`, of one."""
    await run_judges([JudgeAtWork(tasks, backends, title, scheduler)], folder, control)


def judge_ledger(tasks: JudgeTasks, folder: Path) -> Path:
    return folder / f"{tasks.judge.id}.db"


def unanswered(units: Iterable[tuple[int, str]], ledger: Path) -> Iterator[tuple[int, str]]:
    """Those of the units, which come by scenario, that have no answer in the ledger; what failed is tried again."""
    if not ledger.exists():
        yield from units
        return
    with LedgerReader(ledger) as view:
        for index, those in groupby(units, key=lambda unit: unit[0]):
            known = view.outcomes(index)
            for unit in those:
                if known.get(unit[1], (Status.FAILED,))[0] == Status.FAILED:
                    yield unit
