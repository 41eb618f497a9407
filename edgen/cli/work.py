"""What the commands that ask models share: backends, a run's folder held, signals, progress."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgen.cli.errors import ending_signals
from edgen.cli.progress import Display, progress
from edgen.cli.watch import Watch
from edgen.cli.watched import watching
from edgen.errors import EdgenError, RunError, StoppedError, UsageError
from edgen.trust import Consents

if TYPE_CHECKING:
    from edgen.backends import Backend
    from edgen.backends.batches import Batches
    from edgen.cli.deadline import Deadline
    from edgen.cli.options import Via
    from edgen.cli.trusting import Trust
    from edgen.config import BackendConfig, Job, Limits
    from edgen.engine.presence import Presence
    from edgen.engine.rounds import BatchWay
    from edgen.engine.session import Charged, Session
    from edgen.rundir import RunDir


@contextlib.asynccontextmanager
async def made_backends(
    configs: dict[str, BackendConfig],
    limits: Limits,
    trust: Trust | None,
    *,
    runs: int = 1,
) -> AsyncIterator[dict[str, Backend]]:
    """A backend for each configuration, closed in the end; without `trust` they will send nothing and have no keys.
    `runs` are open at once, of which one is worked on.

    Raises ProviderError for a key that is not there, InputError for one that may not go where it would."""
    from edgen.backends import make

    services = {(type(config), getattr(config, "base_url", None)) for config in configs.values()}
    _allow_connections(limits.in_flight, len(services), runs)
    backends: dict[str, Backend] = {}
    consents = Consents() if trust is None else trust.settle(configs.values())
    try:
        for name, config in configs.items():
            backends[name] = make(
                config,
                timeout=limits.timeout,
                connections=limits.in_flight,
                environ=os.environ if trust is None else trust.environ,
                consents=consents,
                silent=trust is None,
            )
        yield backends
    finally:
        for backend in backends.values():
            await backend.aclose()


_ROOM = 64  # files beside connections that are comfortable
_LEAST = 32  # and without which nothing works: ledger, lock, finished files, names that are looked up
_RUN = 8  # of each further run that is open at once


def _allow_connections(in_flight: int, services: int, runs: int) -> None:
    """See that the system lets us have a connection per call in flight, to each service. Raises UsageError."""
    import resource

    needed = in_flight * services + _RUN * (runs - 1)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed + _ROOM:
        return
    if hard != resource.RLIM_INFINITY and hard < needed + _LEAST:
        raise UsageError(_too_few(hard, in_flight, services, runs))
    most = needed + _ROOM if hard == resource.RLIM_INFINITY else min(needed + _ROOM, hard)
    if soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _too_few(files: int, in_flight: int, services: int, runs: int) -> str:
    """What to do where a process may open so few files."""
    raise_it = "have the limit raised (`ulimit -Hn` shows it; LimitNOFILE= in a systemd unit)"
    fitting = (files - _LEAST - _RUN * (runs - 1)) // services
    if fitting < 1:
        least = _LEAST + _RUN * (runs - 1) + services
        return (
            f"this system lets a process open {files} files, and this job needs {least} at least: {raise_it}."
        )
    each = f" for each of {services} services" if services > 1 else ""
    return (
        f"limits.in_flight is {in_flight}{each}, but this system lets a process open {files} files. "
        f"Lower it (--set limits.in_flight={fitting}), or {raise_it}."
    )


@contextlib.contextmanager
def worded(path: Path) -> Iterator[None]:
    """What the operating system says about the run's folder, as sentences."""
    try:
        yield
    except OSError as problem:
        place = problem.filename or path
        if problem.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise StoppedError(
                f"{place}: there is no room left on the disk ({problem.strerror}). "
                "Make room and start the same command again."
            ) from None
        if problem.errno in (errno.EMFILE, errno.ENFILE):
            raise UsageError(
                "this system lets a process open too few files for so many calls at once. Halve limits.in_flight "
                "(--set limits.in_flight=N), or raise the limit (ulimit -n). What was answered is stored."
            ) from None
        raise RunError(f"{place}: it cannot be written ({problem.strerror}).") from None


