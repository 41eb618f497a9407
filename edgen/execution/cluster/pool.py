"""The head's pool of workers: it starts them, reads their messages, and replaces dead or silent ones."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import platform
import secrets
from collections.abc import Callable
from typing import Any

from edgen.core.errors import CallError, EdgenError, FailureKind, ProviderError, UsageError
from edgen.core.version import __version__
from edgen.execution.cluster.link import WorkerLink, WorkerLostError
from edgen.execution.cluster.messages import (
    PATIENCE,
    AttemptResult,
    FirstReply,
    Heartbeat,
    Hello,
    OpenRequest,
    ServerAnswer,
    SetTasks,
    UnitOutcome,
    WorkerFailure,
)
from edgen.execution.cluster.wire import Wire, compute_frame_interval, decode_to_head
from edgen.execution.cluster.worker import WorkerSetup
from edgen.store.ledger.facts import WorkerCounts

_FIRST = 120.0  # seconds for a worker to start
_TRIES = 3  # attempts to start a worker
_PAUSE = 10.0  # seconds between two tries to replace a worker
_LOOK = 1.0  # seconds between two looks for silent workers
_MOST_LOSSES = 100  # maximum losses of workers in a row without an outcome


class Pool:
    """The workers of a start. `count`: their number. `equipment`: their setup. `share`: share of a core that
    each claims. `under`: fingerprint of the head's tasks. `alone`: why workers cannot take the tasks and only
    make calls; empty if they can."""

    def __init__(self, count: int, equipment: WorkerSetup, share: float, under: str) -> None:
        self._count, self._share, self._under = count, share, under
        self._equipment = equipment._replace(apart=compute_frame_interval(count))
        self.links: list[WorkerLink] = []
        self.tell: Callable[[str], None] = lambda _text: None
        self.meet: Callable[[WorkerLink], None] = lambda _link: None  # called with each new worker
        self.check_cluster: Callable[[], None] = lambda: None
        """Raises EdgenError if the cluster's head is gone. Ray itself would wait for it, and block the event
        loop."""
        self._past: dict[str, WorkerCounts] = {}  # ended workers
        self.alone = ""
        self._background: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._calls = self._workers = self._losses = 0
        self._ready = asyncio.Event()
        self.broken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def open(self, host: str, room: int) -> None:
        """Listen at an address of this node, and start the workers. Return once as many have started as the
        cluster has `room` for; the others start when nodes join. Raises UsageError if a worker does not fit
        the head, ProviderError if it does not start."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Wire(
                decode_to_head,
                self._hear_first,
                lambda _wire: None,
                trusted=False,
                apart=self._equipment.apart,
            ),
            host,
            0,
        )
        port = self._server.sockets[0].getsockname()[1]
        self._equipment = self._equipment._replace(address=(host, port), secret=secrets.token_bytes(32))
        first = min(self._count, room)
        starts = [asyncio.create_task(self._start()) for _ in range(first)]
        try:
            await asyncio.gather(*starts)
        except BaseException:
            for task in starts:
                task.cancel()
            await asyncio.gather(*starts, return_exceptions=True)
            await self.aclose()
            raise
        self._keep(self._watch())
        for _ in range(self._count - first):
            self._keep(self._replace())

    async def aclose(self) -> None:
        """End all workers."""
        import ray

        for task in [*self._background]:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        for link in self.links:
            self._past[link.name] = link.stand
            link.end()
            with contextlib.suppress(Exception):
                ray.kill(link.actor)
        self.links.clear()
        if self._server is not None:
            self._server.close()
        if not self.broken.cancel() and not self.broken.cancelled():
            self.broken.exception()  # marks it as retrieved, so that asyncio does not warn

    def equip(self, packed: bytes, under: str) -> None:
        """Give the workers other tasks."""
        if packed == self._equipment.packed:
            return
        self._equipment, self._under = self._equipment._replace(packed=packed), under
        for link in self.links:
            with contextlib.suppress(WorkerLostError):
                link.send(SetTasks(packed))

    @property
    def stands(self) -> dict[str, WorkerCounts]:
        """The counts of all workers, by node and process, the ended ones first."""
        return {**self._past, **{link.name: link.stand for link in self.links if link.pid}}

    def assign_number(self) -> int:
        """Return the number of a new call."""
        self._calls += 1
        return self._calls

    def _keep(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    # -- starts and ends -------------------------------------------------------------------------

    async def _start(self) -> None:
        """Start a worker and wait until it is ready. Raises UsageError if it does not fit the head,
        ProviderError if it dies _TRIES times."""
        for tries_left in reversed(range(_TRIES)):
            try:
                await self._start_once()
            except ProviderError as error:
                if not tries_left:
                    raise
                self.tell(f"{error} Another one is started.")
            else:
                return

    async def _start_once(self) -> None:
        import ray

        from edgen.execution.cluster.worker import Worker

        remote: Any = ray.remote(num_cpus=self._share, max_restarts=0, scheduling_strategy="SPREAD")(Worker)
        self._workers += 1
        link = WorkerLink(remote.remote(), self._workers)
        self.links.append(link)
        try:
            await self._begin(link)
        except BaseException:
            link.end()
            if link in self.links:
                self.links.remove(link)
            with contextlib.suppress(Exception):
                ray.kill(link.actor)
            raise
        self.meet(link)
        self._ready.set()

    async def _begin(self, link: WorkerLink) -> None:
        """Wait until a worker is ready."""
        import ray

        try:
            async with asyncio.timeout(_FIRST):
                said = await link.actor.describe.remote()
                _require_same(said)
                link.pid, link.node = said["pid"], said["node"]
                begun = await link.actor.begin.remote(link.number, self._equipment)
                if "problem" in begun:
                    raise UsageError(f"A worker on {link.node} cannot do this job: {begun['problem']}")
                await link.arrived.wait()
        except TimeoutError:
            raise UsageError(
                f"The cluster did not start a worker within {_FIRST:.0f} s. See `ray status` for its free "
                f"cores; each worker takes one. Use fewer with --workers."
            ) from None
        except ray.exceptions.RayError as error:
            raise _explain(error) from None
        if link.lost:
            raise ProviderError(f"A worker on {link.node} died while it started.")
        if "alone" in begun:
            self.alone = begun["alone"]
        elif begun["fingerprint"] != self._under:
            raise UsageError(
                f"A worker on {link.node} reads the job in another way than the head. Install the same "
                "plugins on all nodes."
            )
        for name in begun["without"]:
            self.tell(
                f"No server answers on the node {link.node} (backends.{name}.base_url is node-local: "
                f"{begun['local'][name]}). Its workers' calls go to the servers of other nodes until one is "
                "started there."
            )
        link.local = begun["local"]

    async def _watch(self) -> None:
        """Give up workers that are silent."""
        clock = asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(_LOOK)
            for link in [*self.links]:
                if link.wire is not None and not link.lost and clock() - link.wire.heard > PATIENCE:
                    self._lose(link)

    def _lose(self, link: WorkerLink) -> None:
        """Give up a worker, and replace it."""
        import ray

        if link.lost:
            return
        if link.local is None:  # still starting: `_start` tries again
            link.end()
            link.arrived.set()
            return
        calls = len(link.calls)
        link.end()
        self.links.remove(link)
        self._past[link.name] = link.stand
        self.tell(
            f"The worker {link.name} was lost with {calls} calls in flight; another one takes its place."
        )
        with contextlib.suppress(Exception):
            ray.kill(link.actor)
        self._losses += 1
        self._keep(self._replace())

    async def _replace(self) -> None:
        """Start a worker in the place of a lost one. Try until it succeeds; give up if no other worker is
        ready."""
        told = ""
        while self._losses <= _MOST_LOSSES:
            last = not self._is_at_work
            try:
                await asyncio.to_thread(self.check_cluster)
                await self._start()
            except EdgenError as error:
                if last and not self._is_at_work:
                    self._break(error)
                    return
                if str(error) != told:
                    told = str(error)
                    self.tell(f"{told} The other workers go on, and edgen tries again.")
                await asyncio.sleep(_PAUSE)
            else:
                return
        if not self._is_at_work:
            self._break(UsageError(f"{self._losses} workers in a row were lost. Look at the cluster's logs."))

    @property
    def _is_at_work(self) -> bool:
        return any(link.ready for link in self.links)

    def _break(self, error: EdgenError) -> None:
        if not self.broken.done():
            self.broken.set_exception(error)

    async def pick(self, fits: Callable[[WorkerLink], bool] = lambda _link: True) -> WorkerLink:
        """Wait for a ready worker; return the one with the fewest units and calls that `fits`. Raises
        CallError if no ready worker fits."""
        while not (live := [link for link in self.links if link.ready]):
            self._ready.clear()
            await self._ready.wait()
        if fitting := [*filter(fits, live)]:
            return min(fitting, key=lambda link: (len(link.units), len(link.calls)))
        raise CallError(FailureKind.CONNECTION, "no worker is left on the node of this server", unsent=True)

    # -- messages --------------------------------------------------------------------------------

    def _hear_first(self, wire: Wire, messages: list[Any]) -> None:
        """Handle the first frame of a connection, which must prove by the secret that it comes from a
        worker."""
        hello = messages[0] if messages else None
        link = next(
            (one for one in self.links if isinstance(hello, Hello) and one.number == hello.number), None
        )
        if link is None or link.wire is not None or not isinstance(hello, Hello):
            wire.close()
            return
        if not hmac.compare_digest(hello.secret, self._equipment.secret):
            wire.close()
            return
        wire.trust()
        wire.follow(lambda _wire, heard: self._hear(link, heard), lambda _wire: self._lose(link))
        link.wire = wire
        link.arrived.set()
        self._hear(link, messages[1:])

    def _hear(self, link: WorkerLink, messages: list[Any]) -> None:
        units, counts = link.units, link.counts
        for message in messages:
            kind = type(message)  # compared by identity for speed: most of the head's messages pass here
            if kind is OpenRequest or kind is UnitOutcome:
                if kind is UnitOutcome:
                    self._losses = 0
                    counts["ended"] += 1
                if (rollout := units.get(message.unit)) is not None:
                    rollout.put(message)
            elif kind is FirstReply or kind is AttemptResult:
                if kind is FirstReply and message.ended is not None:
                    self._losses = 0
                    counts["ended"] += 1
                if message.reply is not None:
                    counts["answers"] += 1
                elif message.failure is not None:
                    counts["failures"] += 1
                link.take(message)
            elif kind is ServerAnswer:
                link.take(message)
            elif kind is Heartbeat:
                link.beat = message.at
            elif kind is WorkerFailure:
                self._break(message.error)


def _require_same(said: dict[str, Any]) -> None:
    """Raise UsageError unless a worker has the head's versions."""
    for what, ours in (("edgen", __version__), ("Python", platform.python_version())):
        if said[what] != ours:
            raise UsageError(
                f"A worker on {said['node']} has {what} {said[what]}, the head {ours}. Install the same on "
                "all nodes."
            )


def _explain(error: Exception) -> EdgenError:
    """Return the error about a worker that did not start: UsageError if a module is missing, else
    ProviderError."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    module = next((line for line in lines if "ModuleNotFoundError" in line), None)
    if module is not None:
        return UsageError(
            f"A worker could not start: {module.rstrip('.')}. Install edgen with the extra `ray` on all "
            "nodes."
        )
    said = (lines or ["it died"])[0].rstrip(".")
    return ProviderError(f"A worker could not start: {said}. Look at the cluster's logs.")
