"""A watch on the event loop. It names plugins that block the loop, since a blocked loop handles no answer and
no signal."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import threading
import time
from collections.abc import AsyncIterator

from edgen.core.plugins.faults import describe_running

BLOCKED = 20.0  # seconds after which a plugin is named
_EVERY = 1.0  # seconds between two looks


class LoopWatch:
    """A watch that compares the times noted by a loop with the clock of a thread."""

    def __init__(self, thread: int) -> None:
        self._thread = thread  # identifier of the loop's thread
        self._came_by = time.monotonic()
        self._named: set[str] = set()
        self._ended = threading.Event()

    async def note_time(self) -> None:
        """Note the time at intervals, as a sign that the loop is not blocked."""
        while True:
            self._came_by = time.monotonic()
            await asyncio.sleep(_EVERY)

    def watch(self) -> None:
        """Check at intervals until `end`."""
        while not self._ended.wait(_EVERY):
            self.check(time.monotonic())

    def check(self, now: float) -> None:
        """Warn, once for each place, of a plugin that blocks the loop."""
        if now - self._came_by < BLOCKED:
            return
        said = describe_running(sys._current_frames().get(self._thread))
        if said is not None and said not in self._named:
            self._named.add(said)
            logging.getLogger("edgen").warning(
                "edgen: %s has kept all other calls waiting for %d s. Await what takes long, or use "
                "asyncio.to_thread. Ctrl-C twice, with a second in between, stops it.",
                said,
                now - self._came_by,
            )

    def end(self) -> None:
        """End the thread."""
        self._ended.set()


@contextlib.asynccontextmanager
async def watch_loop() -> AsyncIterator[None]:
    """Watch the running loop while the body runs."""
    watch = LoopWatch(threading.get_ident())
    beat = asyncio.create_task(watch.note_time())
    thread = threading.Thread(target=watch.watch, name="loop watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        watch.end()
        beat.cancel()
