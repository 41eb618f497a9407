"""An event loop whose time jumps: when nothing is ready, the next timer is due at once.

Hours of waiting pass in milliseconds, in the same order each time. Real file descriptors work: while
any is registered, the loop gives them a moment before it jumps. While a thread of `run_in_executor`
(`asyncio.to_thread`) is at work the clock stands still.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, TypeVar

T = TypeVar("T")

_GRACE = 0.01  # real seconds that registered sockets get before time jumps
_STUCK = 5.0  # real seconds after which a loop that nothing can wake is reported


class _JumpingSelector(selectors.DefaultSelector):
    """A selector that makes the loop's time jump by the time that it would have waited."""

    jump: Callable[[float], None]
    threads_at_work: Callable[[], bool]

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        # The loop's own wake-up pipe is always registered.
        has_sockets = len(self.get_map()) > 1
        if not has_sockets and timeout is not None and not self.threads_at_work():
            self.jump(max(0.0, timeout))  # no outside event is expected: the system need not be asked
            return []
        if timeout is not None and timeout <= 0:
            return super().select(0)
        if self.threads_at_work():
            return super().select(_STUCK)
        if timeout is None:
            ready = super().select(_STUCK)
            if not ready and not has_sockets:
                raise RuntimeError("every task waits for something that nobody will do")
            return ready
        ready = super().select(_GRACE)
        if not ready:
            self.jump(timeout)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """Starts at time 0. `loop.time()` is the virtual time in seconds."""

    def __init__(self) -> None:
        self._now = 0.0
        self._in_threads = 0
        selector = _JumpingSelector()
        selector.jump = self._jump
        selector.threads_at_work = lambda: self._in_threads > 0
        super().__init__(selector)

    def time(self) -> float:
        return self._now

    def _jump(self, seconds: float) -> None:
        self._now += seconds

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        future = super().run_in_executor(executor, func, *args)
        self._in_threads += 1
        future.add_done_callback(self._thread_done)
        return future

    def _thread_done(self, _future: asyncio.Future[Any]) -> None:
        self._in_threads -= 1


def run_virtual(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine from a plain test function, in virtual time, and return its result."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(coroutine)
