"""Scheduler on a cluster: the online scheduler, whose tasks are run by workers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from edgen.core.errors import CallError, EdgenError
from edgen.core.values import Reply, Request, TaskId
from edgen.execution.client.model_client import ModelClient
from edgen.execution.cluster.backend import Calls, Home
from edgen.execution.cluster.connect import Connection, require_ray
from edgen.execution.cluster.messages import Answered, Asked, Ended, Failure, Take, Unit
from edgen.execution.cluster.pool import Box, Pool, WorkerLink, WorkerLostError
from edgen.execution.cluster.shipping import pack
from edgen.execution.cluster.worker import Equipment, Known
from edgen.execution.online_scheduler import OnlineScheduler
from edgen.execution.rollout import end_task
from edgen.execution.scheduler import Work
from edgen.protocols.task import Settled, Spent
from edgen.providers import Backend
from edgen.providers.trust import Consents
from edgen.store.ledger.facts import WorkerCounts


class Cluster:
    """The workers of one session's scheduler, from its first unit to the end of the command.

    `address`: of the cluster, empty for one of this machine; `workers`: their number, None for one a core;
    `kept`: backends that are called by the head; `variables`: those of the environment that hold keys.

    Raises InputError if Ray is not installed.
    """

    def __init__(
        self,
        address: str,
        workers: int | None,
        consents: Consents,
        kept: Mapping[str, Backend],
        variables: Iterable[str] = (),
    ) -> None:
        require_ray()
        self._address, self._count, self._consents, self._kept = address, workers, consents, kept
        self._variables = tuple(sorted(variables))
        self.calls = Calls()
        self._last: dict[str, WorkerCounts] = {}
        self._stack = contextlib.ExitStack()

    @property
    def stands(self) -> dict[str, WorkerCounts]:
        """The counts of the workers, by node and process."""
        return self._last if self.calls.pool is None else self.calls.pool.stands

    async def open(self, work: Work) -> Pool:
        """Return the workers, with the tasks of a session. Raises EdgenError."""
        tasks, pool = work.tasks, self.calls.pool
        packed = pack(tasks)
        if pool is not None:
            pool.equip(packed, work.fingerprint)
            return pool
        connection = self._stack.enter_context(Connection(self._address, self._count or 1))
        equipment = Equipment(
            settings=tasks.call_settings,
            roles=tuple(work.clients),
            called=tuple(self.calls.wrapped),
            known={name: Known(dict(one.identity), one.model) for name, one in self._kept.items()},
            consents=self._consents,
            variables=self._variables,
            packed=packed,
            address=("", 0),
            secret=b"",
        )
        pool = Pool(self._count or connection.cores, equipment, connection.share, work.fingerprint)
        pool.tell, pool.meet = partial(work.events.tell, "note"), self.calls.meet
        await pool.open(connection.host)
        self.calls.pool = pool
        return pool

    async def aclose(self) -> None:
        """End the workers, and leave the cluster."""
        if self.calls.pool is not None:
            await self.calls.pool.aclose()
            self._last = self.calls.pool.stands
            self.calls.pool = None
        self._stack.close()


class ClusterScheduler(OnlineScheduler):
    """A Scheduler that runs tasks on the workers of a Ray cluster."""

    def __init__(self, work: Work, cluster: Cluster) -> None:
        super().__init__(work)
        self._cluster = cluster
        self._pool: Pool

    @property
    def workers(self) -> Mapping[str, WorkerCounts]:
        """The worker processes by node and process."""
        return self._cluster.stands

    async def run(self, units: Iterator[tuple[int, TaskId]]) -> None:
        """Run the units; see Scheduler."""
        first = next(units, None)
        if first is None:
            return await super().run(iter(()))
        await self._work.ledger.flush()
        self._pool = await self._cluster.open(self._work)
        self._pool.broken.add_done_callback(self._stop_broken)
        if self._pool.alone:
            self._work.events.tell(
                "note",
                f"The workers only make calls, and this process does the rest: {self._pool.alone.rstrip('.')}.",
            )
        try:
            await super().run(_again(first, units))
        finally:
            self._pool.broken.remove_done_callback(self._stop_broken)

    def _stop_broken(self, broken: asyncio.Future[None]) -> None:
        if broken.cancelled() or (error := broken.exception()) is None:
            return
        self.stop(error if isinstance(error, EdgenError) else EdgenError(f"A worker failed: {error}"))
        for link in self._pool.links:
            link.end()

    async def _run_unit(self, unit: Unit) -> None:
        """Let workers run a unit until one brings its outcome."""
        if self._pool.alone:
            await super()._run_unit(unit)
            return
        while self.stopped is None and not await self._try_unit(unit):
            pass

    async def _try_unit(self, unit: Unit) -> bool:
        """Let a worker run a unit to its outcome; return False if the worker was lost."""
        link = await self._pool.pick()
        box = Box()
        link.units[unit] = box
        try:
            link.send(Take(unit, dict(self._work.ledger.replies(*unit))))
            return await self._converse(link, unit, box)
        except WorkerLostError:
            return False
        finally:
            link.units.pop(unit, None)
            link.got.pop(unit, None)
            self._cluster.calls.home.set(None)

    async def _converse(self, link: WorkerLink, unit: Unit, box: Box) -> bool:
        work, recorder, home = self._work, self._recorder, self._cluster.calls.home
        stand = _Stand()
        while isinstance(message := await box.get(), Asked):
            work.counts.replayed += message.replayed
            request = message.request
            stand.go_on(request, message.key, work.clients[request.role], message.refused)
            if stand.last is not None:
                recorder.count_answer(unit, stand)  # type: ignore[arg-type]
            recorder.usefulness.require_hope()
            home.set(Home(link, unit, request))
            try:
                reply = await self._asker(stand, request)  # type: ignore[arg-type]
            except CallError as failure:
                stand.last = None
                link.send(Answered(unit, None, Failure.of(failure)))
                continue
            stand.last = (request, reply)
            if link.got.pop(unit, None) is not reply:
                link.send(Answered(unit, reply))
        if message is None:
            return False
        work.counts.replayed += message.replayed
        stand.end(message)
        if stand.last is not None and message.failure is None:
            stand.request_open = False
            recorder.count_answer(unit, stand)  # type: ignore[arg-type]
        await end_task(work, unit)
        if message.failure is not None:
            recorder.fail(unit, stand, message.failure.error)  # type: ignore[arg-type]
        else:
            recorder.settle(unit, stand)  # type: ignore[arg-type]
        return True


class _Stand:
    """The head's view of a rollout that runs at a worker: what OutcomeRecorder and the calls need of it."""

    client: ModelClient
    key: bytes

    def __init__(self) -> None:
        self.asked: Request | None = None
        self.request_open = True
        self.last: tuple[Request, Reply] | None = None
        self.refused = ""
        self.fresh = 0
        self.spent = Spent()
        self.result: Any = None
        self.task: Any = None

    @property
    def request(self) -> Request | None:
        """The open request; None at the end."""
        return self.asked if self.request_open else None

    def go_on(self, request: Request, key: bytes, client: ModelClient, refused: str) -> None:
        """Take the next request."""
        self.asked, self.key, self.client, self.refused = request, key, client, refused

    def end(self, ended: Ended) -> None:
        """Take the outcome."""
        self.spent, self.refused = ended.spent, ended.refused
        self.task = _EndedTask(ended.group, ended.settled)


class _EndedTask:
    """A task whose outcome is known."""

    def __init__(self, group: int, settled: Settled | None) -> None:
        self.group = group
        self._settled = settled

    def settled(self, _result: Any, _spent: Spent) -> Settled:
        """Return the outcome."""
        assert self._settled is not None, "a task that was answered"
        return self._settled


def _again(first: Unit, others: Iterator[Unit]) -> Iterator[Unit]:
    yield first
    yield from others
