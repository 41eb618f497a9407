"""Admission of calls to a backend: first come, first served, within the window and the rates.

Call `admit` before each attempt, `settle` after it, exactly once per ticket. One synchronous method,
`_admit_ready`, makes every decision, and runs whenever something may have changed; `admit` only waits. So a
cancelled waiter costs nobody a turn, and small requests never overtake a large one.

An answer holds its place until it is stored (`keep`, `stored`): calls in flight and answers on their way to
disk are together at most `in_flight`, however slow the disk is. That is the most that a kill can lose.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from edgen.config import Limits
from edgen.core.errors import CallError
from edgen.execution.client.circuit import Circuit, State
from edgen.execution.client.token_bucket import Bucket
from edgen.execution.client.window import Verdict, Window

_BURST_SECONDS = 2.0  # capacity of the buckets; see token_bucket.py for the effect over a minute


class AdmissionClosed(Exception):  # noqa: N818 - it says what happened, and is no fault
    """The run admits no more calls."""


@dataclass(slots=True)
class Ticket:
    """One admitted call, counted from 1, with the tokens requested for it, and the number of calls in flight
    with it. Return it with `Admission.settle`."""

    number: int
    tokens: int
    started: float
    running: int
    settled: bool = False


class Admission:
    """The gate of one backend. It belongs to one event loop. `in_flight` limits concurrent calls even if
    the server could take more; the rates hold over every 60 seconds, see `token_bucket`.

    Readable state: `running` calls are admitted and not settled, `unstored` answers are received and not
    stored, `answered` is True once the service has answered, `knows_slots` once it is known how many calls
    it answers at once, or that it does not say.
    """

    def __init__(self, limits: Limits) -> None:
        self.running = 0
        self.unstored = 0
        self.answered = False
        self.knows_slots = False
        self._learning: asyncio.Task[None] | None = None
        self._window = Window(limits.in_flight)
        self._most = limits.in_flight
        self._requests = _bucket(limits.requests_per_minute, unit=1.0)
        self._tokens = _bucket(limits.tokens_per_minute)
        self._admitted = 0
        self._circuit = Circuit()
        self._waiters: OrderedDict[asyncio.Future[Ticket], int] = OrderedDict()  # -> requested tokens
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.closed = False

    @property
    def away(self) -> bool:
        """True while the service is unreachable and being probed."""
        return self._circuit.away

    @property
    def window(self) -> int:
        """The number of calls that may be in flight now."""
        return self._window.size

    @property
    def slots(self) -> int | None:
        """The number of calls that the service answers at once; None if unknown."""
        return self._window.slots

    async def learn_slots(self, ask: Callable[[], Awaitable[int | None]]) -> None:
        """Wait for the service's answer to `ask`, which all callers share: the number of calls that it
        answers at once, where the window starts, or None if it does not say. After a CallError, a later
        caller asks again."""
        if self._learning is None:
            self._learning = asyncio.create_task(self._learn(ask))
        await asyncio.shield(self._learning)

    async def _learn(self, ask: Callable[[], Awaitable[int | None]]) -> None:
        try:
            slots = await ask()
        except CallError:
            self._learning = None
            return
        if slots is not None:
            self._window.know_slots(slots, self._admitted)
        self.knows_slots = True

    def queues(self, ticket: Ticket) -> bool:
        """Return whether a call went while so many others were in flight that it had to wait for them."""
        return self.slots is not None and ticket.running > self.slots

    @property
    def waiting(self) -> int:
        """The number of callers in the queue."""
        return len(self._waiters)

    @property
    def paused_for(self) -> float:
        """Seconds until the next admission; 0 if there is no pause."""
        if self._loop is None or self._circuit.state != "open":
            return 0.0
        return max(0.0, self._circuit.until - self._loop.time())

    @property
    def circuit(self) -> State:
        """`closed` in normal operation, `open` during a pause, `half-open` while probes run."""
        return "half-open" if self._circuit.state == "open" and not self.paused_for else self._circuit.state

    @property
    def refused_for(self) -> float:
        """Seconds since the first refusal without a later answer; 0 if there is none."""
        since = self._circuit.refused_since
        return self._loop.time() - since if self._loop is not None and since is not None else 0.0

    async def admit(self, tokens: int) -> Ticket:
        """Wait for admission of a call of about `tokens` tokens, prompt and answer together.

        Raises AdmissionClosed after `close`, also for waiting callers.
        """
        if self.closed:
            raise AdmissionClosed
        loop = self._loop or self._own_loop()
        if not self._waiters and self._has_room():
            now = loop.time()
            if self._allowed_at(tokens, now) <= now:
                return self._grant(tokens, now)
        waiter: asyncio.Future[Ticket] = loop.create_future()
        self._waiters[waiter] = tokens
        self._admit_ready()
        try:
            return await waiter
        except asyncio.CancelledError:
            self._forget(waiter)
            raise

    def settle(
        self,
        ticket: Ticket,
        *,
        tokens: int | None,
        verdict: Verdict,
        retry_after: float | None = None,
        keep: bool = False,
    ) -> None:
        """Return a ticket. `tokens`: the service's count; None: as requested. `retry_after`: the seconds that
        a refusing service asks to wait, 0 if it does not say; None: it did not refuse. `keep`: keep the place
        until `stored`."""
        if ticket.settled:
            raise RuntimeError("a ticket is settled once")
        ticket.settled = True
        now = self._own_loop().time()
        latency = now - ticket.started
        if self._circuit.state != "closed" or verdict is not Verdict.OK or self._circuit.troubled:
            verdict = self._heard(ticket.number, verdict, latency, now, retry_after)
        self._window.note_end(ticket.number, verdict, latency, self.running, self._admitted)
        if tokens is not None and self._tokens is not None:
            self._tokens.give_back(ticket.tokens - tokens)
        self.answered = self.answered or verdict is Verdict.OK
        self.running -= 1
        self.unstored += keep
        if self._waiters and self._has_room():
            self._admit_ready()

    def stored(self) -> None:
        """Release the place of an answer that is now stored."""
        self.unstored -= 1
        if self._waiters:
            self._admit_ready()

    def _has_room(self) -> bool:
        return self.running < self._window.size and self.running + self.unstored < self._most

    def _heard(
        self, number: int, verdict: Verdict, latency: float, now: float, retry_after: float | None
    ) -> Verdict:
        """Report a result to the circuit if relevant; return the verdict for the window."""
        circuit, before = self._circuit, self._circuit.state
        blameless = before != "closed"
        if verdict is Verdict.OK:
            circuit.note_answer(number, latency, now, self._admitted, self._window.size)
        elif verdict is Verdict.AWAY:
            circuit.note_refusal(number, latency, now, 0.0, away=True)
        elif verdict is Verdict.CONGESTED and retry_after is not None:
            if before != "half-open":
                self._window.remember(self.running, first=not circuit.troubled)
            if circuit.note_refusal(number, latency, now, retry_after) and before == "half-open":
                blameless = self._window.acquit(self.running)
        # The refusals of a closed service say nothing about its capacity.
        return Verdict.OTHER if verdict is Verdict.CONGESTED and blameless else verdict

    def close(self) -> None:
        """Stop admitting calls. Waiting callers are informed at once; admitted calls continue."""
        self.closed = True
        self._set_timer(None)
        while self._waiters:
            waiter, _ = self._waiters.popitem(last=False)
            if not waiter.done():
                waiter.set_exception(AdmissionClosed())

    def _own_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._loop

    def _admit_ready(self) -> None:
        """Admit, in order, all calls that may go now, and schedule the next check."""
        loop = self._own_loop()
        wake_at = None
        while self._waiters and self._has_room():
            waiter, tokens = next(iter(self._waiters.items()))
            if not waiter.done():  # else it was cancelled, and its task has not run yet
                now = loop.time()
                allowed_at = self._allowed_at(tokens, now)
                if allowed_at > now:
                    wake_at = allowed_at
                    break
                waiter.set_result(self._grant(tokens, now))
            del self._waiters[waiter]
        self._set_timer(wake_at)

    def _allowed_at(self, tokens: int, now: float) -> float:
        """Return the moment from which pauses, probes and rates allow the next call."""
        moment = self._circuit.allowed_at(now, self._window.size)
        if self._requests is not None:
            moment = max(moment, self._requests.ready_at(1.0))
        if self._tokens is not None:
            moment = max(moment, self._tokens.ready_at(tokens))
        return moment

    def _grant(self, tokens: int, now: float) -> Ticket:
        if self._requests is not None:
            self._requests.take(1.0, now)
        if self._tokens is not None:
            self._tokens.take(tokens, now)
        self.running += 1
        self._admitted += 1
        if self._circuit.counts:
            self._circuit.note_sent(self._admitted, now)
        return Ticket(self._admitted, tokens, now, self.running)

    def _forget(self, waiter: asyncio.Future[Ticket]) -> None:
        """Release the turn, or the new place, of a waiter whose task was cancelled."""
        self._waiters.pop(waiter, None)
        if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
            if self._requests is not None:
                self._requests.give_back(1.0)
            self.settle(waiter.result(), tokens=0, verdict=Verdict.OTHER)
        self._admit_ready()

    def _set_timer(self, moment: float | None) -> None:
        if self._timer is not None:
            if self._timer.when() == moment:
                return
            self._timer.cancel()
            self._timer = None
        if moment is not None:
            self._timer = self._own_loop().call_at(moment, self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        self._admit_ready()


def _bucket(per_minute: float | None, unit: float = 0.0) -> Bucket | None:
    return None if per_minute is None else Bucket(per_minute, burst_seconds=_BURST_SECONDS, unit=unit)
