"""The simulator as a Backend."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time

import msgspec
import pytest

from edgen.core.errors import CallError, FailureKind, InputError
from edgen.core.values import Address, Reply, Request
from edgen.providers import Backend, make
from edgen.simulator.backend import Simulator
from edgen.simulator.config import SimulatorConfig
from tests.simulator.prompts import every_scenario, prompt
from tests.timing import takes_under


def backend(*, timeout: float = 60.0, **options: object) -> Backend:
    config = msgspec.convert({"type": "simulator", **options}, SimulatorConfig)
    return make(config, timeout=timeout, connections=4, environ={})


def request(seed: int = 1, *, attempt: int = 0, scale: int = 1) -> Request:
    return Request(Address(0, 0, 0, attempt), prompt(), seed, max_tokens_scale=scale)


async def answers(
    simulator: Backend, request: Request, tries: int = 50
) -> tuple[list[FailureKind], Reply | None]:
    """Return the failures of the tries before the first answer, and that answer."""
    failures = []
    for _ in range(tries):
        try:
            return failures, await simulator.complete(request)
        except CallError as error:
            failures.append(error.kind)
    return failures, None


async def test_same_request_same_reply() -> None:
    first, second = backend(), backend()
    assert await first.complete(request()) == await second.complete(request())
    assert await first.complete(request()) == await first.complete(request())
    assert await first.complete(request(1)) != await first.complete(request(2))


async def test_marked_as_simulated() -> None:
    simulator = backend(model="pretender")
    assert (await simulator.complete(request())).simulated is True
    assert simulator.model == "pretender"
    assert (await simulator.complete(request())).model == "pretender"
    assert await simulator.models() == ["pretender"]
    await simulator.aclose()
    await simulator.aclose()


def test_identity_holds_what_shapes_answers_and_nothing_else() -> None:
    plain = dict(backend().identity)
    assert msgspec.json.decode(msgspec.json.encode(plain)) == plain
    assert plain["type"] == "simulator"
    for knob in ({"latency_ms": 50}, {"faults": "429=0.5,hang=0.1"}, {"temperature": 0.5}, {"faults": " "}):
        assert dict(backend(**knob).identity) == plain, knob
    for shape in ({"faults": "refusal=0.1"}, {"max_tokens": 5}, {"stop": ["x"]}, {"model": "m"}, {"seed": 3}):
        assert dict(backend(**shape).identity) != plain, shape
    written = [
        backend(faults=spec).identity for spec in ("refusal=0.1,empty=0.2", "empty=.2, refusal=.10,500=1")
    ]
    assert written[0] == written[1]


async def test_configured_seed_is_another_world_of_answers() -> None:
    here, there = backend(), backend(seed=3)
    assert await here.complete(request()) != await there.complete(request())
    assert await there.complete(request(1)) != await there.complete(request(2))
    assert await here.complete(request()) == await backend(seed="auto").complete(request())


async def test_more_room_after_a_cut() -> None:
    simulator = backend(max_tokens=100, retry_max_tokens=200)
    cut, wider = await simulator.complete(request()), await simulator.complete(request(scale=2))
    assert cut.finish_reason == "length"
    assert (len(cut.text), len(wider.text)) == (400, 800)


async def test_unreadable_faults_are_refused_at_once() -> None:
    with pytest.raises(InputError, match="no fault 'nonsense'"):
        backend(faults="nonsense=1")


@pytest.mark.parametrize(
    ("name", "kind", "status"),
    [
        ("429", FailureKind.RATE_LIMIT, 429),
        ("500", FailureKind.SERVER_ERROR, 500),
        ("503", FailureKind.OVERLOADED, 503),
        ("reset", FailureKind.CONNECTION, None),
        ("401", FailureKind.AUTHENTICATION, 401),
        ("404", FailureKind.NOT_FOUND, 404),
        ("quota", FailureKind.QUOTA, 429),
    ],
)
async def test_transport_faults_are_call_errors(name: str, kind: FailureKind, status: int | None) -> None:
    with pytest.raises(CallError) as caught:
        await backend(faults=f"{name}=1").complete(request())
    assert (caught.value.kind, caught.value.status) == (kind, status)
    assert "simulated" in caught.value.message
    assert caught.value.retry_after == (1.0 if name == "429" else None)


async def test_retry_after_of_the_specification() -> None:
    with pytest.raises(CallError) as caught:
        await backend(faults="429=1:2.5").complete(request())
    assert caught.value.retry_after == 2.5


async def test_trying_again_helps_and_gives_the_undisturbed_answer() -> None:
    calm, stormy = backend(), backend(faults="429=0.2,500=0.2,reset=0.1")
    disturbed = 0
    for seed in range(100):
        failures, reply = await answers(stormy, request(seed))
        assert reply == await calm.complete(request(seed))
        disturbed += bool(failures)
    assert 30 < disturbed < 70


async def test_same_faults_in_every_process() -> None:
    logs = []
    for _ in range(2):
        simulator = backend(faults="429=0.3,500=0.3")
        logs.append([(await answers(simulator, request(seed)))[0] for seed in range(40)])
    assert logs[0] == logs[1]
    assert any(len(failures) > 1 for failures in logs[0])


async def test_only_failing_requests_are_remembered() -> None:
    simulator = backend(faults="500=0.5")
    assert isinstance(simulator, Simulator)
    for seed in range(50):
        assert (await answers(simulator, request(seed)))[1] is not None
    assert len(simulator._tries) == 0


async def test_hang_ends_with_the_attempts_timeout() -> None:
    start = time.monotonic()
    with pytest.raises(CallError) as caught:
        await backend(faults="hang=1", timeout=0.05).complete(request())
    assert caught.value.kind is FailureKind.TIMEOUT
    assert 0.04 < time.monotonic() - start < 30


async def test_hang_can_be_cancelled() -> None:
    task = asyncio.create_task(backend(faults="hang=1", timeout=60).complete(request()))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("options", [{"latency_ms": 30}, {"faults": "slow=1:0.03"}])
async def test_late_answers_are_the_same_answers(options: dict[str, object]) -> None:
    start = time.monotonic()
    late = await backend(**options).complete(request())
    assert time.monotonic() - start >= 0.03
    assert late == await backend().complete(request())


async def test_latency_beyond_the_timeout_is_a_timeout() -> None:
    with pytest.raises(CallError) as caught:
        await backend(latency_ms=10_000, timeout=0.02).complete(request())
    assert caught.value.kind is FailureKind.TIMEOUT


@pytest.mark.integration
def test_embedded_it_needs_no_network_library() -> None:
    code = "import sys, edgen.simulator; sys.exit('aiohttp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_quick_enough() -> None:
    """The aim is 150 µs a conversation; ten times that would be a wrong algorithm on any machine."""
    simulator = backend()
    requests = [Request(Address(i, 0), messages, i) for i, messages in enumerate(every_scenario(500))]

    async def complete_all() -> None:
        for each in requests:
            await simulator.complete(each)

    assert takes_under(0.0015 * len(requests), lambda: asyncio.run(complete_all()))
