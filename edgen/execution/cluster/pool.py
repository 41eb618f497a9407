"""The head's side of its workers: messages, deaths, silence, replacements."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

from edgen.core.errors import CallError, EdgenError, FailureKind, UsageError
from edgen.core.values import Reply, Request
from edgen.core.version import __version__
from edgen.execution.cluster.messages import (
    PATIENCE,
    Asked,
    Broken,
    Call,
    Called,
    Ended,
    Failure,
    Message,
    Unit,
)

_FIRST = 120.0  # seconds for a worker to start
_MOST_LOSSES = 100  # of workers in a row without an outcome


class WorkerLostError(Exception):
    """The worker of a unit died or is silent."""


class WorkerLink:
    """One worker: its actor, what waits to be sent, and who waits for its messages."""

    def __init__(self, actor: Any) -> None:
        self.actor = actor
        self.units: dict[Unit, asyncio.Queue[Asked | Ended | None]] = {}
        self.calls: dict[int, asyncio.Future[Reply | Failure]] = {}
        self.lost = False
        self._inbox: list[Message] = []
        self._more = asyncio.Event()

    def send(self, message: Message) -> None:
        """Queue a message. Raises WorkerLostError."""
        if self.lost:
            raise WorkerLostError
        self._inbox.append(message)
        self._more.set()

    async def take_inbox(self) -> list[Message]:
        """Return the queued messages, as soon as there are some."""
        await self._more.wait()
        sent, self._inbox = self._inbox, []
        self._more.clear()
        return sent

    def end(self) -> None:
        """End every wait for the worker, which is lost."""
        self.lost = True
        for box in self.units.values():
            box.put_nowait(None)
        said = Failure("server_error", "the worker that made the call was lost", None, None, unsent=False)
        for waiting in self.calls.values():
            if not waiting.done():
                waiting.set_result(said)
        self.calls.clear()


class Pool:
    """So many workers. `files`: those of the run, by name; `options`: Worker's further arguments."""

    def __init__(self, count: int, files: Mapping[str, bytes], options: tuple[Any, ...], under: str) -> None:
        self._count, self._files, self._options, self._under = count, files, options, under
        self.links: list[WorkerLink] = []
        self._loops: set[asyncio.Task[None]] = set()
        self._calls = 0
        self._losses = 0
        self._ready = asyncio.Event()
        self.broken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def __aenter__(self) -> Pool:
        try:
            await asyncio.gather(*(self._start() for _ in range(self._count)))
        except BaseException:
            await self.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End all workers."""
        import ray

        for loop in [*self._loops]:
            loop.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
        for link in self.links:
            with contextlib.suppress(Exception):
                ray.kill(link.actor)
        self.links.clear()

    async def _start(self) -> None:
        """Start a worker and wait until it is ready. Raises UsageError if it does not fit."""
        import ray

        from edgen.execution.cluster.worker import Worker

        remote: Any = ray.remote(num_cpus=1, max_restarts=0)(Worker)
        actor = remote.remote(self._files, *self._options)
        link = WorkerLink(actor)
        self.links.append(link)
        async with asyncio.timeout(_FIRST):
            said = await actor.begin.remote()
        if "problem" in said:
            raise UsageError(f"A worker cannot do this job: {said['problem']}")
        if said["edgen"] != __version__:
            raise UsageError(f"A worker has edgen {said['edgen']}, the head {__version__}. Install the same.")
        if said["fingerprint"] != self._under:
            raise UsageError(
                "A worker reads the job in another way than the head. Install the same plugins on all nodes."
            )
        loop = asyncio.create_task(self._serve(link))
        self._loops.add(loop)
        loop.add_done_callback(self._loops.discard)
        self._ready.set()

    async def pick(self) -> WorkerLink:
        """Return the worker with the fewest units, when there is one."""
        while True:
            if live := [link for link in self.links if not link.lost]:
                return min(live, key=lambda link: len(link.units))
            self._ready.clear()
            await self._ready.wait()

    async def call(self, own: WorkerLink | None, backend: str, server: str, request: Request) -> Reply:
        """Let a worker make one attempt: `own`, or another if that is lost. Raises CallError."""
        link = own if own is not None and not own.lost else await self.pick()
        self._calls += 1
        waiting: asyncio.Future[Reply | Failure] = asyncio.get_running_loop().create_future()
        link.calls[number := self._calls] = waiting
        try:
            link.send(Call(number, backend, server, request))
            reply = await waiting
        except WorkerLostError:
            raise CallError(FailureKind.SERVER_ERROR, "the worker was lost", unsent=True) from None
        finally:
            link.calls.pop(number, None)
        if isinstance(reply, Failure):
            raise reply.error
        return reply

    async def _serve(self, link: WorkerLink) -> None:
        """Exchange messages with a worker until it is lost; then replace it."""
        import ray

        sending = asyncio.create_task(self._speak(link))
        hearing = asyncio.create_task(self._listen(link))
        try:
            await asyncio.wait({sending, hearing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sending.cancel()
            hearing.cancel()
            await asyncio.gather(sending, hearing, return_exceptions=True)
            link.end()
        self.links.remove(link)
        with contextlib.suppress(Exception):
            ray.kill(link.actor)
        self._losses += 1
        try:
            if self._losses > _MOST_LOSSES:
                raise UsageError(f"{self._losses} workers in a row were lost. Look at the cluster's logs.")
            await self._start()
        except (EdgenError, TimeoutError, ray.exceptions.RayError) as error:
            if not self.broken.done() and not any(not one.lost for one in self.links):
                self.broken.set_exception(error)

    async def _speak(self, link: WorkerLink) -> None:
        while True:
            inbox = await link.take_inbox()
            async with asyncio.timeout(PATIENCE):
                await link.actor.tell.remote(inbox)

    async def _listen(self, link: WorkerLink) -> None:
        while True:
            async with asyncio.timeout(PATIENCE):
                messages = await link.actor.listen.remote()
            for message in messages:
                self._hear(link, message)

    def _hear(self, link: WorkerLink, message: Message) -> None:
        match message:
            case Asked() | Ended():
                if isinstance(message, Ended):
                    self._losses = 0
                if (box := link.units.get(message.unit)) is not None:
                    box.put_nowait(message)
            case Called(number, reply):
                waiting = link.calls.get(number)
                if waiting is not None and not waiting.done():
                    waiting.set_result(reply)
            case Broken(said, fault):
                if not self.broken.done():
                    self.broken.set_exception(EdgenError(said) if said else RuntimeError(fault))
