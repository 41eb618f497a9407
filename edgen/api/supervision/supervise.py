"""Work on a session's ledger with its progress told, until it ends or something stops it cleanly."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from edgen.api.supervision.control import Control
from edgen.api.supervision.deadline import Deadline
from edgen.api.supervision.monitor import Monitor
from edgen.api.supervision.snapshot import Title
from edgen.core.errors import EdgenError, StoppedError
from edgen.execution.folder_watch import FolderWatch
from edgen.execution.session import Charged, Session, interruption
from edgen.store.ledger import charged_at
from edgen.store.run_folder import RunFolder

_LOOK_EVERY = 1.0  # seconds between two looks at the wall clock, which may jump
_STAY_EVERY = 0.5


async def supervise(
    session: Session, title: Title, control: Control, work: Callable[[Monitor], Awaitable[object]]
) -> None:
    """Do the work; a signal, the deadline or a ledger that is gone stops it cleanly, a second signal at once."""
    monitor = Monitor(session, title, control.events)
    async with contextlib.AsyncExitStack() as stack:
        presence = stack.enter_context(FolderWatch(session.ledger.path))
        monitor.start()
        stack.callback(monitor.finish)
        beside = [monitor.watch(), _stop_when_gone(presence, monitor)]
        if control.deadline is not None:
            beside.append(_stop_in_time(control.deadline, monitor))
        for task in beside:
            await stack.enter_async_context(_beside(task))
        stack.enter_context(control.interrupts(partial(_on_signal, monitor)))
        try:
            await work(monitor)
        except EdgenError:
            if (gone := presence.look()) is not None:  # and whatever it met is of that
                raise gone from None
            raise


@contextlib.asynccontextmanager
async def _beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Have something done beside the body, until that ends. What ends the body counts; else what went wrong
    beside it, a bug, is raised then."""
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


async def _stop_in_time(deadline: Deadline, monitor: Monitor) -> None:
    """Stop when the deadline comes. Calls in flight may take as long as any call may."""
    while (left := deadline.left()) > 0:  # noqa: ASYNC110 - time is what it waits for
        await asyncio.sleep(min(left, _LOOK_EVERY))
    _stop(monitor, deadline.reason(), monitor.session.limits.timeout)


async def _stop_when_gone(presence: FolderWatch, monitor: Monitor) -> None:
    """Stop when the ledger is not there any more. Where it was moved, what is in flight is stored; else it is lost."""
    while (reason := presence.look()) is None:  # noqa: ASYNC110 - time is what it waits for
        await asyncio.sleep(_STAY_EVERY)
    _stop(monitor, reason, None if isinstance(reason, StoppedError) else 0.0)


def _on_signal(monitor: Monitor, number: int) -> None:
    if monitor.session.scheduler.stopped is None:
        _stop(monitor, interruption(number))
    elif number != signal.SIGHUP:  # one closed terminal may send several
        monitor.session.scheduler.hurry()


def _stop(monitor: Monitor, reason: EdgenError, grace: float | None = None) -> None:
    """Begin nothing more. `grace`: seconds that calls in flight are given to end, None for the usual."""
    session = monitor.session
    if session.scheduler.stopped is not None:
        return
    # A call is in flight until its answer is stored.
    running = sum(admission.running + admission.unstored for admission in session.admissions.values())
    session.scheduler.stop(reason, grace)
    if running:
        monitor.note(
            f"Stopping: waiting for {running} calls in flight, so that what is paid for is kept "
            "(a signal stops at once)."
        )


def used_elsewhere(whole: RunFolder, own: Path) -> Iterable[Charged]:
    """What the other ledgers of a run have used of the budget they share."""
    return [partial(charged_at, path) for path in whole.ledgers() if path != own]
