"""A judge at work on a run: asked with the run's job, kept in a ledger of its own in the run's folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from edgen.api.supervision.control import Control
from edgen.api.supervision.snapshot import Title
from edgen.api.supervision.supervise import supervise, used_elsewhere
from edgen.config import BackendConfig, Job, load_job
from edgen.core.errors import UsageError
from edgen.execution.online_scheduler import call_by_call
from edgen.execution.scheduler import SchedulerFactory
from edgen.execution.session import Session
from edgen.preferences.judge import JudgeTasks
from edgen.providers import Backend
from edgen.store.ledger import Ledger
from edgen.store.run_folder import RunFolder


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


async def run_judge(
    tasks: JudgeTasks,
    folder: Path,
    backends: Mapping[str, Backend],
    title: Title,
    control: Control,
    scheduler: SchedulerFactory = call_by_call,
) -> None:
    """Have the judge asked what its ledger in `folder` does not hold yet. Raises what stopped it."""
    run, path = tasks.reader.rundir, judge_ledger(tasks, folder)
    run.note_judge(tasks.judge.id, tasks.judge.facts, folder)
    async with Ledger(path, logprobs=tasks.logprobs) as ledger:
        elsewhere = used_elsewhere(run, path)
        session = Session(
            tasks, backends, ledger, roles=tuple(backends), elsewhere=elsewhere, scheduler=scheduler
        )
        session.counts.planned = tasks.planned
        await supervise(session, title, control, lambda _monitor: tasks.work_through(session))


def judge_ledger(tasks: JudgeTasks, folder: Path) -> Path:
    return folder / f"{tasks.judge.id}.db"
