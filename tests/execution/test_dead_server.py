"""A service that stops answering for good: the run ends by itself, in time, with the reason,
and resumes later."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from edgen.config import CallSettings, Job, Limits
from edgen.core.errors import CallError, FailureKind, ProviderError
from edgen.core.values import Address, Message, Reply, Request
from edgen.execution.client.model_client import ModelClient
from edgen.execution.online_scheduler import START, Watchdog
from edgen.execution.session import make_clients
from edgen.simulator.config import SimulatorConfig
from edgen.simulator.text import respond
from tests.clock import run_virtual
from tests.execution.service import Ended, Service, edgen, equation, error, files, job_text, serve, write

GIVE_UP_AFTER = 2.0  # seconds
TEARDOWN = 80.0  # seconds that a process may take to end on a busy machine; one attempt would take 120


class Dying(Service):
    """A service that answers `lives` calls, then fails as `death` says for ever; `last` is
    the time of its last answer."""

    def __init__(self, lives: int, death: str, latency: float = 0.02) -> None:
        super().__init__(latency=latency, trouble=self._die)
        self.lives, self.death, self.last = lives, death, time.monotonic()

    async def _die(self, _service: Service, _seed: int) -> web.StreamResponse | None:
        if self.lives > 0:
            self.lives -= 1
            self.last = time.monotonic() + self.latency
            return None
        if self.death == "hangs":
            await asyncio.sleep(3600)
        return error(500, "out of order")


async def outlive(service: Dying, *arguments: str | Path) -> Ended:
    """Run `edgen generate` with a dying service; check the exit code and the time of the end."""
    ended = await edgen("generate", *arguments, "--json", timeout=110)
    assert ended.code == 5, ended
    assert time.monotonic() - service.last < GIVE_UP_AFTER + TEARDOWN
    assert "run the same command again to resume" in ended.err
    assert equation(ended.facts)
    return ended


@pytest.mark.parametrize("death", ["hangs", "fails"])
@pytest.mark.parametrize("lives", [0, 30])
async def test_a_run_ends_by_itself_and_goes_on_later(tmp_path: Path, death: str, lives: int) -> None:
    limits = {"in_flight": 16, "give_up_after": GIVE_UP_AFTER}
    async with serve(Dying(lives, death)) as service:
        assert isinstance(service, Dying)
        job = write(tmp_path / "job.yaml", job_text(service.url, conversations=50, limits=limits))
        service.last = time.monotonic() + 1 if not lives else 0.0  # the start takes a moment
        ended = await outlive(service, job, "-o", tmp_path / "run")
        assert ended.facts["calls"]["made"] == lives
        if death == "hangs":
            assert "answered nothing for 2 s" in ended.err
        answered = set(service.answered)
        service.trouble = None
        again = await edgen("generate", job, "-o", tmp_path / "run", "--json")
        assert again.code == 0, again.err
        assert all(service.answered[seed] == 1 for seed in answered), "what was answered was asked again"


async def test_a_service_that_is_gone_ends_the_run(tmp_path: Path) -> None:
    """Connections are refused, with the default of 120 s an attempt."""
    async with serve(Dying(10**9, "", latency=0.05)) as service:
        limits = {"in_flight": 8, "give_up_after": GIVE_UP_AFTER}
        job = write(tmp_path / "job.yaml", job_text(service.url, limits=limits))
        running = asyncio.create_task(edgen("generate", job, "-o", tmp_path / "run", "--json"))
        while service.answered.total() < 30:
            await asyncio.sleep(0.01)
    gone = time.monotonic()
    ended = await running
    assert (ended.code, time.monotonic() - gone < GIVE_UP_AFTER + TEARDOWN) == (5, True), ended.err


async def test_too_few_left_to_notice_it_by_are_enough(tmp_path: Path) -> None:
    """Each of the last five scenarios gives up before the run does."""
    limits = {"in_flight": 4, "give_up_after": GIVE_UP_AFTER, "attempts": 2}
    async with serve(Dying(15, "fails")) as service:
        assert isinstance(service, Dying)
        job = write(tmp_path / "job.yaml", job_text(service.url, conversations=20, limits=limits))
        ended = await outlive(service, job, "-o", tmp_path / "run")
        assert ended.facts["accepted"] == 15
        service.trouble = None
        assert (await edgen("generate", job, "-o", tmp_path / "run", "--json")).code == 0
        assert set(service.answered.values()) == {1}


async def test_the_dead_one_of_two_backends_is_named(tmp_path: Path) -> None:
    async with serve(Service()) as teacher, serve(Dying(20, "hangs")) as student:
        assert isinstance(student, Dying)
        plain = {"type": "openai", "model": "m", "seed": "auto"}
        job = write(
            tmp_path / "job.yaml",
            job_text(
                "",
                conversations=40,
                protocol="selfplay",
                prompt=None,
                limits={"in_flight": 8, "give_up_after": GIVE_UP_AFTER},
                backends={
                    "teacher": plain | {"base_url": teacher.url},
                    "student": plain | {"base_url": student.url},
                },
            ),
        )
        ended = await outlive(student, job, "-o", tmp_path / "run")
        assert "Backend student: The service has answered nothing" in ended.err


async def test_an_arm_that_meets_it_ends_them_all(tmp_path: Path) -> None:
    limits = {"in_flight": 8, "give_up_after": GIVE_UP_AFTER}
    async with serve(Dying(30, "hangs")) as service:
        assert isinstance(service, Dying)
        arms: dict[str, Any] = {"one": {}, "two": {"asks": 2}}
        job = write(tmp_path / "job.yaml", job_text(service.url, conversations=20, limits=limits, arms=arms))
        ended = await edgen("generate", job, "-o", tmp_path / "run", "--json")
        assert ended.code == 5, ended.err
        assert time.monotonic() - service.last < GIVE_UP_AFTER + TEARDOWN
        service.trouble = None
        again = await edgen("generate", job, "-o", tmp_path / "run", "--json")
        assert again.code == 0, again.err


async def test_what_is_cut_off_is_charged_at_its_most(tmp_path: Path) -> None:
    async with serve(Dying(40, "hangs")) as service:
        assert isinstance(service, Dying)
        backend = {
            "type": "openai", "model": "m", "base_url": service.url, "seed": "auto", "max_tokens": 500,
            "price": {"prompt": 1, "completion": 2},
        }  # fmt: skip
        limits = {"in_flight": 8, "give_up_after": GIVE_UP_AFTER, "max_tokens": 10**6}
        job = write(tmp_path / "job.yaml", job_text("", backends={"default": backend}, limits=limits))
        await outlive(service, job, "-o", tmp_path / "run")
        with sqlite3.connect(tmp_path / "run" / "run.db") as ledger:
            assert ledger.execute("SELECT COUNT(*) FROM outstanding").fetchone() == (0,)
            tokens, usd = ledger.execute("SELECT lost_tokens, lost_usd FROM sessions").fetchone()
        out = service.asked.total() - service.answered.total()
        assert 1 <= out <= 8
        assert tokens > out * 500
        assert tokens * 1e-6 <= usd <= tokens * 2e-6


async def test_a_run_that_was_left_alone_has_the_same_bytes(tmp_path: Path) -> None:
    async with serve(Dying(30, "hangs")) as service:
        assert isinstance(service, Dying)
        limits = {"in_flight": 8, "give_up_after": GIVE_UP_AFTER}
        job = write(tmp_path / "job.yaml", job_text(service.url, conversations=60, limits=limits))
        await outlive(service, job, "-o", tmp_path / "run")
        service.trouble = None
        assert (await edgen("generate", job, "-o", tmp_path / "run", "--json")).code == 0
        assert (await edgen("generate", job, "-o", tmp_path / "calm", "--json")).code == 0
    assert files(tmp_path / "run") == files(tmp_path / "calm")


# -- in virtual time


class Slow:
    """A backend that takes `seconds`, then answers or fails."""

    def __init__(self, seconds: float, failure: CallError | None = None, name: str = "slow") -> None:
        self.seconds, self.failure, self.name = seconds, failure, name

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"type": self.name}

    @property
    def model(self) -> str:
        return "slow"

    async def complete(self, request: Request) -> Reply:
        await asyncio.sleep(self.seconds)
        if self.failure is not None:
            raise self.failure
        return respond(request.messages, seed=request.seed)

    async def models(self) -> list[str] | None:
        return None

    async def aclose(self) -> None:
        return


class Poisoned(Slow):
    """A backend that fails the calls whose index is in `poison`, after `later` seconds."""

    def __init__(self, seconds: float, poison: set[int], later: float, trouble: CallError) -> None:
        super().__init__(seconds)
        self.poison, self.later, self.trouble = poison, later, trouble

    async def complete(self, request: Request) -> Reply:
        if request.address.scenario in self.poison:
            await asyncio.sleep(self.later)
            raise self.trouble
        return await super().complete(request)


def gives_up_at(backends: dict[str, Slow], limits: Limits, *, callers: int = 4, until: float = 600) -> Any:
    """Return (seconds, why) at which a run with these backends would give up; None if it does not."""

    async def ask(line: ModelClient, role: str) -> None:
        while True:
            request = Request(Address(0, 0), (Message("user", "hello"),), seed=1, role=role)
            try:
                await line.ask(request)
            except (CallError, ProviderError):
                await asyncio.sleep(0)

    async def main() -> tuple[float, str] | None:
        clock = asyncio.get_running_loop().time
        job = Job(
            name="t", conversations=1, space="s", prompt="p", limits=limits,
            backends={role: SimulatorConfig() for role in backends},
        )  # fmt: skip
        made = make_clients(CallSettings.of(job), backends, backends)
        asking = [asyncio.create_task(ask(line, role)) for role, line in made.items() for _ in range(callers)]
        silence = Watchdog(made, limits)
        try:
            while clock() < until:
                await asyncio.sleep(silence.every)
                if (reason := silence.check(clock())) is not None:
                    return clock(), str(reason)
            return None
        finally:
            for task in asking:
                task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)

    return run_virtual(main())


HANG = 1e6


class Computing(Slow):
    """A model in edgen's own process that shows progress."""

    @property
    def progress(self) -> int:
        return int(asyncio.get_running_loop().time() / 10)


