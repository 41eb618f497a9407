"""Options of how a command works: deadlines, trusted hosts, logs, metrics, notifications."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from edgen.core.options import TrustHosts, option

LogFormat = Literal["text", "json"]


class WorkOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of every command that calls models for a while."""

    trust_hosts: TrustHosts = ()  # hosts that keys may go to
    until: Annotated[
        str | None, option("Stop at this local time; exit code 4, resumable.", metavar="HH:MM")
    ] = None
    span: Annotated[
        str | None,
        option(
            "Stop after this span, as in 3h or 45m; exit code 4, resumable.",
            "--for",
            metavar="SPAN",
        ),
    ] = None
    log_format: Annotated[LogFormat, option("Format of stderr: text, or a JSON event per line.")] = "text"
    metrics: Annotated[Path | None, option("Keep Prometheus metrics in FILE (*.prom).", metavar="FILE")] = (
        None
    )
    notify: Annotated[
        str | None,
        option(
            "At the end, send the status as JSON to a command or an https address.",
            metavar="CMD|URL",
        ),
    ] = None
