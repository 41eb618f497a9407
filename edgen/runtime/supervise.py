"""Supervision of work on the ledgers of sessions: it reports the progress, until the work ends or is stopped
cleanly.

While it lasts, `FolderWatch` looks whether the run's folder is still the same one.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from edgen.core import system
from edgen.core.errors import EdgenError, RunError, StoppedError, UselessError
from edgen.core.system import is_hangup
from edgen.execution.session import Charged, RunSession, make_signal_error
from edgen.runtime.control import Control
from edgen.runtime.deadline import Deadline
from edgen.runtime.loop_watch import watch_loop
from edgen.runtime.monitor import Monitor
from edgen.runtime.snapshot import Title
from edgen.store.ledger import Ledger, describe_lost_replies, sum_charges_at
from edgen.store.run_folder import RunFolder


class FolderWatch:
    """Identity of the ledger at `path`. Use as a context manager."""

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()
        self._shown = path
        self._folder = system.open_folder(self._path.parent)
        self._known = _identify_folder(self._path)

    def __enter__(self) -> FolderWatch:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._folder)

    def look(self) -> EdgenError | None:
        """Return the error that stops the work if the ledger is gone."""
        try:
            if _identify_folder(self._path) == self._known:
                return None
            gone = f"{self._shown}: this ledger has been replaced by another one"
        except (FileNotFoundError, NotADirectoryError):
            gone = f"{self._shown}: this ledger, or the folder that it was in, has been removed"
        except OSError:  # an unresponsive disk; the writer notices it
            return None
        if self._is_moved():
            return StoppedError(
                f"{self._shown}: the folder of this ledger has been moved{self._read_target()} while it was "
                "worked on. "
                "No further call was made, and all answers are stored where the folder is now: name it with "
                "-o, and the same command resumes the run."
            )
        return RunError(
            f"{gone} while it was worked on. Nothing more was asked; what was answered is lost with it. "
            "Restore it from a copy, or start again in another run folder."
        )

    def _is_moved(self) -> bool:
        try:
            return _identify_folder(self._path.name, self._folder) == self._known
        except OSError:
            return False

    def _read_target(self) -> str:
        with contextlib.suppress(OSError):
            return f" to {Path(f'/proc/self/fd/{self._folder}').readlink()}"
        return ""


def _identify_folder(path: Path | str, folder: int | None = None) -> tuple[int, int]:
    found = os.stat(path, dir_fd=folder)
    return found.st_dev, found.st_ino


_LOOK_EVERY = 1.0  # seconds between two looks at the wall clock, which may jump
_STAY_EVERY = 0.5


class Supervised(NamedTuple):
    """A session, what its work is called, and its work."""

    session: RunSession
    title: Title
    work: Callable[[Monitor], Awaitable[object]]


async def supervise(parts: Sequence[Supervised], control: Control) -> None:
    """Do the work of all parts side by side. A signal, the deadline or a ledger that is gone stops it
    cleanly, a second signal at once; what ends one of them before its work is done stops the others cleanly,
    and is raised."""
    monitors = [Monitor(part.session, part.title, control.events) for part in parts]
    sessions = [part.session for part in parts]
    async with contextlib.AsyncExitStack() as stack:
        watches = [stack.enter_context(FolderWatch(session.ledger.path)) for session in sessions]
        beside: list[Coroutine[Any, Any, None]] = []
        stack.callback(_finish, monitors)
        for monitor in monitors:
            monitor.start()
            beside.append(monitor.watch())
        beside += [_stop_when_gone(presence, monitors) for presence in watches]
        if control.deadline is not None:
            beside.append(_stop_in_time(control.deadline, monitors))
        await stack.enter_async_context(watch_loop())
        for task in beside:
            await stack.enter_async_context(_run_beside(task))
        stack.enter_context(control.interrupts(partial(_on_signal, monitors)))
        try:
            await _work_together(parts, monitors)
        except EdgenError:
            for presence in watches:
                if (gone := presence.look()) is not None:  # the error is one of these
                    raise gone from None
            raise


def _finish(monitors: Sequence[Monitor]) -> None:
    for monitor in monitors:
        monitor.finish()


async def _work_together(parts: Sequence[Supervised], monitors: Sequence[Monitor]) -> None:
    """Run the work of all parts. Raises the error that ended one first, when all have ended; a part that
    stops as useless leaves the others at work."""
    ended: list[Exception] = []

    async def work(part: Supervised, monitor: Monitor) -> None:
        try:
            await part.work(monitor)
        except Exception as problem:  # noqa: BLE001 - a bug, too, is raised when the others have ended
            ended.append(problem)
            if isinstance(problem, UselessError):
                return
            reason = problem if isinstance(problem, EdgenError) else StoppedError("Other work has failed.")
            _stop([other for other in monitors if other is not monitor], reason)

    await asyncio.gather(*(work(*pair) for pair in zip(parts, monitors, strict=True)))
    if ended:
        raise min(ended, key=lambda problem: isinstance(problem, UselessError))


@contextlib.asynccontextmanager
async def _run_beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run work concurrently with the body, until that ends.

    An error of the body counts; else an error of the work, which is a bug, is raised then.
    """
    task = asyncio.create_task(work)
    try:
        yield
    except BaseException:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        raise
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def _stop_in_time(deadline: Deadline, monitors: Sequence[Monitor]) -> None:
    """Stop when the deadline comes. Calls in flight may take as long as any call may."""
    while (left := deadline.count_seconds_left()) > 0:  # noqa: ASYNC110 - time is what it waits for
        await asyncio.sleep(min(left, _LOOK_EVERY))
    _stop(monitors, deadline.make_reason(), max(one.session.limits.timeout for one in monitors))


