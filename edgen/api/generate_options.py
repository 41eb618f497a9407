"""Options of `edgen generate`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from edgen.core.options import Via


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerateOptions:
    """Options of generating."""

    output: Path | None = None  # the run's folder; None: outputs/<name>
    via: Via = "online"  # single calls or provider batches
    write_only: Path | None = None  # folder for request files if nothing may be sent
    part: range | None = None  # scenarios to make; None: all
    fresh: bool = False  # refuse a folder with a run
    on: str | None = None  # `ray` or `ray://ADDRESS` for a cluster, `here` for this process; None: the job's
    workers: int | None = None  # on the cluster; None: the job's
    partitions: int | None = None  # processes with a ledger each; None: the job's
