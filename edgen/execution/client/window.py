"""An adaptive window: how many calls may be in flight at once.

Additive increase, multiplicative decrease (D.-M. Chiu and R. Jain, 1989), with TCP's slow start (RFC 5681).
The window starts at 32 and grows by one for each answer until the server's first complaint, later by one for
each window of answers. A complaint (429, 503, timeout) shrinks it to three fifths of the calls in flight; it
then returns quickly to just below the point of the complaint, and grows slowly from there. All complaints
about calls admitted before a decrease count once, as one episode.

Some complaints are independent of the window: a service that fails one call in twenty does so at any load. A
full server complains only near the window's maximum. So the share of complaints at a much smaller window is
the background. Complaints within the background do not shrink the window; it grows quickly to slightly above
the calls in flight at such a complaint.

Servers that queue instead of complaining (vLLM) show overload only by their latency. So the median latency of
one epoch of calls, a window of them, is compared with the best epoch's. Above 2.5 times that, the window
shrinks a little. If several decreases in a row do not lower the latency, the window was not the cause, but
longer answers or a slower server: the observed latency then becomes the reference, and the window opens
again.

A server may also report how many calls it answers at once, its slots. Then the window starts and stays there,
since more calls would only wait. But several servers may share the address. So after two epochs it tries half
as many more, and keeps them if the latency stays the same.

The window only decides; it reads no clock and needs no event loop.
"""

from __future__ import annotations

import enum
import math
from typing import Literal

_START = 32
_LIMITING = 0.8  # if this share of the window is in use, the window is the limit
_DECREASE = 0.6  # share of the calls in flight that remains after a complaint
_FEW = 0.125  # share of the window: with fewer calls in flight, no service is full
_ONWARDS = 1.05  # growth is quick up to this multiple of the calls in flight at a background complaint
_RETURN_TO = 0.85  # growth is quick up to this share of the calls in flight at the last complaint


class LoadVerdict(enum.Enum):
    """The meaning of a finished call for the server's load."""

    OK = "ok"
    CONGESTED = "congested"  # 429, 503, overloaded, timeout
    AWAY = "away"  # failed connection: says nothing about the load
    OTHER = "other"  # says nothing about the load


# Bound once: looking up an enum member is slow, and every call of a run ends here.
_OK, _CONGESTED = LoadVerdict.OK, LoadVerdict.CONGESTED


