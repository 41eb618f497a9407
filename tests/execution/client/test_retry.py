"""Retries: which failures are retried, when, and when the client gives up; all in virtual time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgen.core.errors import RETRYABLE, CallError, FailureKind
from edgen.execution.client.retry import Excused, RetryPolicy, call_with_retries
from tests.clock import run_virtual

pytestmark = pytest.mark.unit

POLICY = RetryPolicy(attempts=6, give_up_after=600)


class Service:
    """A service that answers by a script, one item per attempt, and notes the times of requests."""

    def __init__(self, *script: Exception | str, seconds: float = 1.0) -> None:
        self.script = list(script)
        self.seconds = seconds
        self.asked: list[float] = []
        self.told: list[tuple[CallError, float]] = []

    async def attempt(self) -> str:
        self.asked.append(asyncio.get_running_loop().time())
        await asyncio.sleep(self.seconds)
        answer = self.script.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def on_retry(self, failure: CallError, wait: float) -> None:
        self.told.append((failure, wait))

    def call(self, policy: RetryPolicy = POLICY, seed: int = 1) -> str:
        return run_virtual(
            call_with_retries(self.attempt, policy, on_retry=self.on_retry, rng=random.Random(seed))
        )

    def failure(self, policy: RetryPolicy = POLICY) -> BaseException:
        with pytest.raises(CallError) as caught:
            self.call(policy)
        return caught.value


def failure(kind: FailureKind = FailureKind.SERVER_ERROR, retry_after: float | None = None) -> CallError:
    return CallError(kind, "no", retry_after=retry_after)


def test_what_a_service_cannot_read_of_its_own_model_is_tried_a_little() -> None:
    service = Service(*[failure(FailureKind.BAD_OUTPUT)] * 6)
    assert service.failure().kind is FailureKind.BAD_OUTPUT  # type: ignore[attr-defined]
    assert len(service.asked) == 2
    assert service.asked[-1] < 3
    assert Service(failure(FailureKind.BAD_OUTPUT), "answer").call() == "answer"


def test_a_first_answer_is_returned() -> None:
    service = Service("answer")
    assert service.call() == "answer"
    assert (len(service.asked), service.told) == (1, [])


@pytest.mark.parametrize("kind", sorted(RETRYABLE - {FailureKind.BAD_OUTPUT}))
def test_what_waiting_mends_is_tried_again(kind: FailureKind) -> None:
    service = Service(failure(kind), failure(kind), "answer")
    assert service.call() == "answer"
    assert [told.kind for told, _ in service.told] == [kind, kind]


@pytest.mark.parametrize("kind", sorted(set(FailureKind) - RETRYABLE))
def test_what_it_does_not_mend_is_raised_as_it_is(kind: FailureKind) -> None:
    first = failure(kind)
    assert Service(first).failure() is first
    second = failure(kind, retry_after=1)
    service = Service(failure(), second)
    assert service.failure() is second
    assert len(service.asked) == 2


def test_the_last_failure_is_raised_when_attempts_are_used_up() -> None:
    failures = [failure() for _ in range(9)]
    service = Service(*failures)
    assert service.failure() is failures[5]
    assert (len(service.asked), len(service.told)) == (6, 5)


def test_one_attempt_means_no_retry() -> None:
    service = Service(failure(), "answer")
    service.failure(RetryPolicy(attempts=1, give_up_after=600))
    assert len(service.asked) == 1


def test_the_wait_that_the_server_asks_for_is_obeyed() -> None:
    service = Service(failure(FailureKind.RATE_LIMIT, retry_after=40), "answer")
    service.call()
    (wait,) = (seconds for _, seconds in service.told)
    assert 40 <= wait <= 40.5
    assert service.asked[1] == pytest.approx(1 + wait)


def test_no_wait_is_begun_that_ends_past_the_time_limit() -> None:
    late = failure(FailureKind.RATE_LIMIT, retry_after=599.5)
    service = Service(failure(), late, "answer")
    assert service.failure() is late
    assert len(service.asked) == 2
    assert len(service.told) == 1


def test_a_wait_that_is_longer_than_the_time_limit_is_taken_as_not_said() -> None:
    service = Service(*(failure(FailureKind.RATE_LIMIT, retry_after=86_400) for _ in range(5)), "answer")
    assert service.call() == "answer"
    assert all(wait <= POLICY.initial * 2**failed for failed, (_, wait) in enumerate(service.told))


def test_time_spent_in_attempts_counts() -> None:
    service = Service(*(failure() for _ in range(99)), seconds=250)
    service.failure(RetryPolicy(attempts=99, give_up_after=600))
    assert len(service.asked) == 3  # begun near 0, 250 and 500 seconds


@pytest.mark.parametrize("error", [ValueError("a bug"), KeyError("a bug")])
@pytest.mark.parametrize("before", [0, 1])
def test_other_errors_pass_through(error: Exception, before: int) -> None:
    service = Service(*(failure() for _ in range(before)), error)
    with pytest.raises(type(error)) as caught:
        service.call()
    assert caught.value is error


@pytest.mark.parametrize("moment", [0.5, 20.0])
def test_cancellation_passes_through(moment: float) -> None:
    service = Service(failure(retry_after=100), "answer")

    async def main() -> int:
        call: Callable[..., Any] = call_with_retries
        task = asyncio.create_task(
            call(service.attempt, POLICY, on_retry=lambda _failure, _wait: None, rng=random.Random(1))
        )
        await asyncio.sleep(moment)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return len(service.asked)

    assert run_virtual(main()) == 1


@given(
    failed=st.integers(1, 10_000),
    retry_after=st.none() | st.floats(0, 1e6),
    seed=st.integers(0, 99),
)
def test_waits_stay_in_their_bounds(failed: int, retry_after: float | None, seed: int) -> None:
    wait = POLICY.wait(failed, retry_after, random.Random(seed))
    if retry_after is not None and retry_after > POLICY.give_up_after:
        retry_after = None
    floor = retry_after or 0
    assert floor <= wait <= max(60, floor + 0.5)
    if retry_after is None:
        assert wait <= 0.5 * 2 ** min(failed - 1, 20)


def test_waits_are_spread_and_grow() -> None:
    rng = random.Random(1)
    means = [sum(POLICY.wait(failed, None, rng) for _ in range(2000)) / 2000 for failed in range(1, 11)]
    assert means == pytest.approx([0.25, 0.5, 1, 2, 4, 8, 16, 30, 30, 30], rel=0.1)


def test_time_spent_waiting_for_a_turn_does_not_count() -> None:
    tries = 0
    excused = Excused()

    async def attempt() -> str:
        nonlocal tries
        await asyncio.sleep(1000)  # a slow queue, then the call
        excused.queued += 1000
        tries += 1
        if tries < 3:
            raise CallError(FailureKind.OVERLOADED, "full")
        return "answer"

    policy = RetryPolicy(attempts=5, give_up_after=600)

    async def both() -> str:
        return await call_with_retries(
            attempt, policy, on_retry=lambda _failure, _wait: None, rng=random.Random(1), excused=excused
        )

    assert run_virtual(both()) == "answer"
