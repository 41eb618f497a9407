"""Calls to a batch service: retried within the limits, and given up after limits.give_up_after of silence."""

from __future__ import annotations

import asyncio
import dataclasses
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from edgen.config import Limits
from edgen.core.errors import FATAL, CallError, FailureKind, ProviderError
from edgen.execution.client.retry import RetryPolicy, call_with_retries
from edgen.execution.failure_texts import GO_ON, add_advice, describe_failure
from edgen.execution.progress import Events
from edgen.providers.batches import OversizedError

T = TypeVar("T")

TRANSFER = 3600.0  # maximum seconds for one file
_AT_LEAST = 0.1  # minimum seconds for a request
_UNHEARD = frozenset({FailureKind.TIMEOUT, FailureKind.CONNECTION})


class ServiceCalls:
    """Sends the requests of one session to the batch services."""

    def __init__(self, limits: Limits, events: Events) -> None:
        self.policy = RetryPolicy(attempts=limits.attempts, give_up_after=limits.give_up_after)
        self.rng = random.Random()  # noqa: S311 - jitter of waits; nothing that is stored depends on it
        self._timeout = limits.timeout
        self._events = events
        # When the provider last answered, or was first called after that; by the loop's clock.
        self._heard = 0.0
        self._silent = 0  # failed requests in a row

    async def send_request(
        self, attempt: Callable[[], Awaitable[T]], within: float | None = None, *, named: bool = False
    ) -> T:
        """Return the result of one request to the provider, retried within the limits.

        Raises ProviderError. If `named`, raises CallError if the requested object is missing or too large.
        """
        try:
            return await call_with_retries(
                lambda: self.attempt_once(attempt, within or self._timeout),
                dataclasses.replace(self.policy, give_up_after=self._compute_patience()),
                on_retry=self._on_retry,
                rng=self.rng,
            )
        except CallError as failure:
            if named and (failure.kind is FailureKind.NOT_FOUND or isinstance(failure, OversizedError)):
                raise
            raise make_service_error(failure) from None

    async def attempt_once(self, attempt: Callable[[], Awaitable[T]], within: float) -> T:
        """Make one attempt, limited to `within` seconds and, unless it is a transfer, to the rest of
        limits.give_up_after since the provider's last answer. Raises CallError."""
        clock = asyncio.get_running_loop().time
        limit = within if within == TRANSFER else max(_AT_LEAST, min(within, self._compute_patience()))
        silence = within if limit == within else self.policy.give_up_after
        try:
            async with asyncio.timeout(limit):
                result = await attempt()
        except TimeoutError:
            self._silent += 1
            raise CallError(FailureKind.TIMEOUT, f"no answer within {silence:g} s") from None
        except CallError as failure:
            if failure.kind in _UNHEARD:
                self._silent += 1
            else:
                self._heard, self._silent = clock(), 0
            raise
        self._heard, self._silent = clock(), 0
        return result

    def _compute_patience(self) -> float:
        """Return the seconds that the provider may still be silent, counted from the first failed request."""
        now = asyncio.get_running_loop().time()
        if self._silent == 0:
            self._heard = now
        return max(0.0, self._heard + self.policy.give_up_after - now)

    def _on_retry(self, failure: CallError, wait: float) -> None:
        self._events.tell(
            "note",
            f"batch service: {describe_failure(failure)}; again in {wait:.0f} s",
            kind=str(failure.kind),
        )


def make_service_error(failure: CallError, subject: str = "", hint: str = "") -> ProviderError:
    """Return the error that stops the run if a batch service is unusable. `subject` begins the message,
    `hint` precedes its last sentence."""
    if failure.kind in FATAL:
        return ProviderError(f"{subject}{add_advice(failure)} {GO_ON}")
    kept = "Batches at the provider stay noted."
    return ProviderError(
        f"{subject}the batch service failed: {describe_failure(failure)}. {hint or kept} {GO_ON}"
    )
