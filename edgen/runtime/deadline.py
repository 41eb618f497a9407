"""Deadlines of work: `--until` by the wall clock, `--for` by elapsed time."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime

from edgen.core.errors import DeadlineError, UsageError
from edgen.core.text import compile_later, seconds

_HOUR = compile_later(r"([01]?\d|2[0-3]):([0-5]\d)")
_DAY = 24 * 60  # minutes
_LONGEST = 366 * 86_400.0  # most seconds that `--for` can span

Clock = Callable[[], float]


class Deadline:
    """The earlier of two deadlines. `wall` and `passed` are clocks in seconds: one since the epoch, one that
    never jumps.

    The wall clock is read at every look, so it may be set, or jump after the machine slept. Raises UsageError
    for an invalid time.
    """

    def __init__(
        self, until: str | None, for_: str | None, *, wall: Clock = time.time, passed: Clock = time.monotonic
    ) -> None:
        self._wall = wall
        self._passed = passed
        self._at = None if until is None else _parse_moment(until.strip(), wall())
        self._end = None if for_ is None else passed() + _parse_span(for_)
        self._until, self._for = until, for_

    def check(self) -> None:
        """Raise DeadlineError if the deadline has passed. Call it before any work begins."""
        if self._at is not None and self._at <= self._wall():
            raise DeadlineError(
                f"--until {self._until}: this time has passed, so nothing was started. "
                "Start again with a later time; the run resumes where it stopped."
            )

    def count_seconds_left(self) -> float:
        """Return the seconds until the deadline: 0 or less after it, infinite without one."""
        left = float("inf")
        if self._at is not None:
            left = self._at - self._wall()
        if self._end is not None:
            left = min(left, self._end - self._passed())
        return left

    def make_reason(self) -> DeadlineError:
        """Return the error that stops the work."""
        by_clock = self._at is not None and self._wall() >= self._at
        option = f"--until {self._until}" if by_clock else f"--for {self._for}"
        return DeadlineError(
            f"Stopped by {option}. All answers are stored; run the same command again to resume."
        )


def _parse_span(text: str) -> float:
    try:
        span = seconds(text)
    except ValueError as problem:
        raise UsageError(f"--for: {problem}.") from None
    if span > _LONGEST:
        raise UsageError(f"--for {text}: that is more than a year.")
    return span


def _parse_moment(text: str, now: float) -> float:
    """Return a moment in seconds since the epoch, from the next HH:MM or an ISO date and time, local unless
    it names a zone."""
    if hour := _HOUR.fullmatch(text):
        return _find_next_moment(int(hour[1]) * 60 + int(hour[2]), now)
    try:
        if "T" not in text.upper() and " " not in text:  # a date alone has no time
            raise ValueError
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        raise UsageError(
            f"--until {text}: expected a time of day or a date with a time, as in --until 06:00 or "
            "--until 2027-01-31T06:00. Midnight is 00:00."
        ) from None


def _find_next_moment(wanted: int, now: float) -> float:
    """Return the first moment after `now` at which a wall clock reaches or jumps over that minute of the day.

    It searches minute by minute in the system's time zone, since an hour occurs twice when clocks are put
    back.
    """
    before = _round_to_minute(now)
    for moment in range((int(now) // 60 + 1) * 60, int(now) + 3 * 86_400, 60):
        here = _round_to_minute(moment)
        step = (here - before) % _DAY
        if here == wanted or (0 < (wanted - before) % _DAY <= step <= _DAY // 2):
            return float(moment)
        before = here
    raise AssertionError("every day has every minute, or jumps over it")


def _round_to_minute(moment: float) -> int:
    local = time.localtime(moment)
    return local.tm_hour * 60 + local.tm_min
