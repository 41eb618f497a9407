"""A circuit breaker that decides whether a service takes calls now (M. Nygard, "Release It!", 2007).

Some services close for a while: they refuse every call, and most say when to come back (Retry-After). The
circuit opens when nearly all of a few consecutive calls are refused. A service that refuses at random or from
overload answers some calls in between, which keeps the circuit closed. While it is open, no call is sent.
After the time requested by the service it is half-open: one call is sent as a probe. Without a requested
time, the first wait is a second and doubles with each refused probe. An answer closes the circuit, a refusal
opens it again. Answers may take long where refusals are instant, so running probes are a good sign: at every
four times the slowest refusal, the number of probes doubles, up to a whole window.

An unreachable service, for example during a restart, refuses or breaks connections. These count as refusals
without a requested time; `unreachable` is True if they opened the circuit.

When it closes, the first window of calls is spread over time: calls sent together return together, and would
meet the next closure together.

The circuit only decides; it reads no clock and needs no event loop.
"""

from __future__ import annotations

import bisect
import math
from typing import Literal

State = Literal["closed", "open", "half-open"]  # closed: calls are sent (as in electrical circuits)

_CLEAR = 4  # refused calls that open the circuit ...
_AMONG = 5  # ... out of this many consecutive ones
_KEPT = 16  # refused calls remembered: refusals may arrive in another order than the calls were sent
_OUTLASTS = 4.0  # a step to more probes, as a multiple of the slowest refusal
_SPREAD = 1.0  # maximum seconds over which the first window is spread
_WAIT = (1.0, 30.0)  # seconds, first and longest, if the service requests none
_WAIT_AWAY = (0.5, 8.0)  # the same for an unreachable service, where probing costs next to nothing
_PATIENCE = 0.25  # minimum seconds of a step: a brief stall is no sign of work


class Circuit:
    """The breaker of one service. Calls are counted from 1; times are seconds of any one clock."""

    def __init__(self) -> None:
        self.state: State = "closed"
        self.until = float("-inf")  # while open: the moment when it becomes half-open
        self.refused_since: float | None = None  # the first refusal without a later answer
        self.unreachable = False  # while not closed: whether the last refusals were failed connections
        self._refused: list[int] = []  # numbers of refused calls, ascending
        self._slowest = 0.0  # seconds of the slowest refusal
        self._in_vain = 0  # refused probes since the last answer
        self._heeded = 0  # calls up to this number were sent before the circuit last closed
        self._probe = 0  # the number of the first probe, 0 before it goes
        self._probing = 0.0  # when the first probe was sent
        self._probes = 0
        self._paced = 0  # calls that still go one at a time,
        self._gap = 0.0  # this many seconds apart,
        self._next = float("-inf")  # the next one at this moment or later

    @property
    def troubled(self) -> bool:
        """True if there are refusals without a later answer."""
        return self.refused_since is not None

    @property
    def counts(self) -> bool:
        """True if `note_sent` must be called."""
        return self.state != "closed" or self._paced > 0

    def note_refusal(
        self, number: int, latency: float, now: float, wait: float, *, unreachable: bool = False
    ) -> bool:
        """Record that call `number` was refused after `latency` seconds; the service asks for `wait` seconds,
        0 for none in particular. `unreachable`: the connection failed.

        Return whether this opened the circuit.
        """
        if number <= self._heeded:
            return False
        if self.state == "half-open" and (self._probe == 0 or number < self._probe):
            return False
        if self.refused_since is None:
            self.refused_since = now
            self._slowest = 0.0
        if not unreachable:  # a connection may break after any time
            self._slowest = max(self._slowest, latency)
        if self.state == "closed":
            bisect.insort(self._refused, number)
            del self._refused[:-_KEPT]
            if not self._clear():
                return False
        if self.state == "half-open":
            self._in_vain += 1
        first, longest = _WAIT_AWAY if unreachable else _WAIT
        self.state, self.unreachable = "open", unreachable
        self.until = max(self.until, now + (wait or min(longest, first * 2.0 ** min(self._in_vain, 64))))
        self._probe = self._probes = self._paced = 0
        return True

    def note_answer(self, number: int, latency: float, now: float, admitted: int, window: int) -> None:
        """Record the answer to call `number`; `admitted` is the number of the newest call."""
        if self.state == "half-open" and 0 < self._probe <= number:
            self.state, self.unreachable = "closed", False
            self.refused_since = None
            self._in_vain = 0
            self._refused.clear()
            self._heeded = admitted
            self._paced = max(0, window - self._probes)
            self._gap, self._next = min(latency, _SPREAD) / window, now
            self._probe = self._probes = 0
        elif self.state == "closed":
            del self._refused[: bisect.bisect(self._refused, number)]
            if not self._refused:
                self.refused_since = None

    def find_allowed_time(self, now: float, window: int) -> float:
        """Return the moment from which the next call may go, -inf if always; `window`: concurrent calls in
        normal operation."""
        if self.state == "closed":
            return self._next if self._paced else float("-inf")
        if self.state == "open":
            if now < self.until:
                return self.until
            self.state = "half-open"
        if self._probes == 0:
            return now
        if self._probes >= window:  # a whole window of probes, and none was refused
            self.state, self.unreachable = "closed", False
            self._refused.clear()
            return now
        # One more by the end of the first step, two more in the second, four in the third ...
        steps = math.log2(self._probes + 1)
        return self._probing + steps * max(_PATIENCE, self._slowest * _OUTLASTS)

    def note_sent(self, number: int, now: float) -> None:
        """Record that call `number` is sent."""
        if self.state == "half-open":
            if self._probes == 0:
                self._probe, self._probing = number, now
            self._probes += 1
        elif self._paced:
            self._paced -= 1
            self._next = max(now, self._next) + self._gap

    def _clear(self) -> bool:
        """Return whether nearly all of some consecutive calls were refused."""
        numbers = self._refused
        return any(b - a < _AMONG for a, b in zip(numbers, numbers[_CLEAR - 1 :], strict=False))