def test_a_run_waits_for_a_model_that_shows_that_it_computes() -> None:
    limits = Limits(timeout=30, give_up_after=60.0)
    assert gives_up_at({"default": Slow(HANG)}, limits) is not None
    assert gives_up_at({"default": Computing(HANG)}, limits) is None


@pytest.mark.parametrize("give_up_after", [5.0, 20.0, 600.0])
@pytest.mark.parametrize(
    "dead",
    [
        Slow(HANG),
        Slow(0.01, CallError(FailureKind.SERVER_ERROR, "out of order")),
        Slow(119, CallError(FailureKind.TIMEOUT, "too late")),
    ],
    ids=["hangs", "fails", "times-out"],
)
def test_it_gives_up_in_time_and_hardly_before(dead: Slow, give_up_after: float) -> None:
    when, why = gives_up_at({"default": dead}, Limits(give_up_after=give_up_after), until=700)
    assert 0.9 * give_up_after <= when <= give_up_after
    assert f"answered nothing for {give_up_after:g} s" in why


class Leaving(Slow):
    """A service that answers `lives` calls, then accepts no connection."""

    def __init__(self, lives: int) -> None:
        super().__init__(0.01)
        self.lives = lives

    async def complete(self, request: Request) -> Reply:
        self.lives -= 1
        if self.lives < 0:
            raise CallError(FailureKind.CONNECTION, "refused", unsent=True)
        return await super().complete(request)


