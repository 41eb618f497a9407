"""The servers of one backend: what is asked of them before the first call, and calls to one of them.

`complete_once` makes one attempt, and `count_slots` asks about the server; both report what a plugin's
backend does wrong.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Sequence
from functools import partial

import msgspec

from edgen.core.errors import CallError, FailureKind
from edgen.core.plugin_faults import blame, refuse_value, require_value
from edgen.core.registry import find_plugin
from edgen.core.text import replace_surrogates
from edgen.core.values import Reply, Request
from edgen.execution.client.admission import Admission
from edgen.execution.client.fleet import SameModel
from edgen.execution.client.prefix_cache import mark
from edgen.execution.client.server_queue import Lane
from edgen.providers import Backend
from edgen.providers.base import CountsLoad, CountsSlots, SeveralServers, list_servers
from edgen.providers.usage import MOST_PROMPT

_NONE: frozenset[Lane] = frozenset()
_LOOK_EVERY = 1.0  # seconds between two looks at the servers' load


class Servers:
    """The servers of a client's `backend`, whose provider is `kind`, with their `lanes` of the admission."""

    def __init__(self, backend: Backend, kind: str, admission: Admission) -> None:
        self._each = list_servers(backend)
        self._admission = admission
        self._kind = kind
        self._own = find_plugin("provider", kind) is None
        self.lanes: tuple[Lane, ...] = ()
        self._backends: dict[Lane, Backend] = {}
        # Once, as looking for a protocol's methods is slow.
        self._counting: dict[Lane, CountsSlots] = {}
        self._loaded: dict[Lane, CountsLoad] = {}
        self._fleet = backend if isinstance(backend, SeveralServers) else None
        self._same = None if self._fleet is None else SameModel(self._each, backend.model)
        self._adopt()
        self._next_look = 0.0  # at the load
        self._looking: asyncio.Task[None] | None = None
        self._looks: dict[Lane, asyncio.Task[None]] = {}
        self._tried: set[Lane] = set()  # asked once, though perhaps not up

    def _adopt(self) -> None:
        """Take the servers, of which there may be more than before."""
        if not self._each:
            return
        self.lanes = self._admission.list_lanes(self._each)
        for lane, backend in zip(self.lanes, self._each.values(), strict=True):
            if lane not in self._backends:
                self._backends[lane] = backend
                if isinstance(backend, CountsSlots):
                    self._counting[lane] = backend
                if isinstance(backend, CountsLoad):
                    self._loaded[lane] = backend

    @property
    def known(self) -> bool:
        """True for a single server that has been asked what `learn` asks."""
        return self._same is None and (self.lanes[0].knows_slots or self.lanes[0] not in self._counting)

    def find_near_lanes(self) -> frozenset[Lane]:
        """Return the lane that is best for the present task, all else being equal, if there is one."""
        if self._fleet is None:
            return _NONE
        address = self._fleet.find_nearest()
        return frozenset(lane for lane in self.lanes if lane.address == address)

    def list_marks(self, request: Request) -> Sequence[int]:
        """Return the marks of a prompt by which a server with its beginning is found; empty for a single
        server."""
        return () if self._same is None else mark(request.messages)

    async def learn(self) -> None:
        """Ask each server once what it is, and how many calls it answers at once, if it can say. Raises
        ProviderError if they run different models."""
        if len(self._each) != len(self.lanes):
            self._adopt()
        if self._same is None:
            await self.learn_of(self.lanes[0])
        elif new := [lane for lane in self.lanes if lane not in self._tried]:
            await asyncio.gather(*map(self.learn_of, new))
            await self._ask_load()  # before the first calls choose their queues
            self._tried.update(new)
        if self._same is not None and self._loaded:
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
                self._loaded.pop(lane, None)  # it does not say, or is away: the window and the circuit do
            else:
                lane.others = max(0, load - max(before, lane.running))

        await asyncio.gather(*(ask(*one) for one in list(self._loaded.items())))

    async def learn_of(self, lane: Lane) -> None:
        """Ask a server, unless it has answered."""
        if self._same is not None and (lane not in self._looks or not self._looks[lane].done()):
            await self._look(lane, self._same)
        if not lane.knows_slots and (backend := self._counting.get(lane)) is not None:
            await lane.learn_slots(partial(count_slots, backend, self._kind))

    async def _look(self, lane: Lane, same: SameModel) -> None:
        look = self._looks.get(lane)
        if look is None:
            look = self._looks[lane] = asyncio.create_task(same.look(lane.address))
        with contextlib.suppress(CallError):
            await asyncio.shield(look)
            return
        if self._looks.get(lane) is look:  # asked again before the next call to it
            del self._looks[lane]

    def complete(self, lane: Lane, request: Request) -> Awaitable[Reply]:
        """Make one attempt at a server. Raises CallError."""
        backend = self._backends[lane]
        return backend.complete(request) if self._own else complete_once(backend, self._kind, request)

    def hear(self, lane: Lane, reply: Reply) -> None:
        """Compare the model of an answer with that of the other servers. Raises ProviderError."""
        if self._same is not None:
            self._same.hear(lane.address, reply)

    def has_others(self, lane: Lane) -> bool:
        """Return whether calls can go to another server than this one."""
        return self._same is not None and self._admission.has_others(lane, self.lanes)


