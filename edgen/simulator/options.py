"""Options of the simulator as a server, each declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from edgen.core.options import DrawSeed, LatencyMs, Port, declare_faults, declare_host, option


class ServerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a server."""

    host: Annotated[str, declare_host()] = "127.0.0.1"
    port: Port = 8377
    latency_ms: LatencyMs = 0.0
    faults: Annotated[str, declare_faults()] = ""
    """As in a job."""
    seed: DrawSeed = 0
    """It decides faults and answers."""
    batch_seconds: Annotated[
        float, option("Seconds that a batch takes.", metavar="SECONDS", ge=0, le=604_800)
    ] = 2.0
    """A batch's requests are answered evenly over it."""
    batch_window: Annotated[
        float, option("Seconds after which a batch expires.", metavar="SECONDS", ge=0.01, le=604_800)
    ] = 86_400.0
    allow_hosts: Annotated[
        tuple[str, ...],
        option("Also answer requests for this host name; repeatable.", "--allow-host", metavar="NAME"),
    ] = ()
    slots: Annotated[
        int | None, option("Concurrent calls; others wait.  [default: all]", metavar="N", ge=1)
    ] = None
    spaces: Annotated[
        tuple[Path, ...],
        option(
            "Use this space's values, too, if a prompt names them; repeatable.",
            "--knows",
            metavar="FILE",
        ),
    ] = ()
