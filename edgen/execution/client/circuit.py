"""Whether a service takes calls at all now: a circuit breaker (M. Nygard, "Release It!", 2007).

Some services close for a while: they refuse whatever comes, and most say when to come back (Retry-After). The
circuit opens when calls sent one right after the other are refused: nearly all of a few neighbours. A service
that refuses at random, or what is beyond its capacity, refuses some calls and works on those sent between them,
and opens nothing. While it is open nobody goes. After the time that the service asked for it is half-open: one
call goes as a probe. A service that asks for no time gets a second, and twice as long each time that a probe is
refused. An answer closes the circuit, a refusal opens it again. Since an answer may take long where a refusal comes
at once, calls that outlast the refusals count for something, too: each time that the slowest refusal has passed
several times over, as many go again as have gone, until a whole window is out.

A service that is away, because it is being restarted, say, refuses without a word: connections that nobody takes,
or that break. They count as refusals that ask for no time; `away` tells that they were what opened the circuit.

When it closes, the first window of calls goes one after the other, not as one: what goes together comes back
together, and would meet the next time that the service closes together.

Like the window, this only decides; it knows no clock and no event loop.
"""

from __future__ import annotations

import bisect
import math
from typing import Literal

State = Literal["closed", "open", "half-open"]  # closed: calls go; the words are the electrician's

_CLEAR = 4  # refused calls that open the circuit ...
_AMONG = 5  # ... of that many sent one after the other
_KEPT = 16  # refused calls that are looked at: refusals may come in another order than the calls went
_OUTLASTS = 4.0  # times the slowest refusal
_SPREAD = 1.0  # seconds at most, over which the first window goes
_WAIT = (1.0, 30.0)  # seconds, the first and the longest, where the service asks for none
_WAIT_AWAY = (0.5, 8.0)  # the same where nobody takes calls: to knock at a closed door costs next to nothing
_PATIENCE = 0.25  # seconds at least, so that a short hiccup does not look like work


class Circuit:
    """Calls are counted from 1; times are seconds of any one clock."""

    def __init__(self) -> None:
        self.state: State = "closed"
        self.until = float("-inf")  # while open: the moment from which it is half-open
        self.refused_since: float | None = None  # the first of the refusals with no answer after them
        self.away = False  # while not closed: whether nobody took the calls that were refused last
        self._refused: list[int] = []  # numbers, ascending
        self._slowest = 0.0  # seconds that a refusal took
        self._in_vain = 0  # times that a probe was refused, since an answer
        self._heeded = 0  # calls up to this number were sent before the circuit last closed
        self._probe = 0  # the number of the first probe, 0 before it goes
        self._probing = 0.0  # since when
        self._probes = 0
        self._paced = 0  # calls that are still to go one after the other,
        self._gap = 0.0  # so many seconds apart,
        self._next = float("-inf")  # the next one not before this moment

    @property
    def troubled(self) -> bool:
        """Whether there are refusals that no answer has outweighed."""
        return self.refused_since is not None

    @property
    def counts(self) -> bool:
        """Whether `note_sent` has to be told of calls."""
        return self.state != "closed" or self._paced > 0

    def note_refusal(
        self, number: int, latency: float, now: float, wait: float, *, away: bool = False
    ) -> bool:
        """Call `number` was refused after `latency` seconds; the service asks for `wait` seconds, or
        for none in particular (0). `away`: nobody took the call, or the connection broke.

        Whether the circuit is open now because of it.
        """
        if number <= self._heeded:
            return False
        if self.state == "half-open" and (self._probe == 0 or number < self._probe):
            return False
        if self.refused_since is None:
            self.refused_since = now
            self._slowest = 0.0
        if not away:  # a connection may break after any time
            self._slowest = max(self._slowest, latency)
        if self.state == "closed":
            bisect.insort(self._refused, number)
            del self._refused[:-_KEPT]
            if not self._clear():
                return False
        if self.state == "half-open":
            self._in_vain += 1
        first, longest = _WAIT_AWAY if away else _WAIT
        self.state, self.away = "open", away
        self.until = max(self.until, now + (wait or min(longest, first * 2.0 ** min(self._in_vain, 64))))
        self._probe = self._probes = self._paced = 0
        return True

    def note_answer(self, number: int, latency: float, now: float, admitted: int, window: int) -> None:
        """Call `number` was answered; `admitted` is the number of the newest call."""
        if self.state == "half-open" and 0 < self._probe <= number:
            self.state, self.away = "closed", False
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

    def allowed_at(self, now: float, window: int) -> float:
        """The moment from which the next call may go, -inf if it always could; `window`: how many may be out at
        once where nothing is wrong."""
        if self.state == "closed":
            return self._next if self._paced else float("-inf")
        if self.state == "open":
            if now < self.until:
                return self.until
            self.state = "half-open"
        if self._probes == 0:
            return now
        if self._probes >= window:  # so many, and none refused
            self.state, self.away = "closed", False
            self._refused.clear()
            return now
        # One more by the end of the first step, two more in the second, four in the third ...
        steps = math.log2(self._probes + 1)
        return self._probing + steps * max(_PATIENCE, self._slowest * _OUTLASTS)

    def note_sent(self, number: int, now: float) -> None:
        """Call `number` goes."""
        if self.state == "half-open":
            if self._probes == 0:
                self._probe, self._probing = number, now
            self._probes += 1
        elif self._paced:
            self._paced -= 1
            self._next = max(now, self._next) + self._gap

    def _clear(self) -> bool:
        """Whether nearly all of some calls sent one after the other were refused."""
        numbers = self._refused
        return any(b - a < _AMONG for a, b in zip(numbers, numbers[_CLEAR - 1 :], strict=False))