async def _stop_when_gone(presence: FolderWatch, monitors: Sequence[Monitor]) -> None:
    """Stop when the ledger is missing. If it was moved, calls under way are stored; else they are lost."""
    while (reason := presence.look()) is None:  # noqa: ASYNC110 - time is what it waits for
        await asyncio.sleep(_STAY_EVERY)
    _stop(monitors, reason, None if isinstance(reason, StoppedError) else 0.0)


def _on_signal(monitors: Sequence[Monitor], number: int) -> None:
    if any(monitor.session.scheduler.stopped is None for monitor in monitors):
        _stop(monitors, make_signal_error(number))
    elif not is_hangup(number):  # one closed terminal may send several
        for monitor in monitors:
            monitor.session.scheduler.hurry()


def _stop(monitors: Sequence[Monitor], reason: EdgenError, grace: float | None = None) -> None:
    """Begin nothing more. `grace`: seconds that calls in flight are given to end, None for the usual."""
    going = [monitor for monitor in monitors if monitor.session.scheduler.stopped is None]
    # A call is in flight until its answer is stored.
    admissions = {one for monitor in going for one in monitor.session.admissions.values()}
    running = sum(admission.running + admission.unstored for admission in admissions)
    for monitor in going:
        monitor.session.scheduler.stop(reason, grace)
    if running:
        unpaid = all(monitor.session.unpaid for monitor in going)
        why = "which may still end" if unpaid else "so that paid answers are stored"
        going[0].note(
            f"Stopping: waiting for {running} calls in flight, {why} (another signal stops at once)."
        )


def tell_lost_replies(ledger: Ledger, control: Control) -> None:
    """Warn of a ledger that has lost replies, before they are retried."""
    if ledger.lost_replies:
        control.note(describe_lost_replies(ledger.path, ledger.lost_replies))


def find_use_elsewhere(whole: RunFolder, *own: Path) -> Iterable[Charged]:
    """Return the usage of the run's other ledgers from the shared budget."""
    return [partial(sum_charges_at, path) for path in whole.ledgers() if path not in own]
