"""One server of a service: its window, circuit, latency and queue, and calls to it."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar

import msgspec

from edgen.core.errors import CallError
from edgen.core.registry import find_plugin
from edgen.core.text import shorten
from edgen.core.values import Reply, Request
from edgen.execution.client.backend_calls import complete_once, count_slots
from edgen.execution.client.circuit import Circuit, State
from edgen.execution.client.window import LoadVerdict, Window
from edgen.providers import Backend
from edgen.providers.base import CountsSlots
from edgen.providers.fleet import find_odd_model

T_contra = TypeVar("T_contra", contravariant=True)

_MEMORY = 0.1  # weight of the newest call in the running mean of latencies


class Waiter(Protocol[T_contra]):
    """A receiver of a value or an error: an asyncio.Future, or an object that acts at once."""

    def done(self) -> bool:
        """Return whether it has a value or an error, or was cancelled."""

    def set_result(self, result: T_contra, /) -> None:
        """Take the value."""

    def set_exception(self, exception: Exception, /) -> None:
        """Take the error."""


class WaitingCall(msgspec.Struct, frozen=True):
    """A call in the queue."""

    number: int
    tokens: int
    among: tuple[Lane, ...]
    seen: frozenset[Lane]


class Lane:
    """A server. Calls admitted to it are counted from 1.

    `running`: calls admitted and not settled. `answers`, `failures`: counts of settled calls. `asked`: the
    server was asked how many calls it answers at once; `knows_slots`: it has replied, perhaps without a
    number.
    """

    def __init__(self, most: int, address: str = "") -> None:
        self.address = address
        self.window = Window(most)
        self._circuit: Circuit | None = None  # created at the first refusal
        self.queue: OrderedDict[Waiter[Ticket], WaitingCall] = OrderedDict()
        self.running = self.admitted = self.answers = self.failures = 0
        self.knows_slots = self.asked = False
        self.others = 0  # other programs' calls at the server, by its last report
        self._learning: tuple[asyncio.Task[None], asyncio.Event] | None = None  # its end sets the event
        self._latency: float | None = None  # running mean, seconds
        self._heard = 0.0  # loop's time of the last answer, or since when calls are running

    @property
    def has_room(self) -> bool:
        """True if its window admits another call."""
        return self.running < self.window.size

    @property
    def state(self) -> State:
        """The state of its circuit; closed before the first refusal."""
        return "closed" if self._circuit is None else self._circuit.state

    @property
    def usable(self) -> bool:
        """True unless it is left out, because it refuses or cannot be reached."""
        return self._circuit is None or self._circuit.state == "closed"

    @property
    def unreachable(self) -> bool:
        """True while it is left out because it cannot be reached."""
        return self._circuit is not None and self._circuit.unreachable

    @property
    def open_until(self) -> float:
        """The moment at which its last pause ends; -inf without one."""
        return float("-inf") if self._circuit is None else self._circuit.until

    @property
    def refused_since(self) -> float | None:
        """The moment of its first refusal without a later answer; None if there is none."""
        return None if self._circuit is None else self._circuit.refused_since

    def find_allowed_time(self, now: float) -> float:
        """Return the moment from which pauses and probes allow the next call; -inf if always."""
        if self._circuit is None:
            return float("-inf")
        return self._circuit.find_allowed_time(now, self.window.size)

    def estimate_wait(self, now: float, usual: float) -> float:
        """Estimate the seconds that another call would take here, given the calls already here. `usual`: the
        latency assumed before the first answer. The latency of a silent server is at least the time since its
        last answer."""
        latency = usual if self._latency is None else self._latency
        if self.running:
            latency = max(latency, now - self._heard)
        return latency * (self.running + self.others + len(self.queue) + 1) / self.window.size

    @property
    def latency(self) -> float | None:
        """The mean seconds of its recent answers; None before the first."""
        return self._latency

    def grant(self, tokens: int, now: float) -> Ticket:
        """Admit a call."""
        if not self.running:
            self._heard = now
        self.running += 1
        self.admitted += 1
        if self._circuit is not None and self._circuit.counts:
            self._circuit.note_sent(self.admitted, now)
        return Ticket(self, self.admitted, tokens, now, self.running)

    def end(self, ticket: Ticket, verdict: LoadVerdict, now: float, retry_after: float | None) -> bool:
        """Record the end of a call; return whether the server is left out from now on."""
        latency, circuit = now - ticket.started, self._circuit
        before = "closed" if circuit is None else circuit.state
        answered = verdict is LoadVerdict.OK
        if answered:
            self.answers += 1
            self._heard = now
            mean = latency if self._latency is None else self._latency
            self._latency = mean + _MEMORY * (latency - mean)
        elif verdict is not LoadVerdict.OTHER:
            self.failures += 1
        if not answered or (circuit is not None and (before != "closed" or circuit.troubled)):
            verdict = self._hear(ticket.number, verdict, latency, now, retry_after)
        self.window.note_end(ticket.number, verdict, latency, self.running, self.admitted)
        self.running -= 1
        return self._circuit is not None and before == "closed" and not self.usable

    def is_silent_since(self, moment: float) -> bool:
        """Return whether it has not answered since this time of the loop's clock."""
        return self._heard <= moment

    def _hear(
        self, number: int, verdict: LoadVerdict, latency: float, now: float, retry_after: float | None
    ) -> LoadVerdict:
        """Report a result to the circuit if relevant; return the verdict for the window."""
        refused = verdict is LoadVerdict.AWAY or (
            verdict is LoadVerdict.CONGESTED and retry_after is not None
        )
        if (circuit := self._circuit) is None:
            if not refused:
                return verdict
            circuit = self._circuit = Circuit()
        before = circuit.state
        blameless = before != "closed"
        if verdict is LoadVerdict.OK:
            circuit.note_answer(number, latency, now, self.admitted, self.window.size)
        elif verdict is LoadVerdict.AWAY:
            circuit.note_refusal(number, latency, now, 0.0, unreachable=True)
        elif retry_after is not None and refused:
            if before != "half-open":
                self.window.remember(self.running, first=not circuit.troubled)
            if circuit.note_refusal(number, latency, now, retry_after) and before == "half-open":
                blameless = self.window.forgive_probe(self.running)
        # The refusals of a closed service say nothing about its capacity.
        return LoadVerdict.OTHER if verdict is LoadVerdict.CONGESTED and blameless else verdict

    async def learn_slots(self, ask: Callable[[], Awaitable[int | None]]) -> None:
        """Wait until `ask` has returned the server's slots, where the window then starts; None: the server
        does not say. Callers share one `ask`; after a CallError, a later caller asks again."""
        self.asked = True
        if self._learning is None:
            learning, done = asyncio.create_task(self._learn(ask)), asyncio.Event()
            learning.add_done_callback(lambda _: done.set())
            self._learning = learning, done
        # Hundreds of callers may wait. A cancelled caller must not cancel the task; an event costs less than
        # an asyncio.shield for each caller.
        learning, done = self._learning
        await done.wait()
        learning.result()

    async def _learn(self, ask: Callable[[], Awaitable[int | None]]) -> None:
        try:
            slots = await ask()
        except CallError:
            self._learning = None
            return
        if slots is not None:
            self.window.know_slots(slots, self.admitted)
        self.knows_slots = True


