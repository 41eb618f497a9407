"""Options of `edgen generate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from edgen.core.options import (
    AllowOutside,
    CallVia,
    Conversations,
    On,
    Overrides,
    Partitions,
    Scenarios,
    TrustCode,
    Workers,
    Yes,
    change_job,
    declare_output,
    option,
)


class GenerateOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of generating."""

    output: Annotated[Path | None, declare_output("RUN", "The run's folder.  [default: outputs/<name>]")] = (
        None
    )
    conversations: Conversations | None = None  # None for the job's
    overrides: Overrides = ()  # further keys of the job
    allow_outside: AllowOutside = False  # also read files that the job names outside its project
    resume: Annotated[
        Literal["auto", "never"],
        option("What to do if the run exists. auto: resume it. never: refuse it."),
    ] = "auto"
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
    partitions: Partitions = None  # None: the job's
    scenarios: Scenarios = None  # None for all
    trust_code: TrustCode = ()  # files of measures that may run
    yes: Yes = False  # agree to everything that is undone or paid for again

    changes = property(change_job)
