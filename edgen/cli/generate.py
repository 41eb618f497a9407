"""`edgen generate`: the main job, from a job file to finished train and test shards."""

from __future__ import annotations

import asyncio
import contextlib
import os
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import typer

from edgen.cli.options import JobArgument, JsonOption, SetOption, Via, ViaOption, scenario_range
from edgen.cli.output import note, print_json, print_line
from edgen.cli.status import facts_of, status_lines
from edgen.cli.watch import ForOption, LogFormatOption, MetricsOption, UntilOption, Watch
from edgen.cli.work import batch_way, made_backends, supervised, used_elsewhere, worded
from edgen.errors import EdgenError, ProviderError, ShortError, UsageError
from edgen.rundir import RunDir
from edgen.shards import read_manifest

if TYPE_CHECKING:
    from edgen.backends import Backend
    from edgen.cli.progress import Display
    from edgen.config import Job
    from edgen.engine.plan import Plan
    from edgen.engine.tally import Tally

    Plans = dict[str | None, Plan]
    Tallies = dict[str | None, Tally]


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
    via: ViaOption = "online",
    write_only: Annotated[
        Path | None,
        typer.Option(
            "--write-only",
            metavar="DIR",
            help="With --via batch: write the request files there and send nothing; see `edgen batch read`.",
        ),
    ] = None,
    part: Annotated[
        str | None,
        typer.Option(
            "--range", metavar="A:B", help="Only scenarios A to B - 1; `edgen merge` puts pieces together."
        ),
    ] = None,
    until: UntilOption = None,
    for_: ForOption = None,
    log_format: LogFormatOption = "text",
    metrics: MetricsOption = None,
    json: JsonOption = False,
) -> None:
    """Make the conversations that a job asks for, and write them as train and test shards.

    Started again, it goes on where it stopped and asks nothing twice.

    Example: edgen generate jobs/quickstart.yaml -n 50 --set limits.in_flight=8
    """
    overrides = list(set_ or [])
    if count is not None:
        overrides.append(f"conversations={count}")
    watch = Watch(until, for_, log_format, metrics)
    from edgen.engine.load import load_plans
    from edgen.engine.run import check_part

    manner = Manner(via, write_only, scenario_range(part), watch)
    if write_only is not None and via != "batch":
        raise UsageError("--write-only writes batch files; it goes with --via batch.")
    whole, plans = load_plans(job, overrides)
    check_part(whole, manner.part)
    manner.watch.begin(whole.name)
    rundir = RunDir(output if output is not None else Path("outputs") / whole.name)
    if resume == "never" and rundir.exists:
        raise UsageError(
            f"{rundir.path}: a run is there already. Choose another folder with -o, "
            "or leave --resume never away to go on with it."
        )
    ended: EdgenError | None = None
    tallies: Tallies = {}
    try:
        asyncio.run(_generate(whole, job.parent, plans, rundir, tallies, manner))
    except EdgenError as error:
        ended = error
        if not (rundir.begun and _is_report_worthy(error)):
            raise
    if ended is None:
        for arm, plan in plans.items():
            _remark_on_split(plan, rundir.of(arm))
    try:
        facts = _with_calls_now(facts_of(rundir, held=False), tallies)
        if json:
            print_json(facts)
        else:
            _print(facts, rundir, plans, show, finished=ended is None or isinstance(ended, ShortError))
    finally:
        if ended is not None:
            raise ended


def _is_report_worthy(error: EdgenError) -> bool:
    """Whether the run itself got somewhere: then its state is printed as well as the error."""
    return error.exit_code in (0, 3, 4, 5) or error.exit_code > 128


def _with_calls_now(facts: dict[str, Any], tallies: Tallies) -> dict[str, Any]:
    """The run's facts, with the calls that were made by this start beside those of all: an arm's for each."""
    made = {arm: tally.made for arm, tally in tallies.items()}
    facts["calls"]["now"] = sum(made.values())
    for arm, own in facts.get("arms", {}).items():
        if own is not None:
            own["calls"]["now"] = made.get(arm, 0)
    return facts


@dataclass(frozen=True, slots=True)
class Manner:
    """How the work is to be done. `part`: the scenarios that are to be made, None for all."""

    via: Via
    write_only: Path | None
    part: range | None
    watch: Watch


async def _generate(
    whole: Job, base: Path, plans: Plans, rundir: RunDir, tallies: Tallies, manner: Manner
) -> None:
    """Make what the plans say: one, or one for each arm, arm after arm. Paths in the job start at `base`;
    `tallies` is filled with what is counted meanwhile."""
    async with contextlib.AsyncExitStack() as stack:
        # All of them before anything is written: a missing key leaves no folder behind.
        backends = await _all_backends(plans, rundir, manner, stack)
        with worded(rundir.path):
            rundir.prepare(arms=bool(whole.arms))
            with rundir.held() as dead:
                if dead is not None:
                    note(f"edgen: {dead} ended without saying so; its run is gone on with.")
                if whole.arms:
                    await _make_arms(whole, base, plans, backends, rundir, tallies, manner)
                else:
                    await _make(plans[None], backends[None], rundir, tallies, manner)


