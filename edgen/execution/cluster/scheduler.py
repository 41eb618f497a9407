"""Scheduler on a cluster: the online scheduler, whose tasks are run by workers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from edgen.core.errors import CallError, EdgenError, UsageError
from edgen.core.values import Reply, Request, TaskId
from edgen.execution.client.model_client import ModelClient
from edgen.execution.cluster.backend import Cluster
from edgen.execution.cluster.connect import connected
from edgen.execution.cluster.messages import Answered, Asked, Ended, Failure, Take, Unit
from edgen.execution.cluster.pool import Pool, WorkerLink, WorkerLostError
from edgen.execution.online_scheduler import OnlineScheduler
from edgen.execution.scheduler import Work
from edgen.planning.plan import Plan
from edgen.protocols.task import Settled, Spent
from edgen.providers.trust import Consents
from edgen.store.run_folder import RunFolder

_START = ("job.yaml", "inputs")  # what a worker needs of the run's folder


class ClusterScheduler(OnlineScheduler):
    """A Scheduler that runs tasks on the workers of a Ray cluster. `address`: of the cluster, empty for one
    of this machine; `workers`: their number, None for one a core."""

    def __init__(
        self, work: Work, *, cluster: Cluster, address: str, workers: int | None, consents: Consents
    ) -> None:
        super().__init__(work)
        self._cluster, self._address, self._count, self._consents = cluster, address, workers, consents

    async def run(self, units: Iterator[tuple[int, TaskId]]) -> None:
        """Run the units; see Scheduler."""
        tasks = self._work.tasks
        if not isinstance(tasks, Plan) or tasks.rounds.total > 1 or tasks.job.measure_references:
            raise UsageError(
                "--on ray makes conversations without rounds and without measures of one's own. Leave it out."
            )
        first = next(units, None)
        if first is None:
            return await super().run(iter(()))
        files = read_inputs(RunFolder(self._work.ledger.path.parent))
        await self._work.ledger.flush()
        with connected(self._address) as cores:
            count = self._count or cores
            async with Pool(count, files, (self._consents,), self._work.fingerprint) as pool:
                self._cluster.pool = pool
                pool.broken.add_done_callback(self._stop_broken)
                try:
                    await super().run(_again(first, units))
                finally:
                    self._cluster.pool = None

    def _stop_broken(self, broken: asyncio.Future[None]) -> None:
        if broken.cancelled() or (error := broken.exception()) is None:
            return
        said = error if isinstance(error, EdgenError) else EdgenError(f"A worker failed: {error}")
        self.stop(said)
        for link in self._cluster.pool.links if self._cluster.pool is not None else ():
            link.end()

    async def _run_unit(self, unit: Unit) -> None:
        """Let workers run a unit until one brings its outcome."""
        while self.stopped is None and not await self._try_unit(unit):
            pass

    async def _try_unit(self, unit: Unit) -> bool:
        """Let a worker run a unit to its outcome; return False if the worker was lost."""
        pool = self._cluster.pool
        assert pool is not None, "the pool is open while units run"
        link = await pool.pick()
        box: asyncio.Queue[Asked | Ended | None] = asyncio.Queue()
        link.units[unit] = box
        self._cluster.own.set(link)
        try:
            link.send(Take(unit, dict(self._work.ledger.replies(*unit))))
            return await self._converse(link, unit, box)
        except WorkerLostError:
            return False
        finally:
            link.units.pop(unit, None)

    async def _converse(self, link: WorkerLink, unit: Unit, box: asyncio.Queue[Asked | Ended | None]) -> bool:
        work, recorder = self._work, self._recorder
        ask = self._asker
        stand = _Stand()
        while isinstance(message := await box.get(), Asked):
            work.counts.replayed += message.replayed
            request = message.request
            stand.go_on(request, message.key, work.clients[request.role], message.refused)
            if stand.last is not None:
                recorder.count_answer(unit, stand)  # type: ignore[arg-type]
            recorder.usefulness.require_hope()
            try:
                reply = await ask(stand, request)  # type: ignore[arg-type]
            except CallError as failure:
                stand.last = None
                link.send(Answered(unit, Failure.of(failure)))
                continue
            stand.last = (request, reply)
            link.send(Answered(unit, reply))
        if message is None:
            return False
        work.counts.replayed += message.replayed
        stand.end(message)
        if stand.last is not None and message.failure is None:
            stand.request_open = False
            recorder.count_answer(unit, stand)  # type: ignore[arg-type]
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


def read_inputs(run: RunFolder) -> dict[str, bytes]:
    """Return the files of a run that a worker builds its plan from, by name."""
    found = {"job.yaml": run.job.read_bytes()}
    for path in sorted((run.path / "inputs").rglob("*")):
        if path.is_file():
            found[str(path.relative_to(run.path))] = path.read_bytes()
    return found


def _again(first: Unit, others: Iterator[Unit]) -> Iterator[Unit]:
    yield first
    yield from others
