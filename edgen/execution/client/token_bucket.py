"""A token bucket on somebody else's clock.

The bucket holds a few seconds' worth (its burst) and refills so much more slowly than the limit
that burst and refill together keep to it: in any 60 seconds no more than `per_minute` is taken, as
long as no single taking is larger than the burst. A larger one is let through when the bucket is
full, and leaves a debt that later ones wait for; it can go beyond the limit by its own excess.
"""

from __future__ import annotations

# A millisecond more than a minute, so that rounding never squeezes one call too many into one.
_MINUTE = 60.001


class Bucket:
    """`unit` is the smallest taking: 1 for requests. Times are seconds of any one clock.

    The whole state is the moment at which the bucket will be full (the "theoretical arrival time"
    of the generic cell rate algorithm, ITU-T I.371).
    """

    def __init__(self, per_minute: float, *, burst_seconds: float, unit: float = 0.0) -> None:
        # With takings of one unit, a window that begins at a taking holds one unit more than the
        # refill brings: the unit itself needs no room below the limit.
        self.capacity = max(unit, per_minute * burst_seconds / 60)
        self._rate = (per_minute - (self.capacity - unit)) / _MINUTE
        self._full_at = float("-inf")

    def ready_at(self, amount: float) -> float:
        """The moment from which `amount` may be taken; -inf if it always could."""
        return self._full_at - (self.capacity - min(amount, self.capacity)) / self._rate

    def take(self, amount: float, now: float) -> None:
        """Take `amount`, whether or not it is there."""
        self._full_at = max(self._full_at, now) + amount / self._rate

    def give_back(self, amount: float) -> None:
        """Return what was taken and not used; negative: take what was used on top."""
        self._full_at += -amount / self._rate
