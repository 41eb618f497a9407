"""The servers of a fleet: a check that they run the same model, their reports, and calls to one."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from edgen.config import BackendConfig, Job, load_kept_job
from edgen.core.errors import CallError, EdgenError, ProviderError
from edgen.core.registry import find_plugin
from edgen.core.values import Reply, Request
from edgen.execution.client.admission import Admission
from edgen.execution.client.backend_calls import complete_once, count_slots
from edgen.execution.client.prefix_cache import mark
from edgen.execution.client.server_queue import Lane
from edgen.providers import Backend
from edgen.providers.base import CountsLoad, CountsSlots, Fleet
from edgen.providers.fleet import find_odd_model
from edgen.store.run_folder import RunFolder

_PATIENCE = 5.0  # seconds for the list of a server's models
_LOOK_EVERY = 1.0  # seconds between two looks at the servers' load


class SameModel:
    """The models that servers name in their answers and, if they have them, in their lists of models."""

    def __init__(self, servers: Mapping[str, Backend], model: str) -> None:
        self._servers = servers
        self._model = model
        self._listed: dict[str, list[str]] = {}
        self._answered: dict[str, list[str]] = {}

    async def check_model_list(self, address: str) -> None:
        """Compare a server's list of models with the other servers' lists. Raises ProviderError if they
        differ, CallError while the server cannot be reached."""
        try:
            async with asyncio.timeout(_PATIENCE):
                names = await self._servers[address].models()
        except TimeoutError:
            return
        except CallError as failure:
            if failure.status is None or failure.status >= 500:
                raise
            return  # the service has no list of models
        if names:
            self._listed[address] = names
            self._compare(self._listed)

    def check_model_name(self, address: str, reply: Reply) -> None:
        """Compare the model named in a server's answer with the other servers' models, if the name is new for
        this server. Raises ProviderError if they differ."""
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


class FleetServers:
    """The servers of a client's fleet: queries before the first call, and calls to one server. `model`: the
    job's model; `kind`: the provider; `timeout`: seconds of an attempt; `lanes`: the servers' lanes in the
    admission."""

    def __init__(self, fleet: Fleet, model: str, kind: str, timeout: float, admission: Admission) -> None:
        self._fleet = fleet
        self._admission = admission
        self._kind, self._timeout = kind, timeout
        self._own = find_plugin("provider", kind) is None
        self.lanes: tuple[Lane, ...] = ()
        self.other_model = ""  # always empty: in a fleet, another model is an error
        self._backends: dict[Lane, Backend] = {}
        # Found once, since isinstance with a Protocol is slow.
        self._counting: dict[Lane, CountsSlots] = {}
        self._loaded: dict[Lane, CountsLoad] = {}
        self._same = SameModel(fleet.servers, model)
        self._adopt()
        self._next_look = 0.0  # loop's time of the next query for the load
        self._looking: asyncio.Task[None] | None = None
        self._looks: dict[Lane, asyncio.Task[None]] = {}
        self._tried: set[Lane] = set()  # servers asked once; some may have been unreachable

    def _adopt(self) -> None:
        """Add lanes for servers that the fleet has gained."""
        if not self._fleet.servers:
            return
        self.lanes = self._admission.list_lanes(self._fleet.servers)
        for lane, backend in zip(self.lanes, self._fleet.servers.values(), strict=True):
            if lane not in self._backends:
                self._backends[lane] = backend
                if isinstance(backend, CountsSlots):
                    self._counting[lane] = backend
                if isinstance(backend, CountsLoad):
                    self._loaded[lane] = backend

    @property
    def known(self) -> bool:
        """Always False: before each call there may be new servers, or loads to ask for."""
        return False

    def find_near_lanes(self) -> frozenset[Lane]:
        """Return the lane of the server nearest to the present task; empty without one."""
        address = self._fleet.find_nearest()
        return frozenset(lane for lane in self.lanes if lane.address == address)

    def list_marks(self, request: Request) -> Sequence[int]:
        """Return the marks of a prompt, to find servers that have cached its beginning."""
        return mark(request.messages)

    async def learn(self) -> None:
        """Ask each new server once for its models, its slots and its load. Raises ProviderError if the
        servers run different models."""
        if len(self._fleet.servers) != len(self.lanes):
            self._adopt()
        if new := [lane for lane in self.lanes if lane not in self._tried]:
            await asyncio.gather(*map(self.learn_of, new))
            await self._ask_load()  # before the first calls choose their queues
            self._tried.update(new)
        if self._loaded:
            self._look_at_load()

    def _look_at_load(self) -> None:
        """Ask each server of a fleet for its load, about once a second while calls are made."""
        now = asyncio.get_running_loop().time()
        if now >= self._next_look and (self._looking is None or self._looking.done()):
            self._next_look = now + _LOOK_EVERY
            self._looking = asyncio.create_task(self._ask_load())

    async def _ask_load(self) -> None:
        async def ask(lane: Lane, backend: CountsLoad) -> None:
            before = lane.running
            load = await backend.load()
            if load is None:
                self._loaded.pop(lane, None)  # no answer: its window and circuit limit the calls
            else:
                lane.others = max(0, load - max(before, lane.running))

        await asyncio.gather(*(ask(*one) for one in list(self._loaded.items())))

    async def learn_of(self, lane: Lane) -> None:
        """Ask a server for its models and its slots, unless it has answered."""
        if lane not in self._looks or not self._looks[lane].done():
            await self._look(lane)
        if not lane.knows_slots and (backend := self._counting.get(lane)) is not None:
            await lane.learn_slots(partial(count_slots, backend, self._kind))

    async def _look(self, lane: Lane) -> None:
        look = self._looks.get(lane)
        if look is None:
            look = self._looks[lane] = asyncio.create_task(self._same.check_model_list(lane.address))
        with contextlib.suppress(CallError):
            await asyncio.shield(look)
            return
        if self._looks.get(lane) is look:  # asked again before the next call to it
            del self._looks[lane]

    def complete(self, lane: Lane, request: Request) -> Awaitable[Reply]:
        """Make one attempt at a server. Raises CallError."""
        backend = self._backends[lane]
        if self._own:
            return backend.complete(request)
        return complete_once(backend, self._kind, request, self._timeout)

    def check_model(self, lane: Lane, reply: Reply) -> None:
        """Compare the model of an answer with that of the other servers. Raises ProviderError."""
        self._same.check_model_name(lane.address, reply)

    def has_others(self, lane: Lane) -> bool:
        """Return whether another server can take calls."""
        return self._admission.has_others(lane, self.lanes)


def keep_identities(job: Job, run: RunFolder) -> Job:
    """Return the job with the identities of the run's backends for those that share a server with them.

    So servers can be added, removed and reordered without paying for answers again. A backend that names its
    identity (`known_as`), or shares no server with the run's backend, keeps its own identity. Arms inherit
    the job's backends; an arm's own backends stay as they are.
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
    """Return a backend's settings with its earlier identity, if it still shares a server with it."""
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
    """Return the addresses of a backend's fleet; empty without a fleet."""
    return tuple(url.rstrip("/") for url in getattr(config, "urls", ()))
