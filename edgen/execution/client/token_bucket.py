"""A token bucket on a clock given by the caller.

The bucket holds a few seconds' worth (its burst) and refills slower than the limit, so that burst and refill
together stay within it: at most `per_minute` is taken in any 60 seconds, if no single amount is larger than
the burst. A larger amount passes when the bucket is full, and later amounts wait until its debt is refilled.
It can exceed the limit by its excess over the burst.
"""

from __future__ import annotations

# A millisecond more than a minute, so that rounding never admits one call too many.
_MINUTE = 60.001


class Bucket:
    """A bucket whose smallest amount is `unit`: 1 for requests. Times are seconds of any one clock.

    The whole state is the moment at which the bucket will be full (the "theoretical arrival time" of the
    generic cell rate algorithm, ITU-T I.371).
    """

    def __init__(self, per_minute: float, *, burst_seconds: float, unit: float = 0.0) -> None:
        # A minute that begins with taking one unit contains that unit and the refill, so only the part of the
        # burst beyond one unit lowers the rate.
        self.capacity = max(unit, per_minute * burst_seconds / 60)
        self._rate = (per_minute - (self.capacity - unit)) / _MINUTE
        self._full_at = float("-inf")

    def find_ready_time(self, amount: float) -> float:
        """Return the moment from which `amount` may be taken; -inf if always."""
        return self._full_at - (self.capacity - min(amount, self.capacity)) / self._rate

    def take(self, amount: float, now: float) -> None:
        """Take `amount`, even if the bucket holds less."""
        self._full_at = max(self._full_at, now) + amount / self._rate

    def give_back(self, amount: float) -> None:
        """Return an unused amount; negative: take the excess."""
        self._full_at += -amount / self._rate


_BURST_SECONDS = 2.0  # capacity of the buckets of a service's rates


class Rates:
    """The rate limits of a service, on requests and on tokens; None: no limit."""

    def __init__(self, requests: Bucket | None, tokens: Bucket | None) -> None:
        self._requests, self._tokens = requests, tokens

    @classmethod
    def of(cls, requests_per_minute: float | None, tokens_per_minute: float | None) -> Rates:
        """Return the rates that hold over every 60 seconds."""
        return cls(_make_bucket(requests_per_minute, unit=1.0), _make_bucket(tokens_per_minute))

    def find_ready_time(self, tokens: int) -> float:
        """Return the time from which a request of this many tokens may be sent; -inf if always."""
        moment = float("-inf")
        if self._requests is not None:
            moment = self._requests.find_ready_time(1.0)
        if self._tokens is not None:
            moment = max(moment, self._tokens.find_ready_time(tokens))
        return moment

    def take(self, tokens: int, now: float) -> None:
        """Take one request of this many tokens."""
        if self._requests is not None:
            self._requests.take(1.0, now)
        if self._tokens is not None:
            self._tokens.take(tokens, now)

    def give_back(self, tokens: int) -> None:
        """Return unused tokens; negative: take the excess."""
        if self._tokens is not None:
            self._tokens.give_back(tokens)

    def give_request_back(self) -> None:
        """Return a request that was not sent."""
        if self._requests is not None:
            self._requests.give_back(1.0)


def _make_bucket(per_minute: float | None, unit: float = 0.0) -> Bucket | None:
    return None if per_minute is None else Bucket(per_minute, burst_seconds=_BURST_SECONDS, unit=unit)
