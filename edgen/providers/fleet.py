"""One model on several servers: a fleet.

The servers share the fleet's identity, so servers may come and go. The client chooses a server for each call;
see `edgen.execution.client.admission`.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence

from edgen.core.values import Reply, Request
from edgen.providers.base import Backend, SeveralServers


class Fleet(SeveralServers):
    """A backend of several `servers`, by address. `like`: a backend with their identity, if there are no
    servers yet."""

    def __init__(self, servers: Mapping[str, Backend], like: Backend | None = None) -> None:
        self.servers: dict[str, Backend] = dict(servers)
        self._first = like or next(iter(self.servers.values()))
        self.identity = self._first.identity
        self.model = self._first.model

    def __repr__(self) -> str:
        return f"Fleet({', '.join(map(repr, self.servers.values()))})"

    async def complete(self, request: Request) -> Reply:
        """Make one attempt at the first server. Raises CallError."""
        return await self._first.complete(request)

    async def models(self) -> list[str] | None:
        """Return the names that the first server offers. Raises CallError."""
        return await self._first.models()

    async def aclose(self) -> None:
        """Close all connections. Never raises; may be called twice."""
        for backend in self.servers.values():
            await backend.aclose()


def find_odd_model(names: Mapping[str, Sequence[str]], model: str) -> tuple[str, str, str, str] | None:
    """Return a server of a fleet that runs another model than an earlier one: both addresses, each with the
    name of its model; None if all agree. `names`: the models that each server lists. `model`: the job's
    model.

    A server that lists the job's model runs it. Other servers may use any name, such as a file's, if it is
    the same for all.
    """
    first: tuple[str, Sequence[str]] | None = None
    for address, listed in names.items():
        if first is None:
            first = address, listed
        elif (model in listed) != (model in first[1]) or (
            model not in listed and not {*map(_find_base_name, listed)} & {*map(_find_base_name, first[1])}
        ):
            return address, _pick_model(listed, model), first[0], _pick_model(first[1], model)
    return None


def _pick_model(listed: Sequence[str], model: str) -> str:
    return model if model in listed else listed[0]


def _find_base_name(name: str) -> str:
    """Return a model's name without folders, since a server may use a file's path."""
    return name.rstrip("/").rpartition("/")[2]


def find_node_server_name(own: str) -> str:
    """Return the address of a server for other nodes: `own`, as this node finds it, with this node's name
    instead of 127.0.0.1."""
    from yarl import URL  # here, as most runs have one server or none

    address = URL(own)
    here = address.host in ("localhost", "127.0.0.1", "::1")
    return str(address.with_host(socket.gethostname()) if here else address)
