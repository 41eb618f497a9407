"""The application, and its start and stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from aiohttp import web

from edgen.core.errors import UsageError
from edgen.core.system import handling
from edgen.web import answering, invited_pages, labelling, pages, people, play, starting, voting
from edgen.web.answers import SOURCES
from edgen.web.guard import PageGuard
from edgen.web.invited_pages import Face
from edgen.web.sources import Sources, stop_building

HOST = "127.0.0.1"
FACES: tuple[Face, ...] = (voting.FACE, labelling.FACE, play.FACE)
_MOST_SENT = 1 << 20  # bytes of a form: a character of a text takes up to 12


def make_app(sources: Sources, guard: PageGuard) -> web.Application:
    """Return the application that shows these runs."""
    app = web.Application(middlewares=[guard.admit, pages.explain], client_max_size=_MOST_SENT)
    app[SOURCES] = sources
    app[people.FACES] = FACES
    app[answering.QUEUES] = {}
    app[play.TYPING] = {}
    app[starting.STARTER] = starting.RunStarter(Path.cwd())
    guard.add(app, pages.ROUTES + starting.ROUTES + people.ROUTES + invited_pages.ROUTES)
    for face in FACES:
        guard.add(app, face.routes)
    app.router.add_route("*", "/{rest:.*}", pages.answer_unknown)
    return app


def serve(
    paths: Sequence[Path],
    port: int,
    opened: Callable[[str], None],
    signals: Collection[int],
    host: str = HOST,
) -> None:
    """Serve pages of the runs until one of the signals. `opened` gets the owner's link.

    Raises UsageError for a path that is no folder, and for an address that cannot be listened on.
    """
    sources = Sources(paths)
    asyncio.run(_serve(sources, host, port, opened, signals))


async def _serve(
    sources: Sources,
    host: str,
    port: int,
    opened: Callable[[str], None],
    signals: Collection[int],
) -> None:
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
        with handling(asyncio.get_running_loop(), signals, lambda _number: stop.set()):
            shown = f"[{host}]" if ":" in host else host
            opened(guard.link(f"http://{shown}:{taken}"))
            await stop.wait()
    finally:
        stop_building()
        await runner.cleanup()
