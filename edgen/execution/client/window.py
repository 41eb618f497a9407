"""How many calls may be in flight at once: a window that adapts to the server.

Additive increase, multiplicative decrease (D.-M. Chiu and R. Jain, 1989), with TCP's slow start
(RFC 5681). The window starts at 32, grows by one for each answer until the server first complains,
and from then on by one for each window of answers. A complaint (429, 503, timeout) takes two fifths
of it; it then returns quickly to just below where the complaint came, and feels its way on from
there. All complaints about calls that were admitted before a decrease belong to one episode and
count once.

Some complaints have nothing to do with the window: a service that fails one call in twenty does so
at any load. A full server complains only where the window had grown to. So the share of complaints
while the window is well below that is the background; complaints that it explains shrink nothing, and
let the window grow quickly to a little more than what was in flight at them.

Servers that queue instead of complaining (vLLM) show it by their latency alone. So the median
latency of one epoch of calls, a window of them, is compared with the best epoch's. Above 2.5 times
that, the window shrinks a little. If several decreases in a row do not bring latency down, it was
not the window's doing (longer answers, a slower server): what is observed then becomes the measure,
and the window opens again.

This module only decides; it knows no clock and no event loop.
"""

from __future__ import annotations

import enum

_START = 32
_LIMITING = 0.8  # share of the window in use from which on the window is what limits
_DECREASE = 0.6  # what a complaint leaves of the calls in flight
_FEW = 0.125  # share of the window: with so few in flight, no service is full
_ONWARDS = 1.05  # times the calls in flight at a complaint that is background, to which growth is quick
_RETURN_TO = 0.85  # share of the window at the last complaint to which growth is quick


class Verdict(enum.Enum):
    """What a finished call says about the server's load."""

    OK = "ok"
    CONGESTED = "congested"  # 429, 503, overloaded, timeout
    AWAY = "away"  # nobody took the call: for the circuit; nothing about load
    OTHER = "other"  # says nothing


