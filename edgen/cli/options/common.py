"""Arguments and options that several commands share, each said once."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

import typer

from edgen.core.errors import UsageError

Via = Literal["online", "batch"]
LogFormat = Literal["text", "json"]

# -- what a command is about

JobArgument = Annotated[Path, typer.Argument(metavar="JOB", help="The job file (YAML).", show_default=False)]
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.", show_default=False)]
SpaceArgument = Annotated[
    str, typer.Argument(metavar="SPACE", help="A shipped space's name, or a file.", show_default=False)
]

# -- how it prints

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]

# -- the job, and what it may use

SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a job key, as in --set limits.in_flight=8."),
]
CountOption = Annotated[
    int | None, typer.Option("-n", metavar="N", min=1, help="Conversations, instead of the job's number.")
]
TrustOption = Annotated[
    list[str] | None,
    typer.Option(
        "--trust-host",
        metavar="HOST[=VAR]",
        help="Let the key in VAR (without VAR: in whichever the job names) go to HOST; see docs/trust.md.",
    ),
]
OutsideOption = Annotated[
    bool, typer.Option("--allow-outside", help="Read files that the job names outside its project, too.")
]

# -- how the work is done

RunOption = Annotated[
    Path | None, typer.Option("-o", metavar="RUN", help="The run's folder.  [default: outputs/<name>]")
]
ResumeOption = Annotated[
    Literal["auto", "never"],
    typer.Option(
        "--resume", help="auto: go on where the run stands. never: refuse a folder that holds a run."
    ),
]
ShowOption = Annotated[
    int, typer.Option("--show", metavar="K", min=0, help="Print the first K conversations at the end.")
]
ViaOption = Annotated[
    Via, typer.Option("--via", help="online: call by call. batch: by the provider's batch service, cheaper.")
]
WriteOnlyOption = Annotated[
    Path | None,
    typer.Option(
        "--write-only",
        metavar="DIR",
        help="With --via batch: write the request files there and send nothing; see `edgen batch read`.",
    ),
]
RangeOption = Annotated[
    str | None,
    typer.Option(
        "--range", metavar="A:B", help="Only scenarios A to B - 1; `edgen merge` puts pieces together."
    ),
]
YesOption = Annotated[
    bool,
    typer.Option("--yes", help="Go on even if finished files become fewer or answers are paid for again."),
]
UntilOption = Annotated[
    str | None,
    typer.Option(
        "--until", metavar="HH:MM", help="Stop cleanly at that time, local; exit code 4, resumable."
    ),
]
ForOption = Annotated[
    str | None,
    typer.Option("--for", metavar="SPAN", help="Stop cleanly after that long, as in 3h or 45m; exit code 4."),
]
LogFormatOption = Annotated[
    LogFormat,
    typer.Option("--log-format", help="What goes to stderr: lines for people, or one JSON event a line."),
]
MetricsOption = Annotated[
    Path | None,
    typer.Option("--metrics", metavar="FILE", help="Keep figures there in Prometheus' text format (*.prom)."),
]


def read_overrides(set_: list[str] | None, count: int | None = None) -> tuple[str, ...]:
    """What `--set` and `-n` say."""
    return (*(set_ or ()), *(() if count is None else (f"conversations={count}",)))


def read_range(text: str | None) -> range | None:
    """`A:B` as a range of scenarios."""
    if text is None:
        return None
    found = re.fullmatch(r"([0-9]{1,13}):([0-9]{1,13})", text.strip())
    if found is None or int(found[1]) >= int(found[2]):
        raise UsageError(f"--range {text}: expected A:B with A below B, as in --range 0:10000.")
    return range(int(found[1]), int(found[2]))
