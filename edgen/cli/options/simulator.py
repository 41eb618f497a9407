"""Options of `edgen simulator`."""

from __future__ import annotations

from typing import Annotated

import typer

HostOption = Annotated[str, typer.Option(help="Address to listen on.")]
PortOption = Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes any free one.")]
LatencyOption = Annotated[float, typer.Option(min=0, max=600_000, help="Milliseconds before each answer.")]
FaultsOption = Annotated[
    str, typer.Option(metavar="SPEC", help='Faults and their shares, as in "refusal=0.02,429=0.1".')
]
SeedOption = Annotated[int, typer.Option(help="Another seed, other answers to the same requests.")]
BatchSecondsOption = Annotated[
    float,
    typer.Option(min=0, max=604_800, help="Seconds that a batch takes, its requests evenly spread."),
]
BatchWindowOption = Annotated[
    float, typer.Option(min=0.01, max=604_800, help="Seconds after which a batch expires.")
]
AllowHostOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="A host name that requests may be for, beside localhost and --host; can be given again.",
        show_default=False,
    ),
]
ListFaultsOption = Annotated[
    bool, typer.Option("--list-faults", help="Print every fault that SPEC can name, and exit.")
]
