"""A run without a command: the test provides the backends and the scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from edgen.execution.batch.scheduler import BatchScheduler
from edgen.execution.online_scheduler import make_online_scheduler
from edgen.execution.run import ActiveRun
from edgen.execution.scheduler import SchedulerFactory
from edgen.execution.session import RunSession
from edgen.planning.plan import Plan
from edgen.providers import Backend
from edgen.store.ledger import Ledger
from edgen.store.run_folder import RunFolder
from tests.execution.batch.desk import Desk


def begin(
    plan: Plan,
    backends: Mapping[str, Backend],
    rundir: RunFolder,
    ledger: Ledger,
    scheduler: SchedulerFactory = make_online_scheduler,
) -> ActiveRun:
    """Begin a run in its folder, and note the job there."""
    session = RunSession(plan, backends, ledger, roles=plan.roles, scheduler=scheduler)
    run = ActiveRun(plan, session, rundir)
    run.bind_folder(lambda _: None)
    return run


async def execute(run: ActiveRun) -> None:
    """Make all conversations, then write the files."""
    async with run.session.record():
        await run.make_all()
        await run.write()


async def make_run(plan: Plan, folder: Path, backend: Backend, desk: Desk | None = None) -> None:
    """Make all of a plan in a folder that may hold a part of it; call by call, or by batches at the desk."""
    rundir = RunFolder(folder)
    rundir.prepare()
    scheduler = make_online_scheduler if desk is None else partial(BatchScheduler, services={"default": desk})
    async with Ledger(rundir.ledger) as ledger:
        await execute(begin(plan, {"default": backend}, rundir, ledger, scheduler))
