"""What the commands that ask models share: backends, a run's folder held, signals, progress."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from edgen.cli.progress import Display, progress
from edgen.cli.watch import Watch
from edgen.errors import RunError, StoppedError, UsageError

if TYPE_CHECKING:
    from edgen.backends import Backend
    from edgen.backends.batches import Batches
    from edgen.cli.options import Via
    from edgen.config import BackendConfig, Job, Limits
    from edgen.engine.rounds import BatchWay
    from edgen.engine.session import Charged, Session
    from edgen.rundir import RunDir


@contextlib.asynccontextmanager
async def made_backends(
    configs: dict[str, BackendConfig], limits: Limits
) -> AsyncIterator[dict[str, Backend]]:
    """A backend for each configuration, closed in the end."""
    from edgen.backends import make

    services = {(type(config), getattr(config, "base_url", None)) for config in configs.values()}
    _allow_connections(limits.in_flight, len(services))
    backends: dict[str, Backend] = {}
    try:
        for name, config in configs.items():
            backends[name] = make(
                config, timeout=limits.timeout, connections=limits.in_flight, environ=os.environ
            )
        yield backends
    finally:
        for backend in backends.values():
            await backend.aclose()


def _allow_connections(in_flight: int, services: int) -> None:
    """See that the system lets us have a connection per call in flight, to each service."""
    import resource

    needed = in_flight * services + 64
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise UsageError(
            f"limits.in_flight is {in_flight}{f' for each of {services} services' if services > 1 else ''}, but this system lets a process open {hard} files. "
            f"Lower it (--set limits.in_flight={max(1, (hard - 64) // services)}) or raise the limit (ulimit -n)."
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


@contextlib.contextmanager
def worded(path: Path) -> Iterator[None]:
    """What the operating system says about the run's folder, as sentences."""
    try:
        yield
    except OSError as problem:
        if problem.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise StoppedError(
                f"{path}: there is no room left on the disk ({problem.strerror}). "
                "Make room and start the same command again."
            ) from None
        if problem.errno in (errno.EMFILE, errno.ENFILE):
            raise UsageError(
                "this system lets a process open too few files for so many calls at once. Lower it "
                "(--set limits.in_flight=32) or raise the limit (ulimit -n). What was answered is stored."
            ) from None
        raise RunError(f"{path}: the run folder cannot be written ({problem.strerror}).") from None


@contextlib.asynccontextmanager
async def batch_way(
    job: Job, backends: dict[str, Backend], via: Via, write_only: Path | None = None
) -> AsyncIterator[BatchWay | None]:
    """The batch services of the backends, closed in the end; None where calls are made one by one."""
    if via == "online":
        yield None
        return
    from edgen.backends.batches import batches
    from edgen.engine.rounds import BatchWay

    services: dict[str, Batches] = {}
    try:
        for name, backend in backends.items():
            services[name] = batches(job.backends[name], backend, environ=os.environ)
        yield BatchWay(services, write_only)
    finally:
        for service in services.values():
            await service.aclose()


async def supervised(
    session: Session,
    name: str,
    work: Callable[[Display], Awaitable[None]],
    words: tuple[str, str],
    watch: Watch = Watch(),  # noqa: B008 - frozen
) -> None:
    """Do the work with its progress shown; a signal stops it cleanly, a second one at once.

    `words` are what the two kinds of outcomes are called.
    """
    from edgen.engine.session import interrupted

    driver = session.driver
    async with progress(session.tally, name, driver, words) as display:

        def on_signal(number: int) -> None:
            if driver.stopped is not None:
                driver.hurry()
                return
            running = driver.in_flight
            driver.stop(interrupted(number))
            if running:
                display.note(
                    f"Stopping: waiting for {running} calls in flight, so that what is paid for is kept "
                    "(once more: stop at once)."
                )

        loop = asyncio.get_running_loop()
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        for number in before:
            loop.add_signal_handler(number, on_signal, number)
        try:
            await work(display)
        finally:
            display.stage = ""
            for number, handler in before.items():
                loop.remove_signal_handler(number)
                signal.signal(number, handler)


def used_elsewhere(whole: RunDir, own: Path) -> Iterable[Charged]:
    """What the other ledgers of a run have used of the budget they share."""
    from edgen.ledger import charged_at

    return [partial(charged_at, path) for path in whole.ledgers() if path != own]