class Window:
    """The window. `size` is the maximum of calls in flight, from 1 to `most`."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.size = min(most, _START)
        self._quick_below = float(most)
        self._credit = 0  # answers counted towards the next step of slow growth
        self._episode = 0  # calls up to this number were admitted before the last decrease
        self._before: tuple[int, float, int, int] | None = None  # state kept by `remember`
        self._least = 0  # fewest calls in flight at a refusal since `_before`
        self._epoch = _Epoch(0, self.size)
        self._baseline = _Baseline()
        self._background = _Background()
        self._slots: _Slots | None = None

    @property
    def slots(self) -> int | None:
        """The number of calls that the server answers at once; None if unknown."""
        return None if self._slots is None else self._slots.known

    def know_slots(self, slots: int, admitted: int) -> None:
        """Start at the number of calls that the server says it answers at once. `admitted` is the number of
        the newest call."""
        self._slots = _Slots(slots)
        self.size = min(self.most, slots)
        self._episode = admitted
        self._epoch = _Epoch(admitted, self.size)

    def note_end(
        self, number: int, verdict: LoadVerdict, latency: float, running: int, admitted: int
    ) -> None:
        """Record that call `number` (counted from 1) ended after `latency` seconds.

        `running` calls were in flight, including it; `admitted` is the number of the newest call.
        """
        limiting = running >= self.size * _LIMITING
        if self._epoch.add(number, latency, answered=verdict is _OK):
            if limiting and self._epoch.median is not None:
                self._judge(self._epoch.median, admitted)
            self._epoch = _Epoch(admitted, self.size)
        complaint = verdict is _CONGESTED
        if not (complaint or verdict is _OK) or number <= self._episode:
            return
        full_at = self._background.full_at
        if complaint:
            self._note_complaint(running, admitted)
        elif limiting and self.size < self._limit:
            self._grow()
        # Counted last, so that no complaint explains itself.
        self._background.count(complaint=complaint, well_below=running < full_at * _WELL_BELOW)

    def remember(self, running: int, *, first: bool) -> None:
        """Record a refusal that may be unrelated to load, with `running` calls in flight. `first`: the first
        refusal in a row; save the state."""
        if first:
            self._before = (self.size, self._quick_below, self._credit, self._background.full_at)
            self._least = running
        self._least = min(self._least, running)

    def forgive_probe(self, running: int) -> bool:
        """Return whether a refused probe shows that refusals are unrelated to load, since too few calls are
        in flight, or clearly fewer than at earlier refusals. If so, restore the saved state."""
        if self._before is None:
            return running == 1
        if running > max(1, self._before[0] * _FEW, self._least * _WELL_BELOW):
            return False
        self.size, self._quick_below, self._credit, self._background.full_at = self._before
        return True

    @property
    def _limit(self) -> int:
        return self.most if self._slots is None else min(self.most, self._slots.limit)

    def _judge(self, median: float, admitted: int) -> None:
        """React to the median latency of an epoch."""
        if self._slots is not None and self.size == self._slots.limit:
            self._slots.judge(median)
            self.size = min(self.size, self._slots.limit)
        advice = self._baseline.judge(median)
        if advice == "shrink":
            self.size = max(1, int(self.size * _GENTLE))
            self._quick_below = 0.0
            self._episode = admitted
        elif advice == "reopen":
            self._quick_below = float(self.most)

    def _note_complaint(self, running: int, admitted: int) -> None:
        if self._slots is not None and self._slots.end_trial():
            self.size, self._episode = self._limit, admitted
            return
        if self._background.explains():  # then the last decrease was futile
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


_MEMORY = 64  # calls for computing a share of complaints
_WELL_BELOW = 0.7  # share of the calls in flight at the last complaint that counted
_MOSTLY = 0.3  # share of complaints that is never background
_CLEARLY = (2.0, 0.05)  # a share of complaints above factor * background + addend is not background
_KNOWN = 0.002  # a background below this counts as zero
_FORGET = 0.9995  # decay of the background per call, so that it is measured again in time


class _Background:
    """Complaints that are independent of the window. `full_at`: calls in flight when one last counted."""

    def __init__(self) -> None:
        self.full_at = 0
        self._share = 0.0  # share of complaints among recent calls
        self._level = 0.0  # the same among calls made well below `full_at`

    def count(self, *, complaint: bool, well_below: bool) -> None:
        """Record an ended call. `well_below`: far fewer calls than `full_at` were in flight."""
        self._share += (complaint - self._share) / _MEMORY
        if well_below:
            self._level += (complaint - self._level) / _MEMORY
        else:
            self._level *= _FORGET

    def explains(self) -> bool:
        """Return whether the complaints are within the background."""
        times, plus = _CLEARLY
        known = self._level > _KNOWN and self._share < _MOSTLY
        return known and self._share <= times * self._level + plus


_EPOCH = 64  # minimum calls: keeps the noise of an epoch's median near a tenth
_ENOUGH = 0.75  # share of an epoch's calls to wait for; a median does not need the slowest
_SLOW = 2.5
_GENTLE = 0.8
_NOTICEABLE = 0.05  # seconds: a smaller excess over the best is not a queue worth a decrease
_FUTILE_AFTER = 3  # gentle decreases in a row, to about half the window
_RELIEVED = 0.8  # share of the worst latency among them, below which they helped


class _Epoch:
    """The calls admitted next after call `start`, as many as the window holds.

    Calls belong to an epoch by their admission, since short answers are overrepresented among the first to
    come back. `median` is their median latency, in seconds, once enough are back; None before, or if too few
    were answered.
    """

    def __init__(self, start: int, window: int) -> None:
        self.median: float | None = None
        self._start = start
        self._calls = max(window, _EPOCH)
        self._back = 0
        self._latencies: list[float] = []

    def add(self, number: int, latency: float, *, answered: bool) -> bool:
        """Count call `number`, if it belongs to the epoch; return whether the epoch is over."""
        if not self._start < number <= self._start + self._calls:
            return False
        self._back += 1
        if answered:
            self._latencies.append(latency)
        if self._back < self._calls * _ENOUGH:
            return False
        # Calls still running are slower than the median; failed ones are ignored.
        middle = (len(self._latencies) + self._calls - self._back) // 2
        if middle < len(self._latencies):
            self.median = sorted(self._latencies)[middle]
            return True
        return self._back == self._calls


_EPOCHS = 2  # epochs at the known slots before more are tried, so that short jobs try none
_MORE = 1.5  # multiple of the known slots that is tried
_SAME = 1.25  # up to this multiple of the latency at the known slots, it counts as the same


class _Slots:
    """The slots of a server: those `known`, and the `limit` of the window, which is above them in a trial.

    If the server really has so many slots, a trial raises the latency as much as the window, and is the last.
    """

    def __init__(self, known: int) -> None:
        self.known = self.limit = known
        self._latencies: list[float] = []  # medians at the known slots, in seconds
        self._done = False

    def judge(self, median: float) -> None:
        """Take in the median latency of an epoch at the limit, in seconds, and move the limit."""
        if self.limit > self.known:
            if median > max(self._latencies) * _SAME:
                self.end_trial()
                return
            self.known, self._latencies = self.limit, []
        self._latencies.append(median)
        if len(self._latencies) >= _EPOCHS and not self._done:
            self.limit = math.ceil(self.known * _MORE)

    def end_trial(self) -> bool:
        """Return to the known slots for good; return whether there was a trial."""
        trying, self.limit = self.limit > self.known, self.known
        self._done = self._done or trying
        return trying


class _Baseline:
    """The latency without queueing: the best epoch's, as long as it explains the observations."""

    def __init__(self) -> None:
        self._best = float("inf")
        self._worst = 0.0  # the worst latency since the first decrease in a row
        self._decreases = 0  # decreases in a row

    def judge(self, latency: float) -> Literal["keep", "shrink", "reopen"]:
        """Return the window's reaction to the latency of an epoch."""
        self._best = min(self._best, latency)
        if latency <= max(self._best * _SLOW, self._best + _NOTICEABLE):
            self._decreases = 0
            self._worst = 0.0
            return "keep"
        # A queue keeps growing for a while after a decrease: use the worst of the row.
        self._worst = max(self._worst, latency)
        if self._decreases >= _FUTILE_AFTER and latency > self._worst * _RELIEVED:
            self._best = latency
            self._decreases = 0
            self._worst = 0.0
            return "reopen"
        self._decreases += 1
        return "shrink"
