"""`edgen simulator`: the simulator as a server, for rehearsing any OpenAI or Gemini client."""

from __future__ import annotations

import asyncio
from typing import Annotated

from typer import Option

from edgen.cli.output import note, print_line

AllowHost = Annotated[
    list[str] | None,
    Option(
        metavar="NAME",
        help="A host name that requests may be for, beside localhost and --host; can be given again.",
    ),
]


def command(
    host: Annotated[str, Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65535, help="Port; 0 takes any free one.")] = 8377,
    latency_ms: Annotated[float, Option(min=0, max=600_000, help="Milliseconds before each answer.")] = 0.0,
    faults: Annotated[
        str, Option(metavar="SPEC", help='Faults and their shares, as in "refusal=0.02,429=0.1".')
    ] = "",
    seed: Annotated[int, Option(help="Another seed, other answers to the same requests.")] = 0,
    batch_seconds: Annotated[
        float, Option(min=0, max=604_800, help="Seconds that a batch takes, its requests evenly spread.")
    ] = 2.0,
    batch_window: Annotated[
        float, Option(min=0.01, max=604_800, help="Seconds after which a batch expires.")
    ] = 86_400.0,
    allow_host: AllowHost = None,
    list_faults: Annotated[
        bool, Option("--list-faults", help="Print every fault that SPEC can name, and exit.")
    ] = False,
) -> None:
    """Serve the simulator in OpenAI's, Gemini's and Anthropic's formats; any key is taken, nothing leaves the machine.

    The batches of all three are served too: files up, a batch begun, watched and cancelled, results down. In
    a batch, an HTTP fault fails one request; batch_create_lost, batch_503 and batch_slow strike the calls
    about batches and their files.

    Only requests for localhost, for --host and for what --allow-host names are answered, so that no web page
    can reach it under a name of its own.

    Faults are refusal, truncated, garbage, empty, filtered, one_speaker, defects (a broken layout),
    loop, two_turns and the like (turns of self-play), judge_first, judge_longer and the like (a judge's
    biases), 429, 500, 503, hang, reset, slow, 401, 404, quota; 429=0.1:2 asks to come back after 2
    seconds. --list-faults tells them all, and each layout defect by name.

    Example: edgen simulator --latency-ms 100 --faults "429=0.1,defects=0.2"
    """
    from edgen.simulator.faults import describe_faults

    if list_faults:
        print_line(describe_faults())
        return
    from edgen.simulator.server import Options, serve

    def announce(address: str) -> None:
        note(f"listening on {address}/v1 (OpenAI) and {address} (Gemini), simulated; stop with Ctrl-C")

    options = Options(
        host, port, latency_ms, faults, seed, batch_seconds, batch_window, tuple(allow_host or ())
    )
    asyncio.run(serve(options, announce))
