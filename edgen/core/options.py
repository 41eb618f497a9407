"""Options that are declared once, as fields of a struct.

A field's annotation holds the help text, the flags and the bounds. Commands get their flags from it
(`edgen.cli.options`). Python callers pass the struct's fields by name. A key of the job that is also an
option takes its type and its sentence from it.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import msgspec

Via = Literal["online", "batch"]


class CallMode(msgspec.Struct, frozen=True):
    """The way in which calls are made: singly or in batches, here or `on` a cluster.

    `on`: `ray`, `ray://ADDRESS` or `here`; None: as the job says. `workers`: the number of workers; None: one
    per core."""

    via: Via = "online"
    on: str | None = None
    workers: int | None = None


class Wording(NamedTuple):
    """The words of an option that domains decide."""

    help: str  # the help text
    flags: tuple[str, ...]  # as typed
    hidden: bool = False  # whether help leaves it out


def option(
    help_: str,
    *flags: str,
    metavar: str | None = None,
    completes: str | None = None,
    reads: str | None = None,
    ge: float | None = None,
    le: float | None = None,
    hidden: bool = False,
    worded_by: Callable[[], Wording] | None = None,
) -> msgspec.Meta:
    """Declare an option by its field's annotation.

    `help_`: its help text. `flags`: as typed, such as "--set"; without any, the field's name makes one.
    `metavar`: the placeholder of its value in help texts. `completes`: the source of shell completions, a
    function of `edgen.cli.complete` or a kind of folders that a domain declares. `reads`: the function of
    `edgen.cli.readers` that reads its words. `ge`, `le`: the lowest and the highest value on the command
    line; the bounds of the field's type hold everywhere. `hidden`: help leaves it out. `worded_by`: returns
    the help text and the flags to use instead, when a command needs them.

    >>> from typing import Annotated
    >>> class Wishes(msgspec.Struct):
    ...     most: Annotated[int | None, option("Keep the N best.", metavar="N", ge=1)] = None
    """
    declared = DeclaredOption(help_, flags, metavar, completes, reads, ge, le, hidden, worded_by)
    return msgspec.Meta(description=help_, extra={"option": declared})


class DeclaredOption(NamedTuple):
    """An option as a field's annotation declares it."""

    help: str  # the help text, with its default
    flags: tuple[str, ...] = ()  # as typed; empty for the field's name
    metavar: str | None = None  # stands for the value
    completes: str | None = None  # a function of `edgen.cli.complete`, or a kind of folders
    reads: str | None = None  # a function of `edgen.cli.readers`
    low: float | None = None  # lowest value
    high: float | None = None  # highest value
    hidden: bool = False  # whether help leaves it out
    worded_by: Callable[[], Wording] | None = None  # returns the words to use instead

    @property
    def sentence(self) -> str:
        """The help text without the default of the command line."""
        return self.help.partition("  [default:")[0]


def find_option(hint: Any) -> DeclaredOption | None:
    """Return the option that a type declares, itself or as one of several types; None if it declares none."""
    found = low = high = None
    for meta in _list_metas(hint):
        if meta.description is not None:
            found = (meta.extra or {}).get("option") or DeclaredOption(meta.description)
        low = low if meta.ge is None else meta.ge
        high = high if meta.le is None else meta.le
    if found is None:
        return None
    if found.worded_by is not None:
        found = found._replace(**found.worded_by()._asdict())
    return found._replace(
        low=low if found.low is None else found.low, high=high if found.high is None else found.high
    )


def _list_metas(hint: Any) -> list[msgspec.Meta]:
    """Return the metadata of a type, and of the types that it wraps or unites."""
    own = [one for one in getattr(hint, "__metadata__", ()) if isinstance(one, msgspec.Meta)]
    inner = (
        get_args(hint)[:1] if own else get_args(hint) if get_origin(hint) in (Union, types.UnionType) else ()
    )
    return [*own, *(meta for one in inner for meta in _list_metas(one))]


Positive = Annotated[int, msgspec.Meta(ge=1)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]

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
On = (
    Annotated[
        str,
        msgspec.Meta(pattern=r"^(here|ray|ray://[^/\s]+)\Z"),
        option(
            "Run on a Ray cluster; without ADDRESS: on all cores here. `here`: in this process.  "
            "[default: the job's]",
            "--on",
            metavar="ray[://ADDRESS]",
        ),
    ]
    | None
)


def _declare_workers(default: str = "") -> msgspec.Meta:
    return option(
        f"Processes that share the work, of a cluster where --on names one.{default}",
        "--workers",
        metavar="N",
    )


Workers = Annotated[Positive, _declare_workers("  [default: the job's, else one a core]")] | None
Processes = Annotated[Positive, _declare_workers()]
Partitions = (
    Annotated[
        Positive,
        option(
            "Make the run in P processes with a ledger each, merged at the end.  [default: the job's, else "
            "none]",
            "--partitions",
            metavar="P",
        ),
    ]
    | None
)


def declare_conversations(default: str = "") -> msgspec.Meta:
    """Declare the option -n; `default` describes the default of a command without one."""
    return option(f"Number of conversations.{default}", "-n", metavar="N")