@pytest.mark.parametrize("callers", [1, 4, 64])
@pytest.mark.parametrize(
    ("lives", "give_up_after", "patience"), [(0, 5, 5), (0, 600, START), (9, 5, 5), (9, 600, 600)]
)
def test_a_service_that_is_away_is_waited_for_and_one_that_never_was_there_for_a_minute(
    lives: int, give_up_after: float, patience: float, callers: int
) -> None:
    limits = Limits(give_up_after=give_up_after)
    when, why = gives_up_at({"default": Leaving(lives)}, limits, callers=callers, until=700)
    assert 0.9 * patience <= when <= patience + 3
    words = f"answered nothing for {patience:g} s" if lives else f"could not be reached for {patience:g} s"
    assert words in why
    assert "connection: refused" in why


def test_the_living_one_of_two_does_not_hide_the_dead_one() -> None:
    when, why = gives_up_at(
        {"teacher": Slow(0.1, name="a"), "student": Slow(HANG, name="b")}, Limits(give_up_after=20)
    )
    assert when <= 20
    assert why.startswith("Backend student: ")


def test_slow_answers_and_answers_between_failures_are_no_silence() -> None:
    assert gives_up_at({"default": Slow(15)}, Limits(give_up_after=20)) is None
    rng = random.Random(1)

    class Mostly(Slow):
        async def complete(self, request: Request) -> Reply:
            self.failure = CallError(FailureKind.SERVER_ERROR, "no") if rng.random() < 0.9 else None
            return await super().complete(request)

    assert gives_up_at({"default": Mostly(0.5)}, Limits(give_up_after=60, attempts=2)) is None


def test_waiting_for_a_turn_is_no_silence() -> None:
    """The rates allow one call in two minutes."""
    limits = Limits(give_up_after=20, requests_per_minute=0.5)
    assert gives_up_at({"default": Slow(1)}, limits, until=1200) is None