async def _all_backends(
    plans: Plans, rundir: RunDir, manner: Manner, stack: contextlib.AsyncExitStack
) -> dict[str | None, dict[str, Backend]]:
    """The backends of each arm. A run that is finished asks nothing, so it needs no key."""
    try:
        return {arm: await stack.enter_async_context(_backends(plan)) for arm, plan in plans.items()}
    except ProviderError:
        if manner.via != "online" or manner.part is not None:
            raise
        keyless = {
            arm: await stack.enter_async_context(_backends(plan, keyless=True)) for arm, plan in plans.items()
        }
        if all(_is_finished(plan, keyless[arm], rundir.of(arm)) for arm, plan in plans.items()):
            return keyless
        raise


def _backends(plan: Plan, *, keyless: bool = False) -> AbstractAsyncContextManager[dict[str, Backend]]:
    """A plan's backends; `keyless`: with something else for their keys, for who they are alone."""
    from edgen.config import backend_name

    job = plan.job
    configs = {name: job.backends[name] for name in sorted({backend_name(job, role) for role in plan.roles})}
    environ = dict(os.environ)
    if keyless:
        named = (getattr(config, "api_key_env", None) for config in configs.values())
        environ |= {name or "GEMINI_API_KEY": "none" for name in named}
    return made_backends(configs, job.limits, environ)


def _is_finished(plan: Plan, backends: dict[str, Backend], rundir: RunDir) -> bool:
    """Whether all that the plan asks for was made there, under this very form of the job."""
    from edgen.config import backend_name
    from edgen.ledger import run_status

    if not rundir.ledger.exists():
        return False
    job, status = plan.job, run_status(rundir.ledger)
    identities = {role: backends[backend_name(job, role)].identity for role in plan.roles}
    return (
        status.plan.fingerprint == plan.fingerprint(identities)
        and status.state(held=False) == "complete"
        and status.plan.of is None
        and status.plan.asked == job.conversations * job.replicates
        and not status.failed
    )


async def _make(
    plan: Plan, backends: dict[str, Backend], rundir: RunDir, tallies: Tallies, manner: Manner
) -> None:
    """One run in its folder."""
    from edgen.engine.run import Run
    from edgen.ledger import Ledger

    async with (
        batch_way(plan.job, backends, manner.via, manner.write_only) as way,
        Ledger(rundir.ledger, create=not rundir.job.exists()) as ledger,
    ):
        elsewhere = used_elsewhere(rundir, rundir.ledger)
        run = Run(plan, backends, rundir, ledger, elsewhere, way=way, part=manner.part)
        tallies[None] = run.tally
        run.adopt(note)

        async def work(display: Display) -> None:
            await run.execute(lambda: display.say("writing files"))

        await supervised(run.session, plan.job.name, work, _WORDS, manner.watch)


_WORDS = ("accepted", "rejected")


async def _make_arms(
    whole: Job,
    base: Path,
    plans: Plans,
    backends: dict[str | None, dict[str, Backend]],
    rundir: RunDir,
    tallies: Tallies,
    manner: Manner,
) -> None:
    """Arm after arm, each a run; then their files, with one test side for all of them. An arm that falls
    short does not keep the others from being made."""
    from edgen.engine.finish import common_side
    from edgen.engine.load import kept
    from edgen.engine.run import Run
    from edgen.ledger import Ledger

    rundir.numbered_arms(arm for arm in plans if arm is not None)
    rundir.write_job(*kept(whole, base))
    async with contextlib.AsyncExitStack() as stack:
        runs: dict[str | None, tuple[Run, contextlib.AsyncExitStack]] = {}
        for arm, plan in plans.items():
            own = rundir.of(arm)
            own.prepare()
            stack.enter_context(own.held())
            ledger = await stack.enter_async_context(Ledger(own.ledger, create=not own.job.exists()))
            # What the arms before it have used of the budget is counted when its own begins.
            way = await stack.enter_async_context(
                batch_way(plan.job, backends[arm], manner.via, manner.write_only)
            )
            elsewhere = used_elsewhere(rundir, own.ledger)
            run = Run(plan, backends[arm], own, ledger, elsewhere, way=way, part=manner.part)
            tallies[arm] = run.tally
            run.adopt(note)
            # Its session ends with its own files, so that what it notes is about itself; else with the others.
            noted = await stack.enter_async_context(contextlib.AsyncExitStack())
            await noted.enter_async_context(run.session.noted())
            runs[arm] = run, noted

            async def drive(_display: Display, run: Run = run) -> None:
                await run.drive()

            await supervised(run.session, plan.job.name, drive, _WORDS, manner.watch)

        async def write(display: Display) -> None:
            display.say("writing files")
            side = common_side([run.groups for run, _ in runs.values()], whole.split.test)
            short = []
            for arm, (run, noted) in runs.items():
                try:
                    async with noted:
                        await run.write(side)
                except ShortError as error:
                    short.append(f"{arm}: {error}")
            if short:
                raise ShortError(" ".join(short))

        await supervised(run.session, plan.job.name, write, _WORDS, manner.watch)


def _print(facts: dict[str, Any], rundir: RunDir, plans: Plans, show: int, *, finished: bool) -> None:
    for line in status_lines(facts):
        print_line(line)
    for arm in plans if finished else ():
        own = rundir.of(arm)
        manifest = read_manifest(own.shards)
        counts = manifest.counts
        if arm is not None:
            print_line(f"arm        {arm}")
        print_line(f"split      {counts.train} train, {counts.test} test")
        print_line(f"data       {own.shards}")
        for record in _first_records(own, [file.path for file in manifest.files], show):
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