class Window:
    """`size` is how many calls may be in flight, from 1 to `most`."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.size = min(most, _START)
        self._quick_below = float(most)
        self._credit = 0  # answers towards the next step of slow growth
        self._episode = 0  # calls up to this number were admitted before the last decrease
        self._before: tuple[int, float, int, int] | None = None  # what `remember` keeps
        self._least = 0  # calls in flight at a refusal since then
        self._epoch = _Epoch(0, self.size)
        self._baseline = _Baseline()
        self._background = _Background()

    def note_end(self, number: int, verdict: Verdict, latency: float, running: int, admitted: int) -> None:
        """Call `number` (counted from 1) ended after `latency` seconds.

        `running` calls were in flight, it included; `admitted` is the number of the newest call.
        """
        limiting = running >= self.size * _LIMITING
        if self._epoch.add(number, verdict is Verdict.OK, latency):
            if limiting and self._epoch.median is not None:
                self._heed(self._baseline.judge(self._epoch.median), admitted)
            self._epoch = _Epoch(admitted, self.size)
        if verdict in (Verdict.OTHER, Verdict.AWAY) or number <= self._episode:
            return
        full_at = self._background.full_at
        if verdict is Verdict.CONGESTED:
            self._complaint(running, admitted)
        elif limiting and self.size < self.most:
            self._grow()
        # Afterwards, so that no complaint explains itself.
        self._background.count(verdict is Verdict.CONGESTED, running < full_at * _WELL_BELOW)

    def remember(self, running: int, *, first: bool) -> None:
        """A refusal that may turn out to say nothing about load, with so many in flight; at the first of a row,
        keep how it stands."""
        if first:
            self._before = (self.size, self._quick_below, self._credit, self._background.full_at)
            self._least = running
        self._least = min(self._least, running)

    def acquit(self, running: int) -> bool:
        """Whether another refusal has nothing to do with load: so few are in flight that nobody is full, or clearly
        fewer than at those before. Then the service refuses whatever comes, and it stands as remembered again."""
        if self._before is None:
            return running == 1
        if running > max(1, self._before[0] * _FEW, self._least * _WELL_BELOW):
            return False
        self.size, self._quick_below, self._credit, self._background.full_at = self._before
        return True

    def _heed(self, advice: Advice, admitted: int) -> None:
        if advice is Advice.SHRINK:
            self.size = max(1, int(self.size * _GENTLE))
            self._quick_below = 0.0
            self._episode = admitted
        elif advice is Advice.REOPEN:
            self._quick_below = float(self.most)

    def _complaint(self, running: int, admitted: int) -> None:
        if self._background.explains():  # the last decrease was in vain, too
            reached = max(running, self._background.full_at)
            self._quick_below = max(self._quick_below, _ONWARDS * reached)
            return
        in_use = min(self.size, running)
        self._background.full_at = in_use
        self.size = max(1, int(in_use * _DECREASE))
        self._quick_below = in_use * _RETURN_TO
        self._credit = 0
        self._episode = admitted

    def _grow(self) -> None:
        if self.size < self._quick_below:
            self.size += 1
            return
        self._credit += 1
        if self._credit >= self.size:
            self._credit = 0
            self.size += 1


_MEMORY = 64  # calls over which a share of complaints is taken
_WELL_BELOW = 0.7  # of the window at the last complaint that counted
_MOSTLY = 0.3  # share of complaints that is never background
_CLEARLY = (2.0, 0.05)  # times the background, plus: a share that it no longer explains
_KNOWN = 0.002  # a background below this is none
_FORGET = 0.9995  # of the background, a call: what is explained away is looked at again in time


class _Background:
    """Complaints that come at any window. `full_at`: calls in flight when one last counted."""

    def __init__(self) -> None:
        self.full_at = 0
        self._share = 0.0  # of complaints among all calls of late
        self._level = 0.0  # among those made well below `full_at`

    def count(self, complaint: bool, well_below: bool) -> None:
        """A call ended; `well_below`: with far fewer calls in flight than at `full_at`."""
        self._share += (complaint - self._share) / _MEMORY
        if well_below:
            self._level += (complaint - self._level) / _MEMORY
        else:
            self._level *= _FORGET

    def explains(self) -> bool:
        """Whether complaints are no more than the background."""
        times, plus = _CLEARLY
        known = self._level > _KNOWN and self._share < _MOSTLY
        return known and self._share <= times * self._level + plus


_EPOCH = 64  # calls at least: keeps the noise of an epoch's median near a tenth
_ENOUGH = 0.75  # share of an epoch's calls to wait for; the slowest need not be known for a median
_SLOW = 2.5
_GENTLE = 0.8
_NOTICEABLE = 0.05  # seconds: less than this above the best is no queue worth a decrease
_FUTILE_AFTER = 3  # gentle decreases in a row, to about half the window
_RELIEVED = 0.8  # share of the worst latency among them, below which they helped


class _Epoch:
    """The calls admitted next after call `start`, as many as the window holds.

    They are chosen when admitted, not when answered: among the first answers the short ones are too
    many, all the more while the window grows. `median` is their median latency, in seconds, once
    enough are back; None if none was answered.
    """

    def __init__(self, start: int, window: int) -> None:
        self.median: float | None = None
        self._start = start
        self._calls = max(window, _EPOCH)
        self._back = 0
        self._latencies: list[float] = []

    def add(self, number: int, answered: bool, latency: float) -> bool:
        """Count call `number`, if it is one of them; whether the epoch is over."""
        if not self._start < number <= self._start + self._calls:
            return False
        self._back += 1
        if answered:
            self._latencies.append(latency)
        if self._back < self._calls * _ENOUGH:
            return False
        # Those still out are slower than the median; those that failed are left aside.
        middle = (len(self._latencies) + self._calls - self._back) // 2
        if middle < len(self._latencies):
            self.median = sorted(self._latencies)[middle]
            return True
        return self._back == self._calls


class Advice(enum.Enum):
    """What an epoch's latency calls for."""

    KEEP = enum.auto()
    SHRINK = enum.auto()
    REOPEN = enum.auto()


class _Baseline:
    """What latency is when nothing queues: the best epoch's, as long as it explains what is seen."""

    def __init__(self) -> None:
        self._best = float("inf")
        self._worst = 0.0  # since the first of a row of decreases
        self._decreases = 0  # in this row

    def judge(self, latency: float) -> Advice:
        self._best = min(self._best, latency)
        if latency <= max(self._best * _SLOW, self._best + _NOTICEABLE):
            self._decreases = 0
            self._worst = 0.0
            return Advice.KEEP
        # A queue goes on growing for a while after a decrease: the worst of the row counts.
        self._worst = max(self._worst, latency)
        if self._decreases >= _FUTILE_AFTER and latency > self._worst * _RELIEVED:
            self._best = latency
            self._decreases = 0
            self._worst = 0.0
            return Advice.REOPEN
        self._decreases += 1
        return Advice.SHRINK
