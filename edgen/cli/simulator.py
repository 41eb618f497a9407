"""`edgen simulator`: the simulator as a server, for rehearsing any OpenAI, Gemini or Anthropic client."""

from __future__ import annotations

from typing import Annotated

import msgspec

from edgen.cli.options import JsonOption
from edgen.cli.output import note, print_json, print_value
from edgen.core.options import option
from edgen.simulator.options import ServerOptions


class FaultListOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The option that lists faults instead of starting a server."""

    list_faults: Annotated[bool, option("Print all faults.")] = False


def command(options: ServerOptions, listing: FaultListOptions, json: JsonOption = False) -> None:
    """Run a local stand-in for the services of model providers.

    It answers in OpenAI's, Gemini's and Anthropic's formats, batches included, and takes any key. Nothing
    leaves the machine. It answers only requests for localhost, --host and --allow-host, so that no web page
    can reach it.

    Faults are, for example, refusal, defects (a broken layout), judge_first (a judge's bias), 429 and hang;
    429=0.1:2 asks the client to retry after 2 seconds. In a batch, an HTTP fault fails one request.

    Example: edgen simulator --latency-ms 100 --faults "429=0.1,defects=0.2"
    """
    from edgen.simulator.faults import describe_faults

    if listing.list_faults:
        print_value({"faults": describe_faults()}, [describe_faults()], json=json)
        return
    import asyncio

    from edgen.simulator.service.server import serve

    def announce(address: str) -> None:
        if json:
            print_json({"openai": f"{address}/v1", "gemini": address, "anthropic": address})
        note(f"listening on {address}/v1 (OpenAI) and {address} (Gemini), simulated; stop with Ctrl-C")

    asyncio.run(serve(options, announce))
