"""Retries of calls, in one place.

Adapters make one attempt and classify failures; retries of SDKs are off. Only failures that waiting may fix
(errors.RETRYABLE) are retried, with limits on attempts and time, with jitter, and never sooner than the
server asks. Times are read from the running event loop's clock.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import msgspec

from edgen.core.errors import RETRYABLE, CallError, FailureKind, limit_attempts
from edgen.execution.client.window import LoadVerdict

if TYPE_CHECKING:
    from tenacity import RetryCallState

T = TypeVar("T")

_REFUSALS = frozenset({FailureKind.RATE_LIMIT, FailureKind.OVERLOADED})
_CONGESTION = _REFUSALS | {FailureKind.TIMEOUT}
_NO_GATEWAY = 502  # status of a gateway whose server is down


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Limits and waits of retries. `attempts` includes the first. Times are in seconds.

    A wait does not begin if it would end more than `give_up_after` after the start of the first attempt. A
    running attempt may still run to its end, limited by the adapter's timeout, unless the run is stopped
    before.

    Before attempt n + 1 there is a random wait of up to initial * 2 ** (n - 1), at most `maximum` ("full
    jitter": M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015). A wait requested by
    the server is the minimum, with up to `initial` added, so that clients with the same request do not return
    at once. A requested wait longer than `give_up_after` is ignored: the call would only give up after it.
    """

    attempts: int
    give_up_after: float
    initial: float = 0.5
    maximum: float = 60.0

    def wait(self, failed: int, retry_after: float | None, rng: random.Random) -> float:
        """Return the seconds to wait after the `failed`-th failure in a row (counted from 1)."""
        chance = rng.random()
        # 2 ** 64 exceeds every maximum; a float could not hold much more.
        backoff = chance * min(self.maximum, self.initial * 2.0 ** min(failed - 1, 64))
        if retry_after is None or retry_after > self.give_up_after:
            return backoff
        return max(backoff, retry_after + chance * self.initial)

    def classify_failure(self, failure: CallError) -> tuple[LoadVerdict, float | None]:
        """Return a failure's verdict on the service, and the seconds that a refusing service asks to wait: 0
        if it does not say or asks for more than `give_up_after`, None if it did not refuse."""
        if failure.kind is FailureKind.CONNECTION or failure.status == _NO_GATEWAY:
            return LoadVerdict.AWAY, 0.0
        if failure.kind not in _CONGESTION:
            return LoadVerdict.OTHER, None
        asked = failure.retry_after
        if asked is not None and asked > self.give_up_after:
            asked = 0.0
        return LoadVerdict.CONGESTED, asked or (0.0 if failure.kind in _REFUSALS else None)


class Excused(msgspec.Struct):
    """Time and attempts not counted against a call."""

    queued: float = 0.0
    turned_away: int = 0


async def call_with_retries(
    attempt: Callable[[], Awaitable[T]],
    policy: RetryPolicy,
    *,
    on_retry: Callable[[CallError, float], None],
    rng: random.Random,
    excused: Excused | None = None,
) -> T:
    """Return the result of the first attempt that succeeds.

    `on_retry` gets each failure that is followed by a wait, and the seconds of the wait. Raises the last
    CallError unchanged if it is not retryable or attempts or time are used up; any other exception of
    `attempt` passes through at once. `excused` is read after each attempt.
    """
    started = asyncio.get_running_loop().time()
    try:
        return await attempt()
    except CallError as error:
        first = error
    return await retry(attempt, first, policy, started, on_retry, rng, excused or Excused())


async def retry(
    attempt: Callable[[], Awaitable[T]],
    first: CallError,
    policy: RetryPolicy,
    started: float,
    on_retry: Callable[[CallError, float], None],
    rng: random.Random,
    excused: Excused,
) -> T:
    """Do the retries of `call_with_retries` after a first failure. `started`: the loop's time of the first
    attempt. Separate, so that a run without failures does not load tenacity."""
    from tenacity import AsyncRetrying, retry_if_exception

    if limit_attempts(first.kind, policy.attempts) <= 1 - excused.turned_away:
        raise first
    clock = asyncio.get_running_loop().time

    def wait(state: RetryCallState) -> float:
        counted = max(1, state.attempt_number - excused.turned_away)
        return policy.wait(counted, _find_failure(state).retry_after, rng)

    def stop(state: RetryCallState) -> bool:
        # tenacity's own stops read time.monotonic, which is not every loop's clock.
        too_late = clock() - excused.queued + state.upcoming_sleep > started + policy.give_up_after
        most = limit_attempts(_find_failure(state).kind, policy.attempts)
        return too_late or state.attempt_number - excused.turned_away >= most

    failed = iter((first,))

    async def raise_first_then_attempt() -> T:
        for failure in failed:
            raise failure
        return await attempt()

    retrying = AsyncRetrying(
        sleep=asyncio.sleep,
        wait=wait,
        stop=stop,
        retry=retry_if_exception(lambda error: isinstance(error, CallError) and error.kind in RETRYABLE),
        before_sleep=lambda state: on_retry(_find_failure(state), state.upcoming_sleep),
        reraise=True,
    )
    return await retrying(raise_first_then_attempt)


def _find_failure(state: RetryCallState) -> CallError:
    error = state.outcome.exception() if state.outcome is not None else None
    assert isinstance(error, CallError)
    return error
