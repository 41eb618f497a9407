"""How a command's work is bounded and watched: its deadline, its log, its metrics file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

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
    Literal["text", "json"],
    typer.Option("--log-format", help="What goes to stderr: lines for people, or one JSON event a line."),
]
MetricsOption = Annotated[
    Path | None,
    typer.Option("--metrics", metavar="FILE", help="Keep figures there in Prometheus' text format (*.prom)."),
]


@dataclass(frozen=True, slots=True)
class Watch:
    """As the options say."""

    until: str | None = None
    for_: str | None = None
    log_format: Literal["text", "json"] = "text"
    metrics: Path | None = None
