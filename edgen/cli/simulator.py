"""`edgen simulator`: the simulator as a server, for rehearsing any OpenAI, Gemini or Anthropic client."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from edgen.cli.options import JsonOption
from edgen.cli.output import note, print_json, print_value
from edgen.core.options import DrawSeed, LatencyMs, Port, declare_faults, declare_host

AllowHost = Annotated[
    list[str] | None,
    Option(
        metavar="NAME",
        help="Also answer requests for this host name; repeatable.",
    ),
]

OwnSpaces = Annotated[
    list[Path] | None,
    Option(
        "--knows",
        metavar="FILE",
        help="Speak of this space's values, too, where a prompt names them; repeatable.",
    ),
]


def command(
    host: Annotated[str, declare_host()] = "127.0.0.1",
    port: Port = 8377,
    latency_ms: LatencyMs = 0.0,
    faults: Annotated[str, declare_faults()] = "",
    seed: DrawSeed = 0,
    batch_seconds: Annotated[
        float, Option(metavar="SECONDS", min=0, max=604_800, help="Seconds that a batch takes.")
    ] = 2.0,
    batch_window: Annotated[
        float, Option(metavar="SECONDS", min=0.01, max=604_800, help="Seconds after which a batch expires.")
    ] = 86_400.0,
    allow_host: AllowHost = None,
    slots: Annotated[
        int | None, Option(metavar="N", min=1, help="Concurrent calls; others wait. Default: all.")
    ] = None,
    space: OwnSpaces = None,
    list_faults: Annotated[bool, Option("--list-faults", help="Print all faults.")] = False,
    json: JsonOption = False,
) -> None:
    """Run a local stand-in for the services of model providers.

    It answers in OpenAI's, Gemini's and Anthropic's formats, batches included, and takes any key. Nothing
    leaves the machine. It answers only requests for localhost, --host and --allow-host, so that no web page
    can reach it.

    Faults are, for example, refusal, defects (a broken layout), judge_first (a judge's bias), 429 and hang;
    429=0.1:2 asks the client to retry after 2 seconds. In a batch, an HTTP fault fails one request.

    Example: edgen simulator --latency-ms 100 --faults "429=0.1,defects=0.2"
    """
    from edgen.simulator.faults import describe_faults

    if list_faults:
        print_value({"faults": describe_faults()}, [describe_faults()], json=json)
        return
    import asyncio

    from edgen.simulator.service.server import Options, serve

    def announce(address: str) -> None:
        if json:
            print_json({"openai": f"{address}/v1", "gemini": address, "anthropic": address})
        note(f"listening on {address}/v1 (OpenAI) and {address} (Gemini), simulated; stop with Ctrl-C")

    names, spaces = tuple(allow_host or ()), tuple(space or ())
    options = Options(host, port, latency_ms, faults, seed, batch_seconds, batch_window, names, spaces, slots)
    asyncio.run(serve(options, announce))
