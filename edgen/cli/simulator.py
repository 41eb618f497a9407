"""`edgen simulator`: the simulator as a server, for rehearsing any OpenAI or Gemini client."""

from __future__ import annotations

import asyncio

from edgen.cli.options import simulator as o
from edgen.cli.output import note, print_line


def command(
    host: o.HostOption = "127.0.0.1",
    port: o.PortOption = 8377,
    latency_ms: o.LatencyOption = 0.0,
    faults: o.FaultsOption = "",
    seed: o.SeedOption = 0,
    batch_seconds: o.BatchSecondsOption = 2.0,
    batch_window: o.BatchWindowOption = 86_400.0,
    allow_host: o.AllowHostOption = None,
    list_faults: o.ListFaultsOption = False,
) -> None:
    """Serve the simulator in OpenAI's and Gemini's formats; any key is taken, nothing leaves the machine.

    Both vendors' batches are served too: files up, a batch begun, watched and cancelled, results down. In
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