async def complete_once(backend: Backend, provider: str, request: Request) -> Reply:
    """Return the backend's reply to one attempt.

    Raises CallError. Raises FaultyPluginError if a plugin's backend raises anything else or returns no Reply.
    """
    try:
        reply = await backend.complete(request)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        blame("provider", provider, error, "in place of a CallError")  # nobody cancelled the call
    except CallError as error:
        if find_plugin("provider", provider) is not None:
            check_failure(provider, error)
        raise
    except BaseException as error:  # noqa: BLE001 - raised again
        blame("provider", provider, error, "in place of a CallError")
    return reply if find_plugin("provider", provider) is None else check_reply(provider, reply)


def check_reply(provider: str, reply: Reply) -> Reply:
    """Return the reply of a plugin's backend, with U+FFFD for lone surrogates. Raises FaultyPluginError if it
    is no Reply that can be stored."""
    checked = require_value("provider", provider, reply, Reply, "a Reply")
    if (used := checked.usage) is not None:
        counts = msgspec.structs.astuple(used)
        if min(counts) < 0:
            refuse_value("provider", provider, f"returned a Reply with a negative number of tokens: {used}")
        if max(counts) > MOST_PROMPT:
            said = f"returned a Reply with more than {MOST_PROMPT:,} tokens, which no model has: {used}"
            refuse_value("provider", provider, said)
    return checked


def check_failure(provider: str, error: CallError) -> None:
    """Raise FaultyPluginError for a CallError of a plugin that no ledger can hold and no rule applies to."""
    if not isinstance(error.kind, FailureKind):
        said = f"raised a CallError of the kind {error.kind!r}, which is no edgen.plugin.FailureKind"
        refuse_value("provider", provider, said)
    error.message = replace_surrogates(str(error.message))
    wait = error.retry_after
    if wait is not None and not (isinstance(wait, int | float) and 0 <= wait < math.inf):
        refuse_value(
            "provider", provider, f"raised a CallError with `retry_after` {wait!r}, no number of seconds"
        )


async def count_slots(backend: CountsSlots, provider: str) -> int | None:
    """Return how many calls the backend's server answers at once; None if it does not say.

    Raises CallError. Raises FaultyPluginError if a plugin's backend raises anything else or returns another
    value.
    """
    try:
        slots = await backend.slots()
    except Exception as error:  # noqa: BLE001 - raised again
        blame("provider", provider, error, "in place of a CallError")
    if slots is not None and find_plugin("provider", provider) is not None:
        require_value("provider", provider, slots, int, "a number of slots or None")
    return slots
