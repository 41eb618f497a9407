"""Admission of calls to a service: first come, first served, within the windows and the rates.

Call `admit` before each attempt, `settle` after it, exactly once per ticket. One synchronous method,
`_admit_ready`, makes every decision; it runs after every change that may admit a call. `admit` only waits. So
a cancelled waiter takes no call's turn, and small requests never overtake a large one.

An answer holds its place until it is stored (`keep`, `release_stored`): calls in flight plus answers not yet
on disk are at most `in_flight`, however slow the disk is. A kill loses no more than these.

A service may have several servers, each with a lane. A call joins the lane with the shortest expected wait.
It prefers a server that has cached the beginning of its prompt, unless the wait there is more than twice as
long. A server that refuses or cannot be reached is left out and probed; its waiting calls move to other
servers. A server without a queue takes calls from a server whose wait is more than twice as long.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import islice

from edgen.config import Limits
from edgen.execution.client.circuit import State
from edgen.execution.client.prefix_cache import Prefixes
from edgen.execution.client.server_queue import Lane, Ticket, Waiter, WaitingCall
from edgen.execution.client.token_bucket import Rates
from edgen.execution.client.window import LoadVerdict

_OVERLOADED = 2.0  # longer waits, as a multiple of the shortest, rule out a server with the cached prefix
_LOOKED_AT = 16  # calls examined in another server's queue, oldest first
_USUAL = 1.0  # seconds: a call's assumed latency before the first answer


class AdmissionClosed(Exception):  # noqa: N818 - it says what happened, and is no fault
    """The run admits no more calls."""


class Admission:
    """The gate of one service, for one event loop. `in_flight` limits the concurrent calls to all servers
    together. The rates hold over every 60 seconds; see `token_bucket`.

    Readable state: `lanes` by address, `running` calls are admitted and not settled, `unstored` answers are
    received and not stored.
    """

    def __init__(self, limits: Limits) -> None:
        self.running = 0
        self.unstored = 0
        self.lanes: dict[str, Lane] = {}
        self._most = limits.in_flight
        rates = limits.requests_per_minute, limits.tokens_per_minute
        self._rates = None if rates == (None, None) else Rates.of(*rates)
        self._arrived = 0
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.closed = False
        self._only = self.list_lanes(("",))

    def list_lanes(self, addresses: Iterable[str]) -> tuple[Lane, ...]:
        """Return the lanes of the servers at these addresses, and add missing lanes. A new Admission has one
        lane without an address; it gets the first of these addresses."""
        addresses = tuple(addresses)
        if addresses != ("",) and (first := self.lanes.pop("", None)) is not None:
            first.address = addresses[0]
            self.lanes[addresses[0]] = first
        for address in addresses:
            if address not in self.lanes:
                self.lanes[address] = Lane(self._most, address)
        return tuple(self.lanes[address] for address in addresses)

    @cached_property
    def _prefixes(self) -> Prefixes[Lane]:
        """The memory of prompts, which guides the choice between several servers."""
        return Prefixes()

    # --- state of the service -------------------------------------------------------------------

    @property
    def answered(self) -> bool:
        """True once the service has answered."""
        return any(lane.answers for lane in self.lanes.values())

    @property
    def unreachable(self) -> bool:
        """True while every server is unreachable and being probed."""
        return all(lane.unreachable for lane in self.lanes.values())

    @property
    def window(self) -> int:
        """The number of calls that may be in flight now."""
        return min(self._most, sum(lane.window.size for lane in self.lanes.values()))

    @property
    def slots(self) -> int | None:
        """The number of calls that the service answers at once; None if unknown."""
        known = [lane.window.slots for lane in self.lanes.values()]
        return None if None in known else sum(slots for slots in known if slots is not None)

    @property
    def waiting(self) -> int:
        """The number of callers in the queues."""
        return sum(len(lane.queue) for lane in self.lanes.values())

    @property
    def paused_for(self) -> float:
        """Seconds until the next admission; 0 if there is no pause."""
        return min(map(self.pause_of, self.lanes.values()))

    def pause_of(self, lane: Lane) -> float:
        """Return the seconds until the next call to a server; 0 if there is no pause."""
        if self._loop is None or lane.state != "open":
            return 0.0
        return max(0.0, lane.open_until - self._loop.time())

    @property
    def circuit(self) -> State:
        """`closed` in normal operation of any server, `open` during a pause of all, `half-open` while probes
        run."""
        states = [*map(self.find_circuit_state, self.lanes.values())]
        return "closed" if "closed" in states else "half-open" if "half-open" in states else "open"

    def find_circuit_state(self, lane: Lane) -> State:
        """Return the state of one server."""
        return "half-open" if lane.state == "open" and not self.pause_of(lane) else lane.state

    @property
    def refused_for(self) -> float:
        """Seconds since a server's first refusal without a later answer, the minimum over all servers; 0 if
        any server has none."""
        if self._loop is None:
            return 0.0
        since = [lane.refused_since for lane in self.lanes.values()]
        return min(0.0 if one is None else self._loop.time() - one for one in since)

    # --- one call -------------------------------------------------------------------------------

    async def admit(
        self,
        tokens: int,
        marks: Sequence[int] = (),
        lanes: tuple[Lane, ...] | None = None,
        near: frozenset[Lane] = frozenset(),
    ) -> Ticket:
        """Wait until one of the `lanes` (None: the only lane) admits a call; return its ticket. `tokens`:
        estimate for prompt and answer. `marks`: its prompt's, see `prefix_cache`. `near`: lanes to prefer if
        no server has cached the prompt.

        Raises AdmissionClosed after `close`, also for waiting callers.
        """
        among = lanes or self._only
        if (ticket := self.admit_at_once(tokens, among)) is not None:
            return ticket
        seen = frozenset[Lane]()
        if len(among) > 1:
            seen = (self._prefixes.find_servers(marks) if marks else None) or near
        waiter: asyncio.Future[Ticket] = self._find_own_loop().create_future()
        lane = self._queue(waiter, tokens, among, seen, marks)
        try:
            ticket = await waiter
        except asyncio.CancelledError:
            self._forget(waiter)
            raise
        if marks and ticket.lane is not lane:
            self._prefixes.note(marks, ticket.lane)
        return ticket

    def admit_or_queue(self, waiter: Waiter[Ticket], tokens: int, lanes: tuple[Lane, ...]) -> Ticket | None:
        """Return a ticket if the only one of the `lanes` admits the call at once. Otherwise return None and
        queue the `waiter`, which gets the ticket later. Raises AdmissionClosed."""
        if (ticket := self.admit_at_once(tokens, lanes)) is None:
            self._queue(waiter, tokens, lanes, frozenset(), ())
        return ticket

    def admit_at_once(self, tokens: int, lanes: tuple[Lane, ...]) -> Ticket | None:
        """Return a ticket if there is only one lane, no call waits, and the lane can take the call now; else
        None. Raises AdmissionClosed."""
        if self.closed:
            raise AdmissionClosed
        if len(lanes) == 1:
            lane = lanes[0]
            if not lane.queue and self._has_room(lane) and not self._has_others_waiting(lane):
                now = self._find_own_loop().time()
                if self._find_allowed_time(lane, tokens, now) <= now:
                    return self._grant(lane, tokens, now)
        return None

    def _queue(
        self, waiter: Waiter[Ticket], tokens: int, among: tuple[Lane, ...], seen: frozenset[Lane],
        marks: Sequence[int],
    ) -> Lane:  # fmt: skip
        """Queue a call at a lane, and return the lane."""
        lane = among[0]
        if len(among) > 1:
            lane = self._choose(among, seen, self._find_own_loop().time())
            self._prefixes.note(marks, lane)
        self._arrived += 1
        lane.queue[waiter] = WaitingCall(self._arrived, tokens, among, seen)
        self._admit_ready()
        return lane

    def settle(
        self,
        ticket: Ticket,
        *,
        tokens: int | None,
        verdict: LoadVerdict,
        retry_after: float | None = None,
        keep: bool = False,
        now: float | None = None,
    ) -> None:
        """Return a ticket after its call. `tokens`: the service's count; None: as estimated. `retry_after`:
        the seconds that a refusing service asks to wait, 0 if it does not say; None: it did not refuse.
        `keep`: hold the place until `release_stored`. `now`: the loop's time, if the caller has read it."""
        if ticket.settled:
            raise RuntimeError("a ticket is settled once")
        ticket.settled = True
        moment = self._find_own_loop().time() if now is None else now
        if ticket.lane.end(ticket, verdict, moment, retry_after):
            self._move_queue(ticket.lane)
        if tokens is not None and self._rates is not None:
            self._rates.give_back(ticket.tokens - tokens)
        self.running -= 1
        self.unstored += keep
        self._admit_ready()

    def release_stored(self, count: int = 1) -> None:
        """Release the places of `count` answers that are now stored."""
        self.unstored -= count
        self._admit_ready()

    def has_others(self, lane: Lane, lanes: Sequence[Lane]) -> bool:
        """Return whether another of the `lanes` can take calls."""
        return any(other is not lane and other.usable for other in lanes)

    def close(self) -> None:
        """Stop admitting calls. Waiting callers get AdmissionClosed at once; admitted calls continue."""
        self.closed = True
        self._set_timer(None)
        for lane in self.lanes.values():
            while lane.queue:
                waiter, _ = lane.queue.popitem(last=False)
                if not waiter.done():
                    waiter.set_exception(AdmissionClosed())

    # --- the choice of a server -----------------------------------------------------------------

    def _choose(self, among: Sequence[Lane], seen: frozenset[Lane], now: float) -> Lane:
        """Return the lane for a new call: a lane due for a probe, else a lane with the cached prefix unless
        it is overloaded, else the lane with the shortest wait."""
        usable = []
        for lane in among:
            if lane.usable:
                usable.append(lane)
            elif not lane.queue and lane.has_room and lane.find_allowed_time(now) <= now:
                return lane
        if not usable:
            return min(among, key=lambda lane: (lane.open_until, len(lane.queue)))
        usual = self._find_usual_latency()
        wait = {lane: lane.estimate_wait(now, usual) for lane in usable}
        best = min(usable, key=wait.__getitem__)
        if known := [lane for lane in usable if lane in seen]:
            cached = min(known, key=wait.__getitem__)
            if wait[cached] <= _OVERLOADED * wait[best]:
                return cached
        return best

    def _find_usual_latency(self) -> float:
        known = [lane.latency for lane in self.lanes.values() if lane.latency is not None]
        return min(known) if known else _USUAL

    def _move_queue(self, lane: Lane) -> None:
        """Move the calls that wait for an unusable server to other lanes."""
        now, queue = self._find_own_loop().time(), [*lane.queue.items()]
        for waiter, call in queue:
            if self.has_others(lane, call.among):
                del lane.queue[waiter]
                self._choose(call.among, call.seen, now).queue[waiter] = call

    def _take_over(self, lane: Lane, now: float) -> tuple[Lane, Waiter[Ticket], WaitingCall] | None:
        """Find a call that a lane without a queue can take over. Return its present lane, its waiter and the
        call; None if there is none."""
        usual = self._find_usual_latency()
        wait = lane.estimate_wait(now, usual)
        full = [other for other in self.lanes.values() if other.queue and other is not lane]
        for other in sorted(full, key=lambda one: -one.estimate_wait(now, usual)):
            overloaded = not other.usable or other.estimate_wait(now, usual) > _OVERLOADED * wait
            for waiter, call in islice(other.queue.items(), _LOOKED_AT):
                if lane in call.among and (overloaded or not call.seen or lane in call.seen):
                    return other, waiter, call
        return None

    # --- decisions ------------------------------------------------------------------------------

    def _has_room(self, lane: Lane) -> bool:
        return lane.running < lane.window.size and self.running + self.unstored < self._most

    def _has_others_waiting(self, lane: Lane) -> bool:
        """Return whether calls wait at another server, perhaps for the rates that all servers share."""
        return len(self.lanes) > 1 and any(one.queue for one in self.lanes.values() if one is not lane)

    def _find_own_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._loop

    def _admit_ready(self) -> None:
        """Admit, in order, all calls that may go now, and schedule the next check."""
        if self.running + self.unstored >= self._most and self._timer is None:
            return
        wake_at: float | None = None
        if len(self.lanes) == 1:
            (lane,) = self.lanes.values()
            if lane.queue and self._has_room(lane):
                wake_at = self._admit_first(lane)
        elif any(lane.queue for lane in self.lanes.values()):
            wake_at = self._admit_to_several()
        elif self._timer is None:
            return
        self._set_timer(wake_at)

    def _admit_first(self, lane: Lane) -> float | None:
        """Admit the calls of the only lane; return the time of the next check, if any."""
        now = self._find_own_loop().time()
        while lane.queue and self._has_room(lane):
            waiter, call = next(iter(lane.queue.items()))
            if not waiter.done():  # done: cancelled, but its task has not run yet
                if (allowed_at := self._find_allowed_time(lane, call.tokens, now)) > now:
                    return allowed_at
                del lane.queue[waiter]
                waiter.set_result(self._grant(lane, call.tokens, now))
            else:
                del lane.queue[waiter]
        return None

    def _admit_to_several(self) -> float | None:
        """Admit the calls of several lanes, oldest first; return the time of the next check, if any."""
        now = self._find_own_loop().time()
        while self.running + self.unstored < self._most:
            open_lanes = [lane for lane in self.lanes.values() if lane.has_room]
            ready = [lane for lane in open_lanes if lane.find_allowed_time(now) <= now]
            found = [(lane, *next(iter(lane.queue.items()))) for lane in ready if lane.queue]
            if found:
                source, waiter, call = min(found, key=lambda one: one[2].number)
                lane = source
            else:
                for lane in ready:
                    if not lane.queue and (taken := self._take_over(lane, now)) is not None:
                        source, waiter, call = taken
                        break
                else:
                    moments = [lane.find_allowed_time(now) for lane in open_lanes]
                    return min((moment for moment in moments if moment > now), default=None)
            if not waiter.done():
                if self._rates is not None and (allowed_at := self._rates.find_ready_time(call.tokens)) > now:
                    return allowed_at
                del source.queue[waiter]
                waiter.set_result(self._grant(lane, call.tokens, now))
            else:
                del source.queue[waiter]
        return None

    def _find_allowed_time(self, lane: Lane, tokens: int, now: float) -> float:
        """Return the loop's time from which pauses, probes and rates allow the next call."""
        moment = lane.find_allowed_time(now)
        return moment if self._rates is None else max(moment, self._rates.find_ready_time(tokens))

    def _grant(self, lane: Lane, tokens: int, now: float) -> Ticket:
        if self._rates is not None:
            self._rates.take(tokens, now)
        self.running += 1
        return lane.grant(tokens, now)

    def _forget(self, waiter: asyncio.Future[Ticket]) -> None:
        """Remove a cancelled waiter from the queues, or settle the ticket that it was just given."""
        for lane in self.lanes.values():
            lane.queue.pop(waiter, None)
        if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
            if self._rates is not None:
                self._rates.give_request_back()
            self.settle(waiter.result(), tokens=0, verdict=LoadVerdict.OTHER)
        self._admit_ready()

    def _set_timer(self, moment: float | None) -> None:
        if self._timer is not None:
            if self._timer.when() == moment:
                return
            self._timer.cancel()
            self._timer = None
        if moment is not None:
            self._timer = self._find_own_loop().call_at(moment, self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        self._admit_ready()
