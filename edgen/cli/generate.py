"""`edgen generate`: the main job, from a job file to finished train and test shards."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import typer

from edgen.cli.making import Manner, make
from edgen.cli.options import (
    JobArgument,
    JsonOption,
    OutsideOption,
    SetOption,
    TrustOption,
    Via,
    ViaOption,
    YesOption,
    scenario_range,
)
from edgen.cli.output import note, print_json, print_line
from edgen.cli.status import facts_of, status_lines
from edgen.cli.trusting import Trust
from edgen.cli.watch import ForOption, LogFormatOption, MetricsOption, UntilOption, Watch
from edgen.errors import EdgenError, ShortError, UsageError
from edgen.rundir import RunDir
from edgen.shards import read_manifest, strays

if TYPE_CHECKING:
    from edgen.engine.plan import Plan
    from edgen.engine.reach import Reach
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
    trust_host: TrustOption = None,
    allow_outside: OutsideOption = False,
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
    yes: YesOption = False,
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
    watch, trust = Watch(until, for_, log_format, metrics), Trust(trust_host)
    manner = _manner(via, write_only, part, yes, watch, trust)
    overrides = list(set_ or [])
    if count is not None:
        overrides.append(f"conversations={count}")
    from edgen.engine.reach import Reach

    reach = Reach.of(job, overrides, outside=allow_outside)
    _generate(job, overrides, reach, output, manner, fresh=resume == "never", show=show, json=json)


def _manner(
    via: Via, write_only: Path | None, part: str | None, yes: bool, watch: Watch, trust: Trust
) -> Manner:
    """How the work is to be done. Raises UsageError for options that do not go together."""
    if write_only is not None and via != "batch":
        raise UsageError("--write-only writes batch files; it goes with --via batch.")
    if write_only is not None and write_only.exists() and not write_only.is_dir():
        raise UsageError(f"--write-only {write_only}: this is no folder; name one for the request files.")
    return Manner(via, write_only, scenario_range(part), yes, watch, trust)


def _generate(
    job: Path,
    overrides: list[str],
    reach: Reach,
    output: Path | None,
    manner: Manner,
    *,
    fresh: bool,
    show: int,
    json: bool,
) -> None:
    """Make it, and print how it stands, whatever the end was. `fresh`: not where a run is."""
    from edgen.engine.load import load_plans
    from edgen.engine.run import check_part

    whole, plans = load_plans(job, overrides, reach)
    check_part(whole, manner.part)
    manner.watch.begin(whole.name)
    rundir = RunDir(output if output is not None else Path("outputs") / whole.name)
    rundir.refuse_links()
    if fresh and rundir.exists:
        raise UsageError(
            f"{rundir.path}: a run is there already. Choose another folder with -o, "
            "or leave --resume never out to go on with it."
        )
    ended: EdgenError | None = None
    tallies: Tallies = {}
    try:
        asyncio.run(make(whole, reach, plans, rundir, tallies, manner))
    except EdgenError as error:
        ended = error
        if not (rundir.begun and _is_report_worthy(error)):
            raise
    if ended is None:
        for arm, plan in plans.items():
            _remark_on_split(plan, rundir.of(arm))
            _remark_on_strays(rundir.of(arm).shards)
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


def _remark_on_strays(shards: Path) -> None:
    """Say so where files that are none of the run's lie among its shards."""
    if names := strays(shards):
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        note(
            f"edgen: {shards}: {shown}: not in the manifest, so no part of this data set; left as it is. "
            "Whatever loads the folder's files by a pattern would load that too: move it elsewhere."
        )


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
    for key, value in {**record["background_info"], **record.get("scenario", {})}.items():
        print_line(f"  {key}: {value}")
    for turn in record["conversation"]:
        print_line(f"{turn['role']}: {turn['text']}")
    print_line(f"probability that the student understood: {record['probability']}")
