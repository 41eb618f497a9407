"""Who may call a backend now: first come, first served, within the window and the rates.

`admit` before each attempt, `settle` after it, exactly once per ticket. Everything is decided in
one synchronous method, `_admit_ready`, which runs whenever something may have changed; `admit` only
waits. So a waiter that is cancelled loses nobody's turn, and a large request is never overtaken by
small ones.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from edgen.limits.bucket import Bucket
from edgen.limits.window import Verdict, Window

_BURST_SECONDS = 2.0  # what the buckets hold; see bucket.py for what that means over a minute


class AdmissionClosed(Exception):  # noqa: N818 - it says what happened, and is no fault
    """The run has stopped admitting calls."""


class Ticket:
    """One admitted call. Handed back with `Admission.settle`."""

    __slots__ = ("number", "settled", "started", "tokens")

    def __init__(self, number: int, tokens: int, started: float) -> None:
        self.number = number
        self.tokens = tokens
        self.started = started
        self.settled = False


class Admission:
    """The gate before one backend. It belongs to one event loop.

    `in_flight` is the most calls at once, whatever the server could take. The rates are kept over
    every 60 seconds, see `bucket.Bucket`; None is no limit.
    """

    def __init__(
        self, *, in_flight: int, requests_per_minute: float | None, tokens_per_minute: float | None
    ) -> None:
        self._window = Window(in_flight)
        self._requests = (
            Bucket(requests_per_minute, burst_seconds=_BURST_SECONDS, unit=1.0)
            if requests_per_minute is not None
            else None
        )
        self._tokens = (
            Bucket(tokens_per_minute, burst_seconds=_BURST_SECONDS) if tokens_per_minute is not None else None
        )
        self._running = 0
        self._admitted = 0
        self._paused_until = float("-inf")
        self._waiters: OrderedDict[asyncio.Future[Ticket], int] = OrderedDict()  # -> tokens asked for
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    @property
    def running(self) -> int:
        """Calls admitted and not yet settled."""
        return self._running

    @property
    def window(self) -> int:
        """Calls that may be in flight now."""
        return self._window.size

    @property
    def waiting(self) -> int:
        """Callers in the queue."""
        return len(self._waiters)

    @property
    def paused_for(self) -> float:
        """Seconds until anybody is admitted again; 0 if there is no pause."""
        return max(0.0, self._paused_until - self._loop.time()) if self._loop is not None else 0.0

    async def admit(self, tokens: int) -> Ticket:
        """Wait for a place for a call of about `tokens` tokens, prompt and answer together.

        Raises AdmissionClosed once `close` was called, for those who wait as well.
        """
        if self._closed:
            raise AdmissionClosed
        loop = self._loop or self._own_loop()
        if not self._waiters and self._running < self._window.size:
            now = loop.time()
            if self._allowed_at(tokens) <= now:
                return self._grant(tokens, now)
        waiter: asyncio.Future[Ticket] = loop.create_future()
        self._waiters[waiter] = tokens
        self._admit_ready()
        try:
            return await waiter
        except asyncio.CancelledError:
            self._forget(waiter)
            raise

    def settle(self, ticket: Ticket, *, tokens: int | None, verdict: Verdict) -> None:
        """Hand a ticket back. `tokens`: what the service counted; None: as asked for."""
        if ticket.settled:
            raise RuntimeError("a ticket is settled once")
        ticket.settled = True
        latency = self._own_loop().time() - ticket.started
        self._window.settled(ticket.number, verdict, latency, self._running, self._admitted)
        if tokens is not None and self._tokens is not None:
            self._tokens.give_back(ticket.tokens - tokens)
        self._running -= 1
        if self._waiters:
            self._admit_ready()

    def pause(self, seconds: float) -> None:
        """Admit nobody for that long (Retry-After). Of several pauses the longest holds."""
        self._paused_until = max(self._paused_until, self._own_loop().time() + seconds)

    def close(self) -> None:
        """Admit nobody any more. Those who wait are told at once; those admitted are left alone."""
        self._closed = True
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
        """Admit, in order, all who may go now, and see to it that the next is thought of in time."""
        loop = self._own_loop()
        wake_at = None
        while self._waiters and self._running < self._window.size:
            waiter, tokens = next(iter(self._waiters.items()))
            if not waiter.done():  # else it was cancelled, and its task has not run yet
                now = loop.time()
                allowed_at = self._allowed_at(tokens)
                if allowed_at > now:
                    wake_at = allowed_at
                    break
                waiter.set_result(self._grant(tokens, now))
            del self._waiters[waiter]
        self._set_timer(wake_at)

    def _allowed_at(self, tokens: int) -> float:
        """The moment from which pauses and rates let the next call go."""
        moment = self._paused_until
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
        self._running += 1
        self._admitted += 1
        return Ticket(self._admitted, tokens, now)

    def _forget(self, waiter: asyncio.Future[Ticket]) -> None:
        """A waiter's task was cancelled: free its turn, or the place that it was just given."""
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
