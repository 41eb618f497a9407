"""`edgen web`: local pages over runs."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Annotated

import msgspec
from typer import Argument

from edgen.cli import complete
from edgen.cli import options as o
from edgen.cli.output import list_ending_signals, note, print_value
from edgen.core.options import Port, declare_host, option
from edgen.web.options import PeopleOptions


class WebOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the pages: where they are served or written."""

    port: Port = 0
    no_browser: Annotated[bool, option("Open no browser; only print the link.")] = False
    export: Annotated[
        Path | None, option("Write the pages of one run or file to DIR as a static site.", metavar="DIR")
    ] = None
    host: Annotated[str, declare_host("Any but this machine's own needs invitations.")] = "127.0.0.1"


def command(
    paths: Annotated[
        list[Path] | None,
        Argument(
            metavar="[PATH...]",
            help="Runs, folders of runs, or conversations in any layout that `edgen stats` reads.  "
            "[default: outputs]",
            autocompletion=complete.runs,
            show_default=False,
        ),
    ] = None,
    *,
    options: WebOptions,
    people: PeopleOptions,
    json: o.JsonOption = False,
) -> None:
    """Look at runs in a browser; have people vote and label.

    Pages are served on this machine alone, to the browser that opens the printed link. They follow runs live
    and show everything about a conversation. Published data sets and chats (JSON, JSON Lines or Parquet) open
    in the same pages. With --vote or --label, invited people see one pair or unit at a time. Ctrl-C stops the
    server.

    Example: edgen web outputs

    Example: edgen web outputs/quickstart --port 8080 --no-browser

    Example: edgen web outputs/quickstart --export site

    Example: edgen web outputs/selfplay --vote --invite rater1,rater2 --per-unit 2
    """
    places = paths or [Path("outputs")]
    if options.export is not None:
        _export(places, options.export, json=json)
    else:
        _serve(places, options, people, json=json)


def _serve(places: list[Path], options: WebOptions, people: PeopleOptions, *, json: bool) -> None:
    """Serve the pages, until a signal."""
    import asyncio

    from edgen.web.people.inviting import is_loopback, require_invitations, set_up
    from edgen.web.server import serve

    host = options.host
    keys = set_up(places, people)
    require_invitations(places, host)
    if not is_loopback(host):
        note(
            f"edgen: {host} can be reached by other machines, without encryption. Anyone with a link can "
            "use it: send each to one person, and stop the server when nobody answers."
        )

    def announce(link: str) -> None:
        base = link.partition("/enter")[0]
        links = {name: f"{base}/enter?key={key}" for name, key in keys.items()}
        lines = [f"edgen shows {', '.join(map(str, places))} at {link}"]
        lines += [f"{name}: {own}" for name, own in links.items()]
        facts: dict[str, object] = {"url": link, **({"invited": links} if links else {})}
        print_value(facts, [*lines, "Press Ctrl-C to stop."], json=json)
        sys.stdout.flush()
        if not options.no_browser:
            import webbrowser

            webbrowser.open(link)

    asyncio.run(serve(places, options.port, announce, (signal.SIGINT, *list_ending_signals()), host))


def _export(paths: list[Path], folder: Path, *, json: bool) -> None:
    """Write a static site."""
    from edgen.web.static_site import export_site

    site = export_site(paths, folder)
    print_value(
        {"index": str(site.first), "conversations": site.conversations, "bytes": site.size},
        [f"{site.first}: pages of {site.conversations:,} conversations, {site.size / 1e6:.1f} MB."],
        json=json,
    )
