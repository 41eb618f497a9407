"""`edgen generate`: the main job, from a job file to finished train and test shards."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from edgen.cli.load import JobArgument, JsonOption, SetOption, load_plan
from edgen.cli.output import note, print_json, print_line
from edgen.cli.progress import progress
from edgen.cli.status import status_lines
from edgen.errors import EdgenError, RunError, ShortError, UsageError
from edgen.rundir import RunDir

if TYPE_CHECKING:
    from edgen.engine.plan import Plan
    from edgen.engine.run import Run


def command(
    job: JobArgument,
    output: Annotated[
        Path | None, typer.Option("-o", metavar="RUN", help="The run's folder.  [default: outputs/<name>]")
    ] = None,
    count: Annotated[
        int | None, typer.Option("-n", metavar="N", min=1, help="Conversations, instead of the job's number.")
    ] = None,
    set_: SetOption = None,
    resume: Annotated[
        Literal["auto", "never"],
        typer.Option(help="auto: go on where the run stands. never: refuse a folder that holds a run."),
    ] = "auto",
    show: Annotated[
        int, typer.Option(metavar="K", min=0, help="Print the first K conversations at the end.")
    ] = 0,
    json: JsonOption = False,
) -> None:
    """Make the conversations that a job asks for, and write them as train and test shards.

    Started again, it goes on where it stopped and asks nothing twice.

    Example: edgen generate jobs/quickstart.yaml -n 50 --set limits.in_flight=8
    """
    overrides = list(set_ or [])
    if count is not None:
        overrides.append(f"conversations={count}")
    plan = load_plan(job, overrides)
    rundir = RunDir(output if output is not None else Path("outputs") / plan.job.name)
    if resume == "never" and rundir.exists:
        raise UsageError(
            f"{rundir.path}: a run is there already. Choose another folder with -o, "
            "or leave --resume never away to go on with it."
        )
    ended: EdgenError | None = None
    try:
        asyncio.run(_generate(plan, rundir))
    except EdgenError as error:
        ended = error
        if not (rundir.ledger.exists() and _is_report_worthy(error)):
            raise
    _report(rundir, json=json, show=show, finished=ended is None or isinstance(ended, ShortError))
    if ended is not None:
        raise ended


def _is_report_worthy(error: EdgenError) -> bool:
    """Whether the run itself got somewhere: then its state is printed as well as the error."""
    return error.exit_code in (3, 4, 5) or error.exit_code > 128


async def _generate(plan: Plan, rundir: RunDir) -> None:
    from edgen.backends import make
    from edgen.engine.run import Run
    from edgen.ledger import Ledger
    from edgen.protocols import PROTOCOL_ROLES

    limits = plan.job.limits
    _allow_connections(limits.in_flight)
    backends = {
        role: make(
            plan.job.backends[role],
            timeout=limits.timeout,
            connections=limits.in_flight,
            environ=os.environ,
        )
        for role in PROTOCOL_ROLES[plan.job.protocol]
    }
    try:
        rundir.prepare()
        with rundir.held():
            async with Ledger(rundir.ledger) as ledger:
                run = Run(plan, backends, rundir, ledger)
                run.adopt(note)
                await _execute(run)
    except OSError as problem:
        raise RunError(f"{rundir.path}: the run folder cannot be written ({problem.strerror}).") from None
    finally:
        for backend in backends.values():
            await backend.aclose()


def _allow_connections(in_flight: int) -> None:
    """See that the system lets us have a connection per call in flight."""
    import resource

    needed = in_flight + 64
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise UsageError(
            f"limits.in_flight is {in_flight}, but this system lets a process open {hard} files. "
            f"Lower it (--set limits.in_flight={max(1, hard - 64)}) or raise the limit (ulimit -n)."
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


async def _execute(run: Run) -> None:
    from edgen.engine.run import interrupted

    async with progress(run.tally, run.plan.job.name, lambda: run.driver.in_flight) as display:

        def on_signal(number: int) -> None:
            if run.driver.stopped is not None:
                run.driver.hurry()
                return
            if run.driver.in_flight:
                display.note(
                    f"Stopping: waiting for {run.driver.in_flight} calls in flight, so that what is paid for "
                    "is kept (once more: stop at once)."
                )
            run.driver.stop(interrupted(number))

        def on_finish() -> None:
            display.stage = "writing files"
            display.show()

        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, on_signal, number)
        try:
            await run.execute(on_finish)
        finally:
            display.stage = ""
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)


def _report(rundir: RunDir, *, json: bool, show: int, finished: bool) -> None:
    from edgen.ledger import run_status

    status = run_status(rundir.ledger)
    facts = status.as_json(str(rundir.path), held=False)
    if json:
        print_json(facts)
        return
    for line in status_lines(facts):
        print_line(line)
    if finished:
        print_line(f"data       {rundir.shards}")
        if show:
            _show(rundir, show)


def _show(rundir: RunDir, count: int) -> None:
    import msgspec

    manifest = msgspec.json.decode((rundir.shards / "manifest.json").read_bytes())
    shown = 0
    for file in manifest["files"]:
        if shown >= count:
            return
        for record in msgspec.json.decode((rundir.shards / file["path"]).read_bytes())[: count - shown]:
            shown += 1
            _print_record(record)


def _print_record(record: dict[str, Any]) -> None:
    print_line()
    print_line(f"{record['id']}{' (simulated)' if record['provenance']['simulated'] else ''}")
    for key, value in record["background_info"].items():
        print_line(f"  {key}: {value}")
    for turn in record["conversation"]:
        print_line(f"{turn['role']}: {turn['text']}")
    print_line(f"probability that the student understood: {record['probability']}")