Conversations = Annotated[Positive, declare_conversations("  [default: the job's]")]
Scenarios = (
    Annotated[
        range,
        option(
            "Only scenarios A to B - 1. `edgen merge` puts such pieces together.",
            "--range",
            metavar="A:B",
            reads="read_scenarios",
        ),
    ]
    | None
)
AllowOutside = Annotated[
    bool, option("Also read files that the job names outside its project.", "--allow-outside")
]
TrustHosts = Annotated[
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
Sample = (
    Annotated[
        Positive,
        option("Use N conversations (of each arm).", "--sample", metavar="N"),
    ]
    | None
)
Agent = Annotated[
    str | None,
    option(
        "The role that answers users, where turns do not say.  [default: the space's first role]",
        "--agent",
        metavar="ROLE",
    ),
]
TurnsLeft = (
    Annotated[
        int,
        msgspec.Meta(ge=0),
        option(
            "Leave out pairs with fewer than N turns after they part.",
            "--min-turns-left",
            metavar="N",
        ),
    ]
    | None
)
MinMargin = Annotated[Share, option("Leave out pairs less clear than M.", "--min-margin", metavar="M")]
MaxPerScenario = (
    Annotated[
        Positive,
        option("Keep the N clearest pairs per scenario.", "--max-per-scenario", metavar="N"),
    ]
    | None
)
Rollouts = (
    Annotated[
        int,
        msgspec.Meta(ge=1, le=1000),
        option(
            "Continue K times from each response, and label by the mean.  [default: 4 with --credit "
            "rollouts]",
            "--rollouts",
            metavar="K",
        ),
    ]
    | None
)
Annotators = Annotated[
    Positive,
    option("Annotators of each backend, each with its own seed.", "--annotators", metavar="N"),
]
Together = Annotated[bool, option("Label all turns of a conversation in one request.", "--together")]
People = Annotated[
    tuple[Path, ...],
    option("A file of people's votes or labels; the run keeps it.", "--people", metavar="FILE"),
]


def _declare_roles(reads: str | None = None) -> msgspec.Meta:
    return option(
        "The word for a role in the texts, as in Teacher=Tutor; repeatable.",
        "--role",
        metavar="ROLE=WORD",
        reads=reads,
    )


RoleWords = Annotated[tuple[str, ...], _declare_roles()]
NamedRoles = Annotated[Mapping[str, str] | None, _declare_roles("read_roles")]
"""Roles by their words in the texts."""
Port = Annotated[
    int, msgspec.Meta(ge=0, le=65535), option("Port to listen on; 0 takes a free one.", "--port", metavar="N")
]
LatencyMs = Annotated[
    float,
    msgspec.Meta(ge=0, le=600_000),
    option("Milliseconds before each answer.", "--latency-ms", metavar="MS"),
]
Yes = Annotated[bool, option("Answer yes: replace finished files, or pay again for answers.", "--yes")]
DrawSeed = Annotated[int, option("Seed of random draws.", "--seed", metavar="N")]


def declare_output(metavar: str, more: str) -> msgspec.Meta:
    """Declare the option -o; `more` says what the command writes there."""
    return option(f"Where to write. {more}", "--output", "-o", metavar=metavar)


def declare_unit(more: str = "") -> msgspec.Meta:
    """Declare the option --unit; `more` says when it applies."""
    return option(f"What to label. {more}".strip(), "--unit")


def declare_host(more: str = "") -> msgspec.Meta:
    """Declare the option --host; `more` says what other addresses need."""
    return option(f"Address to listen on. {more}".strip(), "--host", metavar="ADDRESS")


def declare_sheet(more: str) -> msgspec.Meta:
    """Declare the option --sheet; `more` says how people fill the sheet in."""
    return option(f"Write an empty sheet for people to fill in. {more}", "--sheet", metavar="FILE")


def declare_name(more: str) -> msgspec.Meta:
    """Declare the option --name; `more` says what gets the name, and its default."""
    return option(f"The name of the result. {more}", "--name", metavar="NAME")


def declare_layer(more: str) -> msgspec.Meta:
    """Declare the option --layer; `more` says what the command does with the layer."""
    return option(f"A layer of labels. {more}", "--layer", metavar="NAME", completes="layers")


def declare_label_set(more: str = "") -> msgspec.Meta:
    """Declare the option --labels; `more` names other values that it takes."""
    return option(
        f"The label set: a shipped one's name, or a file.{more}",
        "--labels",
        metavar="NAME|FILE",
        completes="label_sets",
    )


def declare_protocol(more: str = "") -> msgspec.Meta:
    """Declare the option --protocol; `more` is its default."""
    return option(
        "How conversations are made, as in oneshot (one prompt plays both sides) or selfplay (agents take "
        f"turns). `edgen list protocols` describes each.{more}",
        "--protocol",
        metavar="NAME",
    )


def declare_faults() -> msgspec.Meta:
    """Declare the option --faults."""
    return option(
        'Faults and their shares of answers, as in "refusal=0.02,429=0.1".', "--faults", metavar="SPEC"
    )


def declare_space(more: str = "") -> msgspec.Meta:
    """Declare the option --space; `more` says what the command does with it."""
    return option(
        f"A space: a shipped one's name, or a file. {more}".strip(),
        "--space",
        metavar="SPACE",
        completes="spaces",
    )


def change_job(options: Any) -> tuple[str, ...]:
    """Return the changes to a job by the options `overrides` and `conversations`, in the form of `--set`."""
    count = () if options.conversations is None else (f"conversations={options.conversations}",)
    return (*options.overrides, *count)


def declare_backend(more: str, *, metavar: str = "[JOB:]ROLE") -> msgspec.Meta:
    """Declare the option --backend; `more` says what the backend does, and its default."""
    return option(
        f"The backend to ask: a role, or a job's role. {more}",
        "--backend",
        metavar=metavar,
        completes="backends",
    )


def declare_template(default: str = "") -> msgspec.Meta:
    """Declare the option --prompt; without a `default`, the help of the command names the default."""
    return option(
        f"The template: a shipped name, or a .j2 file.{f'  [default: {default}]' if default else ''}",
        "--prompt",
        metavar="NAME|FILE",
        completes="templates",
    )
