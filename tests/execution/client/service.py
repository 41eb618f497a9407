"""A model server as a queueing model, with callers that keep it busy, in virtual time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from edgen.config import Limits
from edgen.execution.client.admission import Admission
from edgen.execution.client.window import LoadVerdict
from tests.clock import run_virtual

Seconds = Callable[[random.Random], float]


def constant(seconds: float) -> Seconds:
    return lambda _rng: seconds


def lognormal(mean: float, sigma: float) -> Seconds:
    """Draw seconds of a log-normal distribution with this mean, for any spread."""
    return lambda rng: mean * rng.lognormvariate(-sigma * sigma / 2, sigma)


class Call(NamedTuple):
    ended: float
    latency: float
    verdict: LoadVerdict
    window: int


@dataclass
class Service:
    """A service that works on `slots` calls at once; other calls queue in order. None: no limit.

    Calls above `refuse_above` at once are refused within 50 ms. `seconds` may change midway. `shut`: period
    and open time in seconds; the service takes no calls in the rest of each period. `retry_after`: the wait
    that refusals name.
    """

    seconds: Seconds
    slots: int | None = None
    refuse_above: int | None = None
    refuse_share: float = 0.0
    shut: tuple[float, float] | None = None
    retry_after: float | None = None
    rng: random.Random = field(default_factory=lambda: random.Random(11))

    def __post_init__(self) -> None:
        self._queue = asyncio.Semaphore(self.slots or 1_000_000)
        self._inside = 0

    async def answer(self) -> LoadVerdict:
        full = self.refuse_above is not None and self._inside >= self.refuse_above
        if self.shut is not None and asyncio.get_running_loop().time() % self.shut[0] >= self.shut[1]:
            full = True
        if full or self.rng.random() < self.refuse_share:
            await asyncio.sleep(0.05)
            return LoadVerdict.CONGESTED
        self._inside += 1
        try:
            async with self._queue:
                await asyncio.sleep(self.seconds(self.rng))
        finally:
            self._inside -= 1
        return LoadVerdict.OK


def busy(
    service: Service,
    *,
    in_flight: int,
    until: float,
    change: tuple[float, Seconds] | None = None,
    slots: int | None = None,
) -> list[Call]:
    """Return all calls that end before `until` seconds, while there is always more to do.

    `change`: from this time on, the service takes these seconds for a call. `slots`: the number of slots that
    the service reports.
    """
    calls: list[Call] = []

    async def caller(admission: Admission) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            ticket = await admission.admit(0)
            started = clock()
            verdict = await service.answer()
            calls.append(Call(clock(), clock() - started, verdict, admission.window))
            retry_after = service.retry_after if verdict is LoadVerdict.CONGESTED else None
            admission.settle(ticket, tokens=None, verdict=verdict, retry_after=retry_after)
            if retry_after is not None:  # others may call meanwhile
                await asyncio.sleep(retry_after + service.rng.random() / 2)

    async def main() -> None:
        admission = Admission(Limits(in_flight=in_flight))

        async def say() -> int | None:
            return slots

        await admission.list_lanes(("",))[0].learn_slots(say)
        tasks = [asyncio.create_task(caller(admission)) for _ in range(in_flight + 4)]
        if change is not None:
            await asyncio.sleep(change[0])
            service.seconds = change[1]
        await asyncio.sleep(until - asyncio.get_running_loop().time())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    run_virtual(main())
    return calls


@dataclass(frozen=True)
class Summary:
    """Summary of the calls that ended from `start` on: answers a second, their mean latency in seconds, the
    share refused, the smallest and the mean window."""

    rate: float
    latency: float
    refused: float
    smallest: int
    window: float


def summary(calls: list[Call], start: float) -> Summary:
    late = [call for call in calls if call.ended >= start]
    answered = [call for call in late if call.verdict is LoadVerdict.OK]
    return Summary(
        rate=len(answered) / (late[-1].ended - start),
        latency=sum(call.latency for call in answered) / len(answered),
        refused=1 - len(answered) / len(late),
        smallest=min(call.window for call in late),
        window=sum(call.window for call in late) / len(late),
    )
