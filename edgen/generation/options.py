"""Options of `edgen generate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from edgen.core.options import CallVia, On, Workers, option


class GenerateOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of generating."""

    output: Path | None = None
    """The run's folder; None for outputs/<name>."""
    part: range | None = None
    """The scenarios to make; None for all."""
    fresh: bool = False
    """Refuse a folder with a run."""
    via: CallVia = "online"  # single calls or provider batches
    write_only: Annotated[
        Path | None,
        option(
            "With --via batch: only write request files, for `edgen batch read`.",
            metavar="DIR",
        ),
    ] = None
    on: On = None  # a cluster; None: the job's
    workers: Workers = None  # on the cluster; None: the job's
    partitions: Annotated[
        int | None,
        option(
            "Make the run in P processes with a ledger each.  [default: the job's, else none]",
            metavar="P",
            ge=1,
        ),
    ] = None
