"""A run made without a command: the backends and the scheduler are the test's."""

from __future__ import annotations

from collections.abc import Mapping

from edgen.execution.online_scheduler import call_by_call
from edgen.execution.run import Run
from edgen.execution.scheduler import SchedulerFactory
from edgen.execution.session import Session
from edgen.planning.plan import Plan
from edgen.providers import Backend
from edgen.store.ledger import Ledger
from edgen.store.run_folder import RunFolder


def begin(
    plan: Plan,
    backends: Mapping[str, Backend],
    rundir: RunFolder,
    ledger: Ledger,
    scheduler: SchedulerFactory = call_by_call,
) -> Run:
    """A run in its folder, with the job noted there."""
    session = Session(plan, backends, ledger, roles=plan.roles, scheduler=scheduler)
    run = Run(plan, session, rundir)
    run.adopt(lambda _: None)
    return run


async def execute(run: Run) -> None:
    """Make everything, then write the files."""
    async with run.session.record():
        await run.drive()
        await run.write()
