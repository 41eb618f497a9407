"""Options of an estimate, each declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from edgen.core.options import (
    AllowOutside,
    CallVia,
    Conversations,
    Overrides,
    Scenarios,
    Share,
    change_job,
    declare_output,
    option,
)


class EstimateOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of an estimate."""

    conversations: Conversations | None = None  # None for the job's
    overrides: Overrides = ()  # further keys of the job
    allow_outside: AllowOutside = False
    scenarios: Scenarios = None  # None for all
    via: CallVia = "online"
    runs: Annotated[Path, option("The folder of earlier runs, and of the job's own.", metavar="DIR")] = Path(
        "outputs"
    )
    output: Annotated[
        Path | None,
        declare_output(
            "RUN", "The job's own run; its stored answers are not counted.  [default: DIR/<name>]"
        ),
    ] = None
    passing: Annotated[
        Share | None,
        option(
            "Share of conversations that pass the job's gates.  [default: as in earlier runs]",
            "--pass-rate",
            metavar="SHARE",
        ),
    ] = None

    changes = property(change_job)
