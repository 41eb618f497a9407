"""The work of a Python call: events in the caller's thread, interrupts, and a separate event loop.

The work runs in a thread with its own event loop, so that it also works inside a running loop, as in a
notebook. Listeners are called in the caller's thread. An interrupt, or a listener that raises, stops the work
cleanly: all answers are stored, and the same call resumes.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import queue
import signal
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from edgen.execution.progress import Event, Listener
from edgen.runtime.control import Control

T = TypeVar("T")


class StopButton:
    """A button that stops work in another thread or task. Pressed again, it stops the work at once."""

    def __init__(self) -> None:
        self._heard_by: list[tuple[asyncio.AbstractEventLoop, Callable[[int], None]]] = []
        self.pressed = False

    def press(self) -> None:
        """Stop the current work, or the next."""
        self.pressed = True
        for loop, on_signal in self._heard_by:
            with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(on_signal, signal.SIGINT)

    @contextlib.contextmanager
    def interrupts(self, on_signal: Callable[[int], None]) -> Iterator[None]:
        """Yield in the form of `Control.interrupts`."""
        heard = (asyncio.get_running_loop(), on_signal)
        self._heard_by.append(heard)
        if self.pressed:
            on_signal(signal.SIGINT)
        try:
            yield
        finally:
            self._heard_by.remove(heard)


class RunQuestion(NamedTuple):
    """A question about a run, with the listeners to the work on its answer."""

    control: Control
    listeners: list[Listener]

    def run(self, work: Callable[[Control], T]) -> T:
        """Do the work in a separate thread, since the caller may have a running event loop."""
        return run_in_thread(work, self.control, self.listeners)


def run_in_thread(work: Callable[[Control], T], control: Control, listeners: list[Listener]) -> T:
    """Do the work in a thread, and wait for it. Raises the error of the work or of a listener;
    KeyboardInterrupt if one stopped the work."""
    button, events = StopButton(), queue.SimpleQueue[Event | None]()
    control.interrupts = button.interrupts
    control.events.listen(events.put)
    with ThreadPoolExecutor(1, "edgen") as pool:
        future = pool.submit(contextvars.copy_context().run, work, control)
        future.add_done_callback(lambda _future: events.put(None))
        problem = _hear(events, listeners, button)
    if problem is not None:
        raise problem from future.exception()
    return future.result()


def _hear(
    events: queue.SimpleQueue[Event | None], listeners: list[Listener], button: StopButton
) -> BaseException | None:
    """Pass every event to the listeners until the work has ended; return the interruption, if any."""
    problem: BaseException | None = None
    while True:
        try:
            event = events.get()
            if event is None:
                return problem
            for listener in listeners:
                listener(event)
        except BaseException as error:  # noqa: BLE001 - raised again once the work has ended
            problem = problem or error
            button.press()


async def run_in_loop(
    work: Callable[[Control], Coroutine[Any, Any, T]], control: Control, listeners: list[Listener]
) -> T:
    """Do the work in the caller's loop. If cancelled, it stops cleanly before the cancellation is passed
    on."""
    button = StopButton()
    control.interrupts = button.interrupts
    problems: list[BaseException] = []

    def hear(event: Event) -> None:
        try:
            for listener in listeners:
                listener(event)
        except Exception as error:  # noqa: BLE001 - raised again once the work has ended
            problems.append(error)
            button.press()

    control.events.listen(hear)
    task = asyncio.create_task(work(control))
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as cancelled:
            problems.append(cancelled)
            button.press()
    if problems:
        raise problems[0] from task.exception()
    return task.result()
