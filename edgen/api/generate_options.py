"""Options of `edgen generate`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from edgen.core.options import Via


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerateOptions:
    """Options of generating.

    `output` is the run's folder, outputs/<name> by default. `part`: the scenarios to make, None for all;
    `write_only`: the folder for request files if nothing may be sent; `fresh`: refuse a folder with a run;
    `on`: `ray` or `ray://ADDRESS` for a cluster with so many `workers`, `here` for this process, None: the
    job's. `partitions`: that many processes with a ledger each, None as the job says.
    """

    output: Path | None = None
    via: Via = "online"
    write_only: Path | None = None
    part: range | None = None
    fresh: bool = False
    on: str | None = None
    workers: int | None = None
    partitions: int | None = None
