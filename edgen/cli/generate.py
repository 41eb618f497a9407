"""`edgen generate`: the main job, from a job file to finished train and test shards."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import typer

from edgen.cli.load import JobArgument, JsonOption, SetOption, load_plan
from edgen.cli.output import note, print_json, print_line
from edgen.cli.progress import progress
from edgen.cli.status import status_lines
from edgen.errors import EdgenError, RunError, ShortError, StoppedError, UsageError
from edgen.ledger import run_status
from edgen.rundir import RunDir
from edgen.shards import read_manifest

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
    if ended is None:
        _remark_on_split(plan, rundir)
    try:
        _report(rundir, json=json, show=show, finished=ended is None or isinstance(ended, ShortError))
    finally:
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
            async with Ledger(rundir.ledger, create=not rundir.job.exists()) as ledger:
                run = Run(plan, backends, rundir, ledger)
                run.adopt(note)
                await _execute(run)
    except OSError as problem:
        if problem.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise StoppedError(
                f"{rundir.path}: there is no room left on the disk ({problem.strerror}). "
                "Make room and start the same command again."
            ) from None
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

    async with progress(run.tally, run.plan.job.name, run.driver) as display:

        def on_signal(number: int) -> None:
            if run.driver.stopped is not None:
                run.driver.hurry()
                return
            running = run.driver.in_flight
            run.driver.stop(interrupted(number))
            if running:
                display.note(
                    f"Stopping: waiting for {running} calls in flight, so that what is paid for is kept "
                    "(once more: stop at once)."
                )

        def on_finish() -> None:
            display.stage = "writing files"
            display.refresh()

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
    status = run_status(rundir.ledger)
    facts = status.as_json(str(rundir.path), held=False)
    if json:
        print_json(facts)
        return
    for line in status_lines(facts):
        print_line(line)
    if finished:
        manifest = read_manifest(rundir.shards)
        counts = manifest.counts
        print_line(f"split      {counts.train} train, {counts.test} test")
        print_line(f"data       {rundir.shards}")
        for record in _first_records(rundir, [file.path for file in manifest.files], show):
            _print_record(record)


def _first_records(rundir: RunDir, names: list[str], count: int) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    for name in names:
        if len(records) < count:
            records += msgspec.json.decode((rundir.shards / name).read_bytes())[: count - len(records)]
    return records


def _remark_on_split(plan: Plan, rundir: RunDir) -> None:
    """Say so where whole groups do not allow the share of test conversations that was asked for."""
    counts, asked = read_manifest(rundir.shards).counts, plan.job.split.test
    total = counts.train + counts.test
    if total and abs(counts.test - asked * total) > max(1.0, 0.01 * total):
        note(
            f"edgen: the test side has {counts.test} of {total} conversations, not the {asked:.0%} asked for: "
            f"no group (split.by: {plan.job.split.by}) is divided, and whole groups come no closer."
        )


def _print_record(record: dict[str, Any]) -> None:
    print_line()
    print_line(f"{record['id']}{' (simulated)' if record['provenance']['simulated'] else ''}")
    for key, value in record["background_info"].items():
        print_line(f"  {key}: {value}")
    for turn in record["conversation"]:
        print_line(f"{turn['role']}: {turn['text']}")
    print_line(f"probability that the student understood: {record['probability']}")
