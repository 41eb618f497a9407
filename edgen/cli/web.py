"""`edgen web`: local pages over runs."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from edgen.cli import complete
from edgen.cli import options as o
from edgen.cli.errors import ending_signals
from edgen.cli.output import print_value


def command(
    paths: Annotated[
        list[Path] | None,
        Argument(
            metavar="[PATH...]",
            help="Runs, folders that hold runs, and files or folders of conversations in any layout that `edgen stats` reads.  [default: outputs]",
            autocompletion=complete.runs,
            show_default=False,
        ),
    ] = None,
    port: Annotated[
        int, Option(metavar="N", min=0, max=65535, help="Port to listen on; 0 takes a free one.")
    ] = 0,
    no_browser: Annotated[
        bool, Option("--no-browser", help="Open no browser; print the link alone.")
    ] = False,
    export: Annotated[
        Path | None,
        Option(
            metavar="DIR",
            help="Write the pages of one run or file to DIR as a static site, and start no server.",
            show_default=False,
        ),
    ] = None,
    json: o.JsonOption = False,
) -> None:
    """Look at runs and their conversations in a browser.

    Pages are served on this machine alone, to the browser that opens the printed link. They show how runs
    stand, live; search and filter conversations; and show all that a run knows of one: scenario, turns,
    labels, raw replies, requests, provenance and pairs. Other data opens in the same pages: published data
    sets, and chats as messages or in ShareGPT's form, in JSON, JSON Lines or Parquet. Ctrl-C stops the server.

    Example: edgen web outputs

    Example: edgen web outputs/quickstart --port 8080 --no-browser

    Example: edgen web outputs/quickstart --export site
    """
    if export is not None:
        _export(paths or [Path("outputs")], export, json=json)
        return
    from edgen.web.server import serve

    def opened(link: str, _sources: object) -> None:
        print_value(
            {"url": link}, [f"edgen shows {_named(paths)} at {link}", "Press Ctrl-C to stop."], json=json
        )
        sys.stdout.flush()
        if not no_browser:
            import webbrowser

            webbrowser.open(link)

    serve(paths or [Path("outputs")], port, opened, (signal.SIGINT, *ending_signals()))


def _export(paths: list[Path], folder: Path, *, json: bool) -> None:
    """Write a static site."""
    from edgen.web.static_site import export_site

    site = export_site(paths, folder)
    print_value(
        {"index": str(site.index), "conversations": site.conversations, "bytes": site.size},
        [f"{site.index}: pages of {site.conversations:,} conversations, {site.size / 1e6:.1f} MB."],
        json=json,
    )


def _named(paths: list[Path] | None) -> str:
    return ", ".join(map(str, paths or [Path("outputs")]))
