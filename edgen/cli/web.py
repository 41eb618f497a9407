"""`edgen web`: local pages over runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from edgen.cli import complete
from edgen.cli import options as o
from edgen.cli.output import print_value


def command(
    paths: Annotated[
        list[Path] | None,
        Argument(
            metavar="[PATH...]",
            help="Runs, or folders that hold runs.  [default: outputs]",
            autocompletion=complete.runs,
            show_default=False,
        ),
    ] = None,
    port: Annotated[
        int, Option("--port", metavar="PORT", min=0, max=65535, help="The port to listen on; 0: a free one.")
    ] = 0,
    browser: Annotated[bool, Option("--browser/--no-browser", help="Open a browser on the pages.")] = True,
    json: o.JsonOption = False,
) -> None:
    """Look at runs in a browser: how they stand, their conversations, their pairs.

    Pages are served on this machine alone, to the browser that opens the printed link. They show runs live,
    search and filter conversations, and show all that a run knows of one: scenario, turns, labels, raw
    replies, provenance and pairs. Ctrl-C stops the server.

    Example: edgen web outputs

    Example: edgen web outputs/quickstart --port 8080 --no-browser
    """
    from edgen.web.server import serve

    def opened(link: str) -> None:
        print_value(
            {"url": link}, [f"edgen shows {_named(paths)} at {link}", "Press Ctrl-C to stop."], json=json
        )
        sys.stdout.flush()
        if browser:
            import webbrowser

            webbrowser.open(link)

    serve(paths or [Path("outputs")], port, opened)


def _named(paths: list[Path] | None) -> str:
    return ", ".join(map(str, paths or [Path("outputs")]))