class Ticket(msgspec.Struct):
    """One admitted call. Return it with `Admission.settle`."""

    lane: Lane  # the lane that admitted it
    number: int  # number of the call in the lane
    tokens: int  # estimated tokens of the call
    started: float  # loop's time of the admission
    running: int  # calls in flight at the lane, this one included
    settled: bool = False  # the ticket was returned


class OneServer:
    """The only server of a client's backend. `kind`: the provider; `timeout`: seconds of an attempt;
    `lanes`: its one lane in the admission."""

    def __init__(self, backend: Backend, kind: str, timeout: float, lanes: tuple[Lane, ...]) -> None:
        self.lanes = lanes
        self._backend, self._kind, self._timeout = backend, kind, timeout
        self._own = find_plugin("provider", kind) is None
        self._counting = backend if isinstance(backend, CountsSlots) else None
        self._model: str | None = None  # the model that the last answer named
        self.other_model = ""
        """Note for the user: the answers name another model than before. Empty if they do not."""

    @property
    def known(self) -> bool:
        """True if `learn` has nothing to ask any more."""
        return self._counting is None or self.lanes[0].knows_slots

    def find_near_lanes(self) -> frozenset[Lane]:
        """Return no lane, since there is only one server."""
        return frozenset()

    def list_marks(self, request: Request) -> Sequence[int]:  # noqa: ARG002 - a fleet's servers have them
        """Return no marks, since there is only one server."""
        return ()

    async def learn(self) -> None:
        """Ask the server for its slots, if it can report them."""
        await self.learn_of(self.lanes[0])

    async def learn_of(self, lane: Lane) -> None:
        """Ask the server for its slots, unless it has answered."""
        if self._counting is not None and not lane.knows_slots:
            await lane.learn_slots(partial(count_slots, self._counting, self._kind))

    def complete(self, lane: Lane, request: Request) -> Awaitable[Reply]:  # noqa: ARG002 - its only one
        """Make one attempt. Raises CallError."""
        backend = self._backend
        if self._own:
            return backend.complete(request)
        return complete_once(backend, self._kind, request, self._timeout)

    def check_model(self, lane: Lane, reply: Reply) -> None:  # noqa: ARG002 - its only one
        """Compare the model named in an answer with the last answer's. A change is noted once and stops
        nothing: some services serve several models under one name."""
        if reply.model == self._model or reply.model is None:
            return
        if self._model is not None and not self.other_model:
            names = {"before": [self._model], "now": [reply.model]}
            if find_odd_model(names, self._backend.model) is not None:
                self.other_model = (
                    f"The service's answers named the model {shorten(self._model, 80)}, and name "
                    f"{shorten(reply.model, 80)} now. If its server was started again with another model, stop "
                    "the run: it has answers of both."
                )
        self._model = reply.model

    def has_others(self, lane: Lane) -> bool:  # noqa: ARG002 - its only one
        """Return False: there is no other server."""
        return False
