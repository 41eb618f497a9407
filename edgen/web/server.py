"""The application: its routes, the files that pages load, and its start and stop.

Reading pages write nothing, and lock no run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from aiohttp import web

from edgen.core.errors import UsageError
from edgen.core.system import handle_signals
from edgen.web import browse, conversation, runs, starting
from edgen.web.answers import SOURCES
from edgen.web.guard import PageGuard, Route, render_problem_page
from edgen.web.people import answering, invited_pages, labelling, owner_page, play, voting
from edgen.web.people.invited_pages import InvitedTask
from edgen.web.rendering import read_static_file
from edgen.web.sources import Sources, stop_building

FACES: tuple[InvitedTask, ...] = (voting.FACE, labelling.FACE, play.FACE)
_MOST_SENT = 1 << 20  # most bytes of a form: a character of a text takes up to 12


async def serve_static(request: web.Request) -> web.Response:
    """Return a file that pages load."""
    known = await asyncio.to_thread(read_static_file, request.match_info["name"])
    if known is None:
        return render_problem_page("There is no such file.", 404)
    return web.Response(body=known[1], content_type=known[0], charset="utf-8")


async def answer_unknown(_request: web.Request) -> web.Response:
    """Answer requests to all other addresses."""
    return render_problem_page("There is no such page.", 404)


ROUTES = (
    Route("GET", "/", runs.show_runs),
    Route("GET", "/events", runs.send_events),
    Route("GET", "/static/{name}", serve_static, "anyone"),
    Route("GET", "/beside", conversation.show_side_by_side),
    Route("GET", "/requests/{run}/{id:.+}", conversation.show_requests),
    Route("GET", "/run/{run}", browse.browse),
    Route("GET", "/run/{run}/{id:.+}", conversation.show_conversation),
)


def make_app(sources: Sources, guard: PageGuard) -> web.Application:
    """Return the application that shows these runs."""
    app = web.Application(middlewares=[guard.admit], client_max_size=_MOST_SENT)
    app[SOURCES] = sources
    app[owner_page.FACES] = FACES
    app[answering.QUEUES] = {}
    app[play.TYPING] = {}
    app[starting.STARTER] = starting.RunStarter(Path.cwd())
    guard.add(app, ROUTES + starting.ROUTES + owner_page.ROUTES + invited_pages.ROUTES)
    for face in FACES:
        guard.add(app, face.routes)
    app.router.add_route("*", "/{rest:.*}", answer_unknown)
    return app


async def serve(
    paths: Sequence[Path],
    port: int,
    opened: Callable[[str], None],
    signals: Collection[int],
    host: str,
) -> None:
    """Serve pages of the runs until one of the signals. `opened` gets the owner's link.

    Raises UsageError for a path that is no folder, and for an address that cannot be listened on.
    """
    sources = Sources(paths)
    guard = PageGuard(host, sources)
    runner = web.AppRunner(make_app(sources, guard), access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        try:
            await site.start()
        except OSError as problem:
            raise UsageError(
                f"{host}, port {port}: this address cannot be opened ({problem.strerror}); leave --port out "
                "for a free port, and give --host an address of this machine."
            ) from None
        taken = runner.addresses[0][1]
        stop = asyncio.Event()
        with handle_signals(asyncio.get_running_loop(), signals, lambda _number: stop.set()):
            shown = f"[{host}]" if ":" in host else host
            opened(guard.make_link(f"http://{shown}:{taken}"))
            await stop.wait()
    finally:
        stop_building()
        await runner.cleanup()
