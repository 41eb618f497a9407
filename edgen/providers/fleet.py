"""Checks that the servers of a fleet run the same model, and the address of one on another node."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence


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
