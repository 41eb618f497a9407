"""`edgen generate`: the main job, from a job file to finished train and test shards."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from typer import Option

from edgen.cli import options as o
from edgen.cli.output import print_value
from edgen.cli.status import render_status

if TYPE_CHECKING:
    from edgen.api.generation import Generated

RunOption = Annotated[
    Path | None, Option("-o", metavar="RUN", help="The run's folder.  [default: outputs/<name>]")
]
ResumeOption = Annotated[
    Literal["auto", "never"],
    Option("--resume", help="auto: go on where the run stands. never: refuse a folder that holds a run."),
]
ShowOption = Annotated[
    int, Option("--show", metavar="K", min=0, help="Print the first K conversations at the end.")
]
WriteOnlyOption = Annotated[
    Path | None,
    Option(
        "--write-only",
        metavar="DIR",
        help="With --via batch: write the request files there and send nothing; see `edgen batch read`.",
    ),
]
RangeOption = Annotated[
    str | None,
    Option("--range", metavar="A:B", help="Only scenarios A to B - 1; `edgen merge` puts pieces together."),
]
YesOption = Annotated[
    bool, Option("--yes", help="Go on even if finished files become fewer or answers are paid for again.")
]


def command(
    job: o.JobArgument,
    output: RunOption = None,
    count: o.CountOption = None,
    set_: o.SetOption = None,
    trust_host: o.TrustOption = None,
    allow_outside: o.OutsideOption = False,
    resume: ResumeOption = "auto",
    show: ShowOption = 0,
    via: o.ViaOption = "online",
    write_only: WriteOnlyOption = None,
    part: RangeOption = None,
    yes: YesOption = False,
    until: o.UntilOption = None,
    for_: o.ForOption = None,
    log_format: o.LogFormatOption = "text",
    metrics: o.MetricsOption = None,
    json: o.JsonOption = False,
) -> None:
    """Make the conversations that a job asks for, and write them as train and test shards.

    Started again, it goes on where it stopped and asks nothing twice.

    Example: edgen generate jobs/quickstart.yaml -n 50 --set limits.in_flight=8
    """
    from edgen.cli.control import make_control

    control = make_control(
        trust_host=trust_host, yes=yes, until=until, for_=for_, log_format=log_format, metrics=metrics
    )
    from edgen.api.generation import GenerateOptions, JobSource, generate

    options = GenerateOptions(
        output=output, via=via, write_only=write_only, part=o.read_range(part), fresh=resume == "never"
    )
    source = JobSource.of(job, o.read_overrides(set_, count), allow_outside=allow_outside)
    made = asyncio.run(generate(source, options, control))
    try:
        print_value(made.status, _render(made, show), json=json)
    finally:
        if made.ended is not None:
            raise made.ended


def _render(made: Generated, show: int) -> Iterator[str]:
    """How the run stands, its files, and the first `show` conversations of each arm."""
    yield from render_status(made.status)
    for arm in made.files:
        if arm.arm:
            yield f"arm        {arm.arm}"
        counts = arm.manifest.counts
        yield f"split      {counts.train} train, {counts.test} test"
        yield f"data       {arm.folder}"
        files = (msgspec.json.decode((arm.folder / file.path).read_bytes()) for file in arm.manifest.files)
        for record in islice(chain.from_iterable(files), show):
            yield from _render_record(record)


def _render_record(record: dict[str, Any]) -> Iterator[str]:
    yield ""
    yield f"{record['id']}{' (simulated)' if record['provenance']['simulated'] else ''}"
    for key, value in {**record.get("background_info", {}), **record.get("scenario", {})}.items():
        yield f"  {key}: {_describe_value(value)}"
    for turn in record["conversation"]:
        yield f"{turn['role']}: {turn['text']}"
    if "probability" in record:
        yield f"probability that the student understood: {record['probability']}"


def _describe_value(value: Any) -> str:
    """A value of a scenario, with what its entry says of itself behind it."""
    if not isinstance(value, dict):
        return str(value)
    fields = ", ".join(f"{name}: {said}" for name, said in value.items() if name != "value")
    return f"{value.get('value')} ({fields})" if fields else str(value.get("value"))
