"""The application, and its start and stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from aiohttp import web

from edgen.core.errors import UsageError
from edgen.core.system import handling
from edgen.web import pages
from edgen.web.guard import Guard
from edgen.web.sources import Sources, stop_building

HOST = "127.0.0.1"


def make_app(sources: Sources, guard: Guard) -> web.Application:
    """Return the application that shows these runs."""
    app = web.Application(middlewares=[guard.admit, pages.explain], client_max_size=1 << 16)
    app[pages.SOURCES] = sources
    for path, handler in pages.ROUTES:
        app.router.add_get(path, handler)
    app.router.add_route("*", "/{rest:.*}", pages.unknown)
    return app


def serve(paths: Sequence[Path], port: int, opened: Callable[[str], None], signals: Collection[int]) -> None:
    """Serve pages of the runs until one of the signals. `opened` gets the owner's link.

    Raises UsageError for a path that is no folder, and for a port that is taken.
    """
    sources = Sources(paths)
    asyncio.run(_serve(sources, port, opened, signals))


async def _serve(
    sources: Sources, port: int, opened: Callable[[str], None], signals: Collection[int]
) -> None:
    guard = Guard(HOST)
    runner = web.AppRunner(make_app(sources, guard), access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    try:
        site = web.TCPSite(runner, HOST, port)
        try:
            await site.start()
        except OSError as problem:
            raise UsageError(
                f"--port {port}: this port cannot be opened ({problem.strerror}); leave --port out for a free one."
            ) from None
        taken = runner.addresses[0][1]
        stop = asyncio.Event()
        with handling(asyncio.get_running_loop(), signals, lambda _number: stop.set()):
            opened(guard.link(f"http://{HOST}:{taken}"))
            await stop.wait()
    finally:
        stop_building()
        await runner.cleanup()
