"""Backends at the head, whose attempts are made by workers."""

from __future__ import annotations

import pickle
from collections.abc import Collection, Mapping
from contextvars import ContextVar
from typing import Any, Literal

from edgen.core.errors import CallError, FailureKind
from edgen.core.values import Reply, Request
from edgen.execution.client.form_support import Way
from edgen.execution.client.server_queue import Waiter
from edgen.execution.cluster.link import RemoteRollout, WorkerLink
from edgen.execution.cluster.messages import Asking, AttemptResult, Permit, ServerAnswer, ServerQuestion
from edgen.execution.cluster.pool import Pool
from edgen.providers import Backend, list_servers
from edgen.providers.base import Fleet


class RemoteCalls:
    """The wrapped backends of one start, and the `pool` whose workers make their calls (None before it
    opens). `home`: the rollout that the present asyncio task calls for."""

    def __init__(self) -> None:
        self.pool: Pool | None = None
        self.home: ContextVar[RemoteRollout | None] = ContextVar("home", default=None)
        self.wrapped: dict[str, Backend] = {}
        self._nodes: dict[str, _NodeFleet] = {}

    def wrap(self, backends: Mapping[str, Backend], node_local: Collection[str]) -> dict[str, Backend]:
        """Wrap backends so that workers make their attempts; return them by their names in the job.
        `node_local`: the names of backends with a server on each worker's node."""
        self.wrapped |= backends
        self._nodes |= {name: _NodeFleet(self, name, backends[name]) for name in node_local}
        return {name: self._nodes.get(name) or self._wrap(name, one) for name, one in backends.items()}

    def _wrap(self, name: str, backend: Backend) -> Backend:
        each = {url: RemoteBackend(self, name, url, one) for url, one in list_servers(backend).items()}
        return Fleet(each) if isinstance(backend, Fleet) else next(iter(each.values()))

    def meet(self, link: WorkerLink) -> None:
        """Add the servers on a new worker's node."""
        for name, address in (link.local or {}).items():
            self._nodes[name].meet(address)


def _find_way(request: Request, own: Request) -> Way | None:
    """Return the form in which a unit's own request is sent; None for another request."""
    if request is own:
        return "schema"
    if (request.address, request.choices) != (own.address, own.choices):
        return None
    if own.prose and request.messages is own.prose and request.schema is None:
        return "prose"
    return "no_bounds" if request.messages is own.messages and request.schema != own.schema else None


class _NodeFleet(Fleet):
    """The servers of a node-local backend, one for each node with workers."""

    def __init__(self, calls: RemoteCalls, name: str, backend: Backend) -> None:
        super().__init__({}, like=backend)
        self._calls, self._name = calls, name

    def meet(self, address: str) -> None:
        """Add the server of a node."""
        if address not in self.servers:
            self.servers[address] = RemoteBackend(self._calls, self._name, address, self._first)

    def find_nearest(self) -> str | None:
        """Return the address of the server on the node of the present unit's worker; None without one."""
        home = self._calls.home.get()
        return None if home is None else (home.link.local or {}).get(self._name)

    async def aclose(self) -> None:
        """Close the connections of the head."""
        await self._first.aclose()


class RemoteBackend:
    """A backend whose attempts and questions workers make. The present unit's worker makes an attempt if it
    reaches the server."""

    def __init__(self, calls: RemoteCalls, name: str, server: str, backend: Backend) -> None:
        self.identity, self.model = backend.identity, backend.model
        self._calls, self._name, self._server, self._backend = calls, name, server, backend

    def is_reached_by(self, link: WorkerLink) -> bool:
        """Return whether a worker reaches the server."""
        return (link.local or {}).get(self._name, self._server) == self._server

    def _pool(self) -> Pool:
        if (pool := self._calls.pool) is None:
            raise CallError(FailureKind.SERVER_ERROR, "there are no workers yet", unsent=True)
        return pool

    async def complete(self, request: Request) -> Reply:
        """Make one attempt. Raises CallError."""
        pool = self._pool()
        home, unit, way = self._calls.home.get(), None, None
        if home is not None and not home.link.lost and self.is_reached_by(home.link):
            link, unit = home.link, home.unit
            assert home.request is not None, "its call is made"
            way = _find_way(request, home.request)
        else:
            link = await pool.pick(self.is_reached_by)
        sent = pickle.dumps(request) if way is None else b""
        number = pool.assign_number()
        permit = Permit(number, self._name, self._server, unit, way or "schema", sent, link.beat)
        called: AttemptResult = await link.ask(permit)
        reply = called.reply
        assert reply is not None, "it did not fail"
        if home is not None and way is not None:
            home.got = reply
        return reply

    def permit(
        self, rollout: RemoteRollout, way: Way | Literal[""], waiter: Waiter[Any], *, first: bool
    ) -> None:
        """Permit a rollout's worker one attempt at its open request, in a `way` of forms; the `waiter` gets
        the result. `first`: give the unit with the permit, for its first request; the way may be unknown
        (empty). Raises WorkerLostError."""
        link, pool = rollout.link, self._calls.pool
        assert pool is not None, "the rollout is at a worker"
        number = pool.assign_number()
        permit = Permit(number, self._name, self._server, rollout.unit, way, heard=link.beat)
        link.permit(permit, waiter, first=first)

    async def models(self) -> list[str] | None:
        """Return the names of the models that the service offers; None if it does not list them. Raises
        CallError."""
        names: list[str] | None = await self._ask("models")
        return names

    async def slots(self) -> int | None:
        """Return how many calls the server answers at once; None if it does not say. Raises CallError."""
        count: int | None = await self._ask("slots")
        return count

    async def load(self) -> int | None:
        """Return the number of calls from all clients that the server has; None if it does not say."""
        try:
            count: int | None = await self._ask("load")
        except CallError:
            return None
        return count

    async def _ask(self, about: Asking) -> Any:
        """Return the server's answer to a question about itself. Raises CallError."""
        pool = self._pool()
        link = await pool.pick(self.is_reached_by)
        told: ServerAnswer = await link.ask(
            ServerQuestion(pool.assign_number(), self._name, self._server, about)
        )
        return told.value

    async def aclose(self) -> None:
        """Close the connections of the head."""
        await self._backend.aclose()
