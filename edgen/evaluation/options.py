"""Options of measures and comparisons, each declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from edgen.core.options import (
    NamedRoles,
    On,
    Overrides,
    OwnMeasures,
    Processes,
    TrustCode,
    TrustHosts,
    declare_output,
    declare_template,
    option,
)


class StatsOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of measuring."""

    only: Annotated[
        tuple[str, ...] | None,
        option(
            "Compute only these measures, one or several; `edgen list measures` explains them.",
            metavar="MEASURE",
            completes="measures",
        ),
    ] = None
    """None for all. A text may hold several names with commas."""
    judge: Annotated[
        int | None,
        option(
            "Have the job's judge rate how well N conversations (of each arm) follow their "
            "scenarios; makes calls.",
            "--adherence",
            metavar="N",
        ),
    ] = None
    prompt: Annotated[str | None, declare_template("adherence_guarded")] = None
    own: OwnMeasures = ()
    workers: Processes = 1
    on: On = None
    """A cluster; None for this machine."""
    overrides: Overrides = ()
    """Keys of the job for the judge."""
    trust_hosts: TrustHosts = ()
    trust_code: TrustCode = ()


class CompareOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a comparison."""

    arms: Annotated[
        tuple[str, ...],
        option(
            "Compare only these arms; the first is the baseline. Put it after the runs.  [default: all]",
            metavar="A B…",
            completes="arms",
        ),
    ] = ()
    prompts: Annotated[bool, option("Show how the rendered prompts of the first scenario differ.")] = False
    roles: NamedRoles = None
    output: Annotated[
        Path | None,
        declare_output("FILE", "The result as JSON.  [default: RUN/comparisons/<a>-vs-<b>.json]"),
    ] = None
    own: OwnMeasures = ()
    trust_code: TrustCode = ()
