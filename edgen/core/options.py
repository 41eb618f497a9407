"""Options that are declared once, as fields of a struct.

A field's annotation holds the help text, the flags and the bounds. Commands get their flags from it
(`edgen.cli.options`), and Python callers pass the struct's fields by name.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec

Via = Literal["online", "batch"]


class CallMode(msgspec.Struct, frozen=True):
    """The way in which calls are made: singly or in batches, here or `on` a cluster.

    `on`: `ray`, `ray://ADDRESS` or `here`; None: as the job says. `workers`: their number, None for one a
    core."""

    via: Via = "online"
    on: str | None = None
    workers: int | None = None


def option(
    help_: str,
    *flags: str,
    metavar: str | None = None,
    completes: str | None = None,
    ge: float | None = None,
    le: float | None = None,
) -> msgspec.Meta:
    """Declare an option by its field's annotation.

    `help_`: its help text. `flags`: as typed, such as "--set"; without any, the field's name makes one.
    `metavar`: what stands for its value in help texts. `completes`: what a shell completes its value with:
    a function of `edgen.cli.complete`. `ge`, `le`: the lowest and the highest value.

    >>> from typing import Annotated
    >>> class Wishes(msgspec.Struct):
    ...     most: Annotated[int | None, option("Keep the N best.", metavar="N", ge=1)] = None
    """
    extra = {"flags": flags, "metavar": metavar, "completes": completes, "ge": ge, "le": le}
    return msgspec.Meta(description=help_, extra=extra)


# -- options of several commands

Overrides = Annotated[
    tuple[str, ...],
    option("Override a job key, as in --set limits.in_flight=8.", "--set", metavar="KEY=VALUE"),
]
CallVia = Annotated[
    Via,
    option(
        "How to call models. online: call by call. batch: by the provider's cheaper batch service.",
        "--via",
    ),
]
On = Annotated[
    str | None,
    option(
        "Run on a Ray cluster; without ADDRESS: on all cores here. `here`: in this process.  "
        "[default: the job's]",
        "--on",
        metavar="ray[://ADDRESS]",
    ),
]
Workers = Annotated[
    int | None,
    option(
        "Processes that share the work.  [default: the job's, else one per core]",
        "--workers",
        metavar="N",
        ge=1,
    ),
]
Processes = Annotated[
    int,
    option(
        "Processes that share the work.",
        "--workers",
        metavar="N",
        ge=1,
    ),
]
AllowOutside = Annotated[
    bool, option("Also read files that the job names outside its project.", "--allow-outside")
]
TrustHost = Annotated[
    tuple[str, ...],
    option(
        "Let the key in VAR (or any key of the job) go to HOST; see docs/trust.md.",
        "--trust-host",
        metavar="HOST[=VAR]",
    ),
]
TrustCode = Annotated[
    tuple[Path, ...],
    option("Run this Python file if the job names it under `measures`.", "--trust-code", metavar="FILE"),
]
OwnMeasures = Annotated[
    tuple[str, ...],
    option(
        "A Python function as a measure: ./mine.py:words.",
        "--measure",
        metavar="FILE:FUNCTION",
    ),
]
Sample = Annotated[
    int | None,
    option(
        "Use N conversations (of each arm).",
        "--sample",
        metavar="N",
        ge=1,
    ),
]
Agent = Annotated[
    str | None,
    option(
        "The role that answers users, where turns do not say.  [default: the space's first role]",
        "--agent",
        metavar="ROLE",
    ),
]
TurnsLeft = Annotated[
    int | None,
    option(
        "Leave out pairs with fewer than N turns after they part.",
        "--min-turns-left",
        metavar="N",
        ge=0,
    ),
]
People = Annotated[
    tuple[Path, ...],
    option("A file of people's votes or labels; the run keeps it.", "--people", metavar="FILE"),
]
RoleWords = Annotated[
    tuple[str, ...],
    option(
        "What the texts call a role, as in Teacher=Tutor; repeatable.",
        "--role",
        metavar="ROLE=WORD",
    ),
]


def backend(more: str, *, metavar: str = "[JOB:]ROLE") -> msgspec.Meta:
    """Declare the option --backend; `more` says what the backend does, and its default."""
    return option(
        f"The backend to ask: a role, or a job's role. {more}",
        "--backend",
        metavar=metavar,
        completes="backends",
    )


def template(default: str) -> msgspec.Meta:
    """Declare the option --prompt."""
    return option(
        f"The template: a shipped name, or a .j2 file.  [default: {default}]",
        "--prompt",
        metavar="NAME|FILE",
        completes="templates",
    )