@contextlib.asynccontextmanager
async def batch_way(
    job: Job, backends: dict[str, Backend], via: Via, write_only: Path | None = None
) -> AsyncIterator[BatchWay | None]:
    """The batch services of the backends, closed in the end; None where calls are made one by one."""
    if via == "online":
        yield None
        return
    from edgen.backends.batches import PATIENCE, batches
    from edgen.engine.rounds import BatchWay

    services: dict[str, Batches] = {}
    try:
        for name, backend in backends.items():
            services[name] = batches(
                job.backends[name],
                backend,
                environ=os.environ,
                offline=write_only is not None,
                patience=min(job.limits.give_up_after, PATIENCE),
            )
        yield BatchWay(services, write_only)
    finally:
        for service in services.values():
            await service.aclose()


async def supervised(
    session: Session,
    name: str,
    work: Callable[[Display], Awaitable[None]],
    words: tuple[str, str],
    watch: Watch | None = None,
) -> None:
    """Do the work with its progress shown; a signal or the deadline stops it cleanly, a second signal at once.

    `words` are what the two kinds of outcomes are called.
    """
    part = None if watch is None else watch.part(session, name)
    from edgen.engine.presence import Presence

    async with contextlib.AsyncExitStack() as stack:
        presence = stack.enter_context(Presence(session.ledger.path))
        display = await stack.enter_async_context(progress(session.tally, name, session.driver, words, part))
        session.events.listen(display.event)
        if watch is not None and part is not None:
            stack.callback(part.close)
            await stack.enter_async_context(_meanwhile(watching(watch, part)))
            if watch.deadline is not None:
                await stack.enter_async_context(_meanwhile(_keep(watch.deadline, session, display)))
        await stack.enter_async_context(_meanwhile(_stay(presence, session, display)))
        stack.enter_context(_signals(session, display))
        try:
            await work(display)
        except EdgenError:
            if (gone := presence.look()) is not None:  # and whatever it met is of that
                raise gone from None
            raise
        finally:
            display.stage = ""


@contextlib.asynccontextmanager
async def _meanwhile(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
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


async def _keep(deadline: Deadline, session: Session, display: Display) -> None:
    """Stop when the deadline comes. Calls in flight may take as long as any call may."""
    while (left := deadline.left()) > 0:  # noqa: ASYNC110 - time is what it waits for
        await asyncio.sleep(min(left, _LOOK_EVERY))
    _stop(session, display, deadline.reason(), session.limits.timeout)


_LOOK_EVERY = 1.0  # seconds between two looks at the wall clock, which may jump


async def _stay(presence: Presence, session: Session, display: Display) -> None:
    """Stop when the ledger is not there any more. Where it was moved, what is in flight is stored; else it is lost."""
    while (reason := presence.look()) is None:  # noqa: ASYNC110 - time is what it waits for
        await asyncio.sleep(_STAY_EVERY)
    _stop(session, display, reason, None if isinstance(reason, StoppedError) else 0.0)


_STAY_EVERY = 0.5


@contextlib.contextmanager
def _signals(session: Session, display: Display) -> Iterator[None]:
    """While the body runs, the first signal stops the work cleanly and a second one at once."""
    from edgen.engine.session import interrupted

    def on_signal(number: int) -> None:
        if session.driver.stopped is None:
            _stop(session, display, interrupted(number))
        elif number != signal.SIGHUP:  # one closed terminal may send several
            session.driver.hurry()

    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, *ending_signals())}
    for number in before:
        loop.add_signal_handler(number, on_signal, number)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)


def _stop(session: Session, display: Display, reason: EdgenError, grace: float | None = None) -> None:
    """Begin nothing more. `grace`: seconds that calls in flight are given to end, None for the usual."""
    if session.driver.stopped is not None:
        return
    # A call is in flight until its answer is stored.
    running = sum(admission.running + admission.unstored for admission in session.admissions.values())
    session.driver.stop(reason, grace)
    if running:
        display.note(
            f"Stopping: waiting for {running} calls in flight, so that what is paid for is kept "
            "(a signal stops at once)."
        )


def used_elsewhere(whole: RunDir, own: Path) -> Iterable[Charged]:
    """What the other ledgers of a run have used of the budget they share."""
    from edgen.ledger import charged_at

    return [partial(charged_at, path) for path in whole.ledgers() if path != own]
