"""A server with few slots and a queue: the window starts at its slots, and a wait for edgen's
own calls is no failure."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from edgen.config import CallSettings, Job, Limits
from edgen.core.errors import CallError, FailureKind
from edgen.core.values import Address, Message, Reply, Request
from edgen.execution.client.model_client import ModelClient
from edgen.execution.client.window import LoadVerdict, Window
from edgen.execution.session import make_clients
from edgen.simulator.provider import SimulatorConfig
from tests.clock import run_virtual
from tests.execution.client.service import Service, busy, constant, lognormal, summary

pytestmark = pytest.mark.unit


class Server:
    """A server that answers `slots` calls at once, each after `seconds`; others wait until `timeout`. From
    second `up` on, it reports `says` as its number of slots."""

    identity: Mapping[str, Any] = {"type": "server"}
    model = "m"

    def __init__(
        self, slots: int, seconds: float, says: int | None, timeout: float = 120.0, up: float = 0.0
    ) -> None:
        self._free = asyncio.Semaphore(slots)
        self._seconds, self._says, self._timeout, self._up = seconds, says, timeout, up
        self.looked = self.sent = 0

    def _require_up(self) -> None:
        if asyncio.get_running_loop().time() < self._up:
            raise CallError(FailureKind.OVERLOADED, "Loading model", status=503)

    async def slots(self) -> int | None:
        self.looked += 1
        self._require_up()
        await asyncio.sleep(0.01)
        return self._says

    async def complete(self, request: Request) -> Reply:
        self._require_up()
        self.sent += 1
        try:
            async with asyncio.timeout(self._timeout), self._free:
                await asyncio.sleep(self._seconds)
        except TimeoutError:
            raise CallError(FailureKind.TIMEOUT, "no complete answer in time") from None
        return Reply("yes")

    async def models(self) -> list[str] | None:
        return None

    async def aclose(self) -> None:
        pass


@dataclass(frozen=True)
class Outcome:
    answered: int
    failed: int
    seconds: float
    timeouts: int
    window: int


def ask(server: Server, calls: int = 60, **limits: Any) -> Outcome:
    """Make calls at once, with the default limits."""

    async def main() -> Outcome:
        clock = asyncio.get_running_loop().time
        job = Job(
            name="t",
            conversations=1,
            space="s",
            prompt="p",
            backends={"default": SimulatorConfig()},
            limits=Limits(**limits),
        )
        client: ModelClient = make_clients(CallSettings.of(job), {"default": server}, ["default"])["default"]
        started = clock()
        asked = [client.ask(Request(Address(i, 0), (Message("user", "?"),), seed=i)) for i in range(calls)]
        ends = await asyncio.gather(*asked, return_exceptions=True)
        failed = [end for end in ends if isinstance(end, BaseException)]
        assert all(isinstance(end, CallError) for end in failed), failed
        took = clock() - started
        return Outcome(calls - len(failed), len(failed), took, client.timeouts, client.admission.window)

    outcome: Outcome = run_virtual(main())
    return outcome


@pytest.mark.parametrize("seconds", [10, 50, 110])
def test_all_are_answered_as_fast_as_with_so_many_in_flight(seconds: float) -> None:
    four = ask(Server(4, seconds, None), in_flight=4)
    known = ask(Server(4, seconds, 4))
    assert (four.answered, known.answered, known.timeouts) == (60, 60, 0)
    assert known.seconds <= 1.01 * four.seconds
    unknown = ask(Server(4, seconds, None))
    print(f"{seconds} s a call: {unknown.answered} of 60 answered and {unknown.timeouts} timeouts without the number of slots; "
          f"60 of 60 in {known.seconds / four.seconds:.2f} times the time of 4 in flight with it")  # fmt: skip
    assert unknown.timeouts > 0 or seconds == 10


def test_many_callers_ask_the_server_once() -> None:
    server = Server(4, 1, 4)
    ask(server, 300)
    assert server.looked == 1
    server = Server(4, 1, None)
    assert ask(server, 30).window > 32, "a server that does not say is felt out as before"
    assert server.looked == 1


def test_a_server_that_comes_up_later_is_asked_then() -> None:
    server = Server(4, 50, 4, up=30.0)
    outcome = ask(server)
    assert (outcome.answered, outcome.timeouts) == (60, 0)
    assert outcome.window == 4


def test_a_wait_for_our_own_calls_uses_no_attempt() -> None:
    """The number of slots arrives when 30 calls already wait; with one attempt each, all but
    the first would fail."""

    class Late(Server):
        async def slots(self) -> int | None:
            if self.sent < 30:
                raise CallError(FailureKind.OVERLOADED, "busy", status=503)
            return await super().slots()

    known = ask(Late(4, 50, 4), attempts=1)
    assert (known.answered, known.failed) == (60, 0)
    assert known.timeouts > 0
    slow = ask(Server(4, 200, 4), attempts=2)
    assert (slow.answered, slow.failed, slow.timeouts) == (0, 60, 120), (
        "what the server does not do in time is its failure"
    )


class TestWindow:
    def test_starts_at_the_slots_within_its_bound(self) -> None:
        for most, slots, size in ((256, 4, 4), (256, 100, 100), (2, 4, 2)):
            window = Window(most)
            window.know_slots(slots, 0)
            assert (window.size, window.slots) == (size, slots)

    def test_calls_from_before_say_nothing(self) -> None:
        window = Window(256)
        window.know_slots(4, 30)
        for number in range(1, 31):
            window.note_end(number, LoadVerdict.CONGESTED, 120.0, 30, 30)
        assert window.size == 4

    @pytest.mark.parametrize("spread", [0.0, 0.5])
    def test_stays_at_the_slots_but_for_one_trial(self, spread: float) -> None:
        service = Service(lognormal(1.0, spread) if spread else constant(1.0), slots=8)
        calls = busy(service, in_flight=256, until=600, slots=8)
        sizes = [call.window for call in calls]
        assert max(sizes) == 12
        assert sum(size > 8 for size in sizes) < 150, "a trial is one epoch"
        assert summary(calls, 0).rate == pytest.approx(8, rel=0.05)

    def test_grows_where_several_servers_are_behind_one_address(self) -> None:
        calls = busy(Service(constant(1.0), slots=32), in_flight=256, until=400, slots=8)
        late = summary(calls, 300)
        assert late.rate > 25
        assert late.window < 48

    def test_a_refused_trial_is_the_last(self) -> None:
        calls = busy(Service(constant(1.0), slots=8, refuse_above=10), in_flight=256, until=600, slots=8)
        assert sum(call.verdict is LoadVerdict.CONGESTED for call in calls) < 10
        assert calls[-1].window == 8
