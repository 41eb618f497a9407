"""Backends at the head: each attempt is made by a worker."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from contextvars import ContextVar
from typing import NamedTuple

from edgen.core.errors import CallError, FailureKind
from edgen.core.values import Reply, Request
from edgen.execution.client.form_support import Way
from edgen.execution.cluster.messages import Permit, Unit
from edgen.execution.cluster.pool import Pool, WorkerLink
from edgen.providers import Backend
from edgen.providers.base import CountsLoad, CountsSlots, servers_of
from edgen.providers.fleet import Fleet


class Home(NamedTuple):
    """The worker that runs a unit, with the unit and its open request."""

    link: WorkerLink
    unit: Unit
    request: Request


class Calls:
    """Calls of the backends of a start, made by the workers of its `pool` once that is open. `home`: that of
    the present task's unit."""

    def __init__(self) -> None:
        self.pool: Pool | None = None
        self.home: ContextVar[Home | None] = ContextVar("home", default=None)
        self.wrapped: dict[str, Backend] = {}

    def wrap(self, backends: Mapping[str, Backend]) -> dict[str, Backend]:
        """Return the backends, by their names in the job, with their attempts made by workers."""
        self.wrapped |= backends
        return {name: self._wrap(name, backend) for name, backend in backends.items()}

    def _wrap(self, name: str, backend: Backend) -> Backend:
        each = {url: _RemoteBackend(self, name, url, one) for url, one in servers_of(backend).items()}
        return Fleet(each) if isinstance(backend, Fleet) else next(iter(each.values()))


def _way_of(request: Request, own: Request) -> Way | None:
    """Return the form in which a unit's own request is sent; None for another request."""
    if request is own:
        return "schema"
    if (request.address, request.choices) != (own.address, own.choices):
        return None
    if own.prose and request.messages is own.prose and request.schema is None:
        return "prose"
    return "no_bounds" if request.messages is own.messages and request.schema != own.schema else None


class _RemoteBackend:
    """A backend whose attempts are made by the worker of the present unit. Questions about the server are
    asked by the head."""

    def __init__(self, calls: Calls, name: str, server: str, backend: Backend) -> None:
        self.identity, self.model = backend.identity, backend.model
        self._calls, self._name, self._server, self._backend = calls, name, server, backend

    async def complete(self, request: Request) -> Reply:
        """Make one attempt. Raises CallError."""
        pool = self._calls.pool
        if pool is None:
            raise CallError(FailureKind.SERVER_ERROR, "there are no workers yet", unsent=True)
        number, home = pool.next_number(), self._calls.home.get()
        if home is None or home.link.lost:
            link = await pool.pick()
            return await pool.call(
                link, Permit(number, self._name, self._server, None, request=pickle.dumps(request))
            )
        way = _way_of(request, home.request)
        sent = pickle.dumps(request) if way is None else b""
        permit = Permit(number, self._name, self._server, home.unit, way or "schema", sent)
        reply = await pool.call(home.link, permit)
        home.link.got[home.unit] = reply
        return reply

    async def models(self) -> list[str] | None:
        """Return the names that the service offers. Raises CallError."""
        return await self._backend.models()

    async def slots(self) -> int | None:
        """Return how many calls the server answers at once; None if it does not say. Raises CallError."""
        return await self._backend.slots() if isinstance(self._backend, CountsSlots) else None

    async def load(self) -> int | None:
        """Return the calls that the server has from anybody; None if it does not say."""
        return await self._backend.load() if isinstance(self._backend, CountsLoad) else None

    async def aclose(self) -> None:
        """Close the connections of the head."""
        await self._backend.aclose()
