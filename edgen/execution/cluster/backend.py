"""Backends at the head: each attempt is made by a worker."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar

from edgen.core.errors import CallError, FailureKind
from edgen.core.values import Reply, Request
from edgen.execution.cluster.pool import Pool, WorkerLink
from edgen.providers import Backend
from edgen.providers.base import CountsSlots, servers_of
from edgen.providers.fleet import Fleet


class Cluster:
    """State shared by the backends of a start: the pool, once it is open."""

    def __init__(self) -> None:
        self.pool: Pool | None = None
        self.own: ContextVar[WorkerLink | None] = ContextVar("own", default=None)

    def wrap(self, backends: Mapping[str, Backend]) -> dict[str, Backend]:
        """Return the backends, by their names in the job, with their attempts made by workers."""
        return {name: self._wrap(name, backend) for name, backend in backends.items()}

    def _wrap(self, name: str, backend: Backend) -> Backend:
        each = {url: _RemoteBackend(self, name, url, one) for url, one in servers_of(backend).items()}
        return Fleet(each) if isinstance(backend, Fleet) else next(iter(each.values()))


class _RemoteBackend:
    """A backend whose attempts are made by the worker of the present unit. Questions about the server are
    asked by the head."""

    def __init__(self, cluster: Cluster, name: str, server: str, backend: Backend) -> None:
        self.identity, self.model = backend.identity, backend.model
        self._cluster, self._name, self._server, self._backend = cluster, name, server, backend

    async def complete(self, request: Request) -> Reply:
        """Make one attempt. Raises CallError."""
        pool = self._cluster.pool
        if pool is None:
            raise CallError(FailureKind.SERVER_ERROR, "there are no workers yet", unsent=True)
        return await pool.call(self._cluster.own.get(), self._name, self._server, request)

    async def models(self) -> list[str] | None:
        """Return the names that the service offers. Raises CallError."""
        return await self._backend.models()

    async def slots(self) -> int | None:
        """Return how many calls the server answers at once; None if it does not say. Raises CallError."""
        return await self._backend.slots() if isinstance(self._backend, CountsSlots) else None

    async def aclose(self) -> None:
        """Close the connections of the head."""
        await self._backend.aclose()
