"""Check that all servers of a fleet run the same model, by what they list and by what their answers say."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from edgen.config import BackendConfig, Job, load_kept_job
from edgen.core.errors import CallError, EdgenError, ProviderError
from edgen.core.values import Reply
from edgen.providers import Backend
from edgen.providers.fleet import find_odd_model
from edgen.store.run_folder import RunFolder

_PATIENCE = 5.0  # seconds for the list of a server's models


class SameModel:
    """The models that servers name: in their lists, if they have one, and in their answers."""

    def __init__(self, servers: Mapping[str, Backend], model: str) -> None:
        self._servers = servers
        self._model = model
        self._listed: dict[str, list[str]] = {}
        self._answered: dict[str, list[str]] = {}

    async def look(self, address: str) -> None:
        """Compare the list of a server's models with the other servers'. Raises ProviderError, and CallError
        while the server cannot be reached."""
        try:
            async with asyncio.timeout(_PATIENCE):
                names = await self._servers[address].models()
        except TimeoutError:
            return
        except CallError as failure:
            if failure.status is None or failure.status >= 500:
                raise
            return  # a service that shows no list
        if names:
            self._listed[address] = names
            self._compare(self._listed)

    def hear(self, address: str, reply: Reply) -> None:
        """Compare the model of a server's answer with the other servers', if it is the first answer or names
        another model than the last, as after a restart. Raises ProviderError."""
        known = self._answered.get(address)
        if known is None or (reply.model and reply.model not in known):
            self._answered[address] = [reply.model] if reply.model else []
            self._compare({one: names for one, names in self._answered.items() if names})

    def _compare(self, names: Mapping[str, list[str]]) -> None:
        if (odd := find_odd_model(names, self._model)) is not None:
            address, has, other, runs = odd
            raise ProviderError(
                f"The servers of `base_url` run different models: {address} runs {has}, {other} runs {runs}. "
                "Remove one of them from the list, or start it with the other's model."
            )


def keep_identities(job: Job, run: RunFolder) -> Job:
    """Return the job with the identities of the run's backends for those that share a server with them.

    So a run that began with one server can continue with several, in any order, without paying again, and a
    server can be removed. A backend that names its identity (`known_as`), or has no server in common, keeps
    its own. Arms inherit the job's backends; those of their own are left as they are.
    """
    try:
        before = load_kept_job(run.job).backends
    except EdgenError:  # the reader of the run reports the error
        return job
    kept = {
        name: _keep(config, before[name]) if name in before else config
        for name, config in job.backends.items()
    }
    return job if kept == job.backends else msgspec.structs.replace(job, backends=kept)


def _keep(config: BackendConfig, before: BackendConfig) -> BackendConfig:
    """Return the settings of a backend with the identity that it had before, if it is still the same
    fleet."""
    ours, theirs = _list_servers(config), _list_servers(before)
    if config.provider != before.provider or not {*ours} & {*theirs}:
        return config
    new: Any = config
    old: Any = before
    known: str = old.known_as or old.base_url
    return config if new.known_as is not None or known == new.base_url else _set_known_as(new, known)


def _set_known_as(config: Any, address: str) -> BackendConfig:
    changed: BackendConfig = msgspec.structs.replace(config, known_as=address)
    return changed


def _list_servers(config: BackendConfig) -> tuple[str, ...]:
    """Return the addresses of a backend's servers; empty if it has one address at most."""
    return tuple(url.rstrip("/") for url in getattr(config, "urls", ()))
