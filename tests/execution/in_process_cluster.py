"""A cluster without Ray: its workers are objects of this process, and messages are encoded as on a wire."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from edgen.execution.cluster.backend import RemoteCalls
from edgen.execution.cluster.link import WorkerLink
from edgen.execution.cluster.messages import Heartbeat
from edgen.execution.cluster.pool import Pool
from edgen.execution.cluster.scheduler import Cluster
from edgen.execution.cluster.wire import _encode as encode
from edgen.execution.cluster.wire import decode_to_head, decode_to_worker
from edgen.execution.cluster.worker import Worker, WorkerSetup
from edgen.execution.scheduler import Work
from edgen.execution.session import make_clients
from edgen.providers import Backend
from edgen.providers.trust import Consents

GATHER = 0.002  # seconds that a message waits for others


class End:
    """One end of a connection: the other end receives what this one sends, several messages at once."""

    def __init__(self, decode: Callable[[bytes], list[Any]], hear: Callable[[list[Any]], None]) -> None:
        self._decode, self._hear = decode, hear
        self._waiting: list[Any] = []
        self.closed = False
        self.heard = 0.0

    def send(self, message: Any) -> None:
        if not self._waiting:
            asyncio.get_running_loop().call_later(GATHER, self._flush)
        self._waiting.append(message)

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        if not self.closed:
            self._hear(self._decode(encode(waiting)))

    def close(self) -> None:
        self.closed = True


class InProcessCluster(Cluster):
    """A cluster whose workers call `backends` in this process."""

    def __init__(self, backends: Mapping[str, Backend], workers: int = 2) -> None:
        self.calls = RemoteCalls()
        self._backends, self._count, self._last = dict(backends), workers, {}
        self.wrapped = self.calls.wrap(backends, [])
        self.workers: list[Worker] = []
        self.heard: Counter[type] = Counter()  # messages to the head

    async def open(self, work: Work) -> Pool:
        """Return the workers."""
        if self.calls.pool is None:
            nothing = WorkerSetup(work.tasks.call_settings, (), (), {}, Consents(), (), b"")
            self.calls.pool = Pool(self._count, nothing, 1.0, work.fingerprint)
            for _ in range(self._count):
                self.add(work)
        return self.calls.pool

    def add(self, work: Work) -> WorkerLink:
        """Add a worker."""
        pool = self.calls.pool
        assert pool is not None, "the cluster is open"
        pool._workers += 1
        worker, link = Worker(), WorkerLink(None, pool._workers)

        def hear(messages: list[Any]) -> None:
            if not link.lost:
                self.heard.update(map(type, messages))
                pool._hear(link, messages)

        to_head = End(decode_to_head, hear)
        link.wire = End(decode_to_worker, lambda messages: worker._hear(None, messages))  # type: ignore
        link.local, link.pid, link.node = {}, link.number, "here"
        settings = work.tasks.call_settings
        vars(worker).update(
            _wire=to_head,
            _tasks=work.tasks,
            _backends=self._backends,
            _clients=make_clients(settings, self._backends, tuple(work.clients)),
        )
        to_head.send(
            Heartbeat(math.inf)
        )  # leases never end: a busy machine may halt this process for longer than one
        pool.links.append(link)
        pool._ready.set()
        self.workers.append(worker)
        return link

    def lose(self, work: Work) -> None:
        """Lose the first worker, and add another one."""
        pool = self.calls.pool
        assert pool is not None, "the cluster is open"
        link = pool.links.pop(0)
        link.end()
        self.add(work)

    async def aclose(self) -> None:
        """End the workers."""
        for worker in self.workers:
            worker._wire.close()
            for task in worker._running:
                task.cancel()