def test_a_pause_that_the_service_asked_for_is_no_silence() -> None:
    """The service asks for a pause of 100 s; `give_up_after` is slightly longer."""
    closed = Slow(0.01, CallError(FailureKind.RATE_LIMIT, "closed", retry_after=100.0))

    async def opens(request: Request) -> Reply:
        if asyncio.get_running_loop().time() > 100:
            closed.failure = None
        return await Slow.complete(closed, request)

    closed.complete = opens  # type: ignore[method-assign]
    assert gives_up_at({"default": closed}, Limits(give_up_after=110), until=115) is None


@pytest.mark.parametrize(
    ("in_flight", "hang"),
    [(1, {30}), (1, {5}), (10, {30}), (10, {5}), (10, {99}), (10, {3, 4, 5, 6, 7}), (10, {90, 91, 92})],
)
def test_prompts_that_are_never_answered_fail_alone(in_flight: int, hang: set[int]) -> None:
    """The service is healthy otherwise; the hanging prompts may be the last ones."""
    limits = Limits(in_flight=in_flight, timeout=2, give_up_after=8)
    late = CallError(FailureKind.TIMEOUT, "too late")
    assert failing(Poisoned(0.2, hang, 2.0, late), limits) == (None, hang)


@pytest.mark.parametrize(
    "trouble",
    [
        CallError(FailureKind.CONNECTION, "broken"),
        CallError(FailureKind.SERVER_ERROR, "no server", status=502),
    ],
    ids=["breaks", "502"],
)
@pytest.mark.parametrize(("in_flight", "poison"), [(1, {30}), (10, {3, 4, 5, 6}), (10, {96, 97, 98, 99})])
def test_prompts_that_break_their_connection_fail_alone(
    in_flight: int, poison: set[int], trouble: CallError
) -> None:
    """If only these prompts are left, the service looks as if it were down."""
    limits = Limits(in_flight=in_flight)
    assert failing(Poisoned(0.2, poison, 0.05, trouble), limits) == (None, poison)


def failing(backend: Slow, limits: Limits) -> tuple[str | None, set[int]]:
    """Make 100 conversations; return why a run would give up (None if it does not), and which
    of them failed."""
    failed: set[int] = set()

    async def main() -> str | None:
        job = Job(
            name="t", conversations=1, space="s", prompt="p", limits=limits, backends={"default": SimulatorConfig()},
        )  # fmt: skip
        made = make_clients(CallSettings.of(job), {"default": backend}, ["default"])
        silence, line = Watchdog(made, limits), made["default"]

        async def ask(index: int) -> None:
            request = Request(Address(index, 0), (Message("user", "hello"),), seed=1, role="default")
            try:
                await line.ask(request)
            except CallError:
                failed.add(index)

        everybody = asyncio.gather(*(ask(index) for index in range(100)))
        while not everybody.done():
            await asyncio.sleep(silence.every)
            if (reason := silence.check(asyncio.get_running_loop().time())) is not None:
                everybody.cancel()
                return str(reason)
        return None

    return run_virtual(main()), failed


@pytest.mark.parametrize("lives", [0, 3])
def test_one_call_at_a_time_is_given_up_soon_after_the_first_used_up_its_time(lives: int) -> None:
    class Gone(Slow):
        async def complete(self, request: Request) -> Reply:
            nonlocal lives
            lives -= 1
            if lives < 0:
                await asyncio.sleep(2)
                raise CallError(FailureKind.TIMEOUT, "too late")
            return await super().complete(request)

    limits = Limits(in_flight=1, timeout=2, give_up_after=8)
    when, why = gives_up_at({"default": Gone(0.2)}, limits, callers=1)
    assert when <= 0.6 + 8 + 2 + 2
    assert "answered nothing for 8 s" in why


@pytest.mark.parametrize(("in_flight", "left"), [(1, 1), (8, 4)])
async def test_a_run_whose_last_prompts_hang_is_finished_without_them(
    tmp_path: Path, in_flight: int, left: int
) -> None:
    seeds: list[int] = []

    async def trouble(_service: Service, seed: int) -> web.StreamResponse | None:
        if seed not in seeds and len(seeds) < left:
            seeds.append(seed)
        if seed in seeds:
            await asyncio.sleep(3600)
        return None

    async with serve(Service(latency=0.1, trouble=trouble)) as service:
        limits = {"in_flight": in_flight, "timeout": 1.0, "give_up_after": 3.0}
        job = write(tmp_path / "job.yaml", job_text(service.url, conversations=30, asks=1, limits=limits))
        ended = await edgen("generate", job, "-o", tmp_path / "run", "--json", timeout=110)
    assert ended.code == 3, ended.err
    assert ended.facts["failed"] == {"timeout": left}
    assert files(tmp_path / "run")
