"""The online scheduler on a cluster, where workers run the tasks."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Iterable, Iterator, Mapping
from functools import partial

from edgen.core.errors import CallError, EdgenError
from edgen.core.values import Reply, TaskId
from edgen.execution.client.call import Call
from edgen.execution.cluster.backend import RemoteCalls
from edgen.execution.cluster.connect import ClusterConnection, describe_few_cores, knock, require_ray
from edgen.execution.cluster.link import RemoteRollout
from edgen.execution.cluster.messages import Unit
from edgen.execution.cluster.pool import Pool
from edgen.execution.cluster.shipping import pack
from edgen.execution.cluster.units import Units
from edgen.execution.cluster.worker import HeadBackend, WorkerSetup
from edgen.execution.joined_calls import CallPlace
from edgen.execution.online_scheduler import OnlineScheduler
from edgen.execution.scheduler import Work
from edgen.providers import Backend
from edgen.providers.trust import Consents
from edgen.store.ledger.facts import WorkerCounts

_SHARE = 4  # 1/_SHARE of the calls in flight may share one commit


class Cluster:
    """The workers of one session's scheduler, from its first unit to the end of the command.

    `address`: of the cluster; empty for one on this machine. `workers`: their number; None for one per core.
    `kept`: backends that the head calls. `variables`: environment variables that hold keys.

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
        self.calls = RemoteCalls()
        self._last: dict[str, WorkerCounts] = {}
        self._stack = contextlib.ExitStack()

    @property
    def stands(self) -> dict[str, WorkerCounts]:
        """The counts of the workers, by node and process."""
        return self._last if self.calls.pool is None else self.calls.pool.stands

    async def open(self, work: Work) -> Pool:
        """Return the pool of workers, with the tasks of a session; start it at the first call. Raises
        EdgenError."""
        tasks, pool = work.tasks, self.calls.pool
        packed = pack(tasks)
        if pool is not None:
            pool.equip(packed, work.fingerprint)
            return pool
        connection = self._stack.enter_context(ClusterConnection(self._address, self._count or 1))
        equipment = WorkerSetup(
            settings=tasks.call_settings,
            roles=tuple(work.clients),
            called=tuple(self.calls.wrapped),
            known={name: HeadBackend(dict(one.identity), one.model) for name, one in self._kept.items()},
            consents=self._consents,
            variables=self._variables,
            packed=packed,
        )
        wanted = self._count or connection.cores
        calls = tasks.call_settings.limits.in_flight * max(1, len(self.calls.wrapped))
        count = min(wanted, calls)
        pool = Pool(count, equipment, connection.share, work.fingerprint)
        pool.tell, pool.meet = partial(work.events.tell, "note"), self.calls.meet
        if self._address:
            pool.check_cluster = partial(knock, self._address)
        if count < wanted:
            pool.tell(
                f"{count} of {wanted:,} workers are started, as limits.in_flight allows {calls} calls at once."
            )
        if connection.share == 1 and (few := describe_few_cores(connection.cores, count)):
            pool.tell(few)
        await pool.open(connection.host, connection.cores if connection.share == 1 else count)
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
        self._cluster, self._share = cluster, _SHARE
        self._pool: Pool | None = None  # None before it is open
        self._units: Units | None = None

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
        if (pool := await self._open()) is None:
            return await super().run(iter(()))
        self._pool = pool
        pool.broken.add_done_callback(self._stop_broken)
        if pool.alone:
            self._work.events.tell(
                "note",
                f"The workers only make calls, and this process does the rest: {pool.alone.rstrip('.')}.",
            )
        try:
            await super().run(itertools.chain((first,), units))
        finally:
            pool.broken.remove_done_callback(self._stop_broken)

    async def _open(self) -> Pool | None:
        """Return the pool once its workers have started; None if the run is stopped before."""
        opening = asyncio.create_task(self._cluster.open(self._work))
        try:
            await self._wait_until_stopped(opening)
        finally:
            opening.cancel()
            await asyncio.gather(opening, return_exceptions=True)
        return None if opening.cancelled() else opening.result()

    def _stop_broken(self, broken: asyncio.Future[None]) -> None:
        if broken.cancelled() or (error := broken.exception()) is None:
            return
        assert isinstance(error, EdgenError), "a pool breaks with one"
        self.stop(error)
        if self._units is not None:
            self._units.abandon()

    def stop(self, reason: EdgenError, grace: float | None = None) -> None:
        """Stop the run; see OnlineScheduler."""
        super().stop(reason, grace)
        if self._units is not None:
            self._units.begin_more()

    async def _run_all(self, units: Iterator[Unit], at_once: int) -> None:
        """Run all units at the workers, `at_once` at a time."""
        if self._pool is None or self._pool.alone:
            await super()._run_all(units, at_once)
            return
        plain = self._joined is None and self._work.tasks.sharers == 1
        self._units = Units(self, self._work, self._recorder, self._pool, plain=plain)
        await self._units.run(units, at_once)

    async def ask(self, rollout: RemoteRollout, failed: tuple[Call, CallError] | None) -> Reply:
        """Return the stored reply to a rollout's request. `failed`: see ModelClient.ask. Raises CallError and
        errors that stop the run."""
        self._cluster.calls.home.set(rollout)
        request = rollout.request
        assert request is not None, "there is one"
        if failed is not None:
            return await self._ask_for(rollout, request, (CallPlace(request.address, rollout.key),), failed)
        return await self._asker(rollout, request)
