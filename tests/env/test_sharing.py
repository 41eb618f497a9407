"""Parallel conversations, in one environment or in two, share one budget, one set of limits and one pool."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from edgen.core.errors import CallError, FailuresError, ProviderError, UsageError
from edgen.env import Conversation, EducationEnv, SyncEducationEnv
from edgen.execution.client.budget import BudgetExhausted
from edgen.store.budget_book import BudgetBook
from tests.env.jobs import SAID, Watching, job, served, until
from tests.execution.service import Service, error, serve

pytestmark = pytest.mark.integration

TOKENS = 30  # tokens that the server counts for each answer
CAP = 12_000


async def play(conversation: Conversation, turns: int = 4) -> list[Any]:
    seen: list[Any] = [await conversation.reset()]
    for number in range(turns):
        seen.append(await conversation.step(f"{SAID} This is point {number}."))
        if seen[-1].done:
            return seen
    return [*seen, await conversation.stop()]


async def test_side_by_side_each_conversation_is_as_it_is_alone(tmp_path: Path) -> None:
    async with EducationEnv.from_job(job(tmp_path)) as env:
        alone = [await play(env.conversation(index)) for index in range(20)]
        together = await asyncio.gather(*(play(env.conversation(index)) for index in range(20)))
    assert together == alone


@dataclass
class Charging(Watching):
    """A server that charges each answer at once: charges plus calls in flight never exceed the cap."""

    charged: int = 0
    highest: int = 0
    worth: list[int] = field(default_factory=list)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        answer = await super().handle(request)
        self.charged += TOKENS
        self.highest = max(self.highest, self.charged + self.at_once * TOKENS)
        return answer


async def test_two_environments_never_pass_their_budget_together(tmp_path: Path) -> None:
    async with serve(Charging(latency=0.01)) as service:
        assert isinstance(service, Charging)
        path = served(tmp_path, service.url, limits={"max_tokens": CAP, "in_flight": 16})
        one = EducationEnv.from_job(path)
        other = EducationEnv.from_job(path, "seed=8", shares=one)
        conversations = [env.conversation(index) for env in (one, other) for index in range(40)]
        ends = await asyncio.gather(*map(play, conversations), return_exceptions=True)
        over = [end for end in ends if isinstance(end, BaseException)]
        assert over
        assert {type(end) for end in over} == {BudgetExhausted}
        assert one.spent is not None
        assert one.spent == other.spent
        assert service.charged <= service.highest <= CAP
        assert service.charged <= one.spent.tokens <= CAP
        assert one.spent.tokens > CAP / 2, "the budget was hardly used"
        calls = service.asked.total()
        for env in (one, other):
            await env.reset(0)
            with pytest.raises(BudgetExhausted, match=r"raise limits\.max_tokens"):
                await env.step(SAID + "x" * CAP)
        assert service.asked.total() == calls, "a call went out beyond the budget"
        await one.aclose()
        await other.aclose()


async def test_two_environments_keep_one_limit_and_one_pool(tmp_path: Path) -> None:
    async with serve(Watching(latency=0.01)) as service:
        assert isinstance(service, Watching)
        path = served(tmp_path, service.url, limits={"in_flight": 3})
        async with EducationEnv.from_job(path) as one, EducationEnv.from_job(path, shares=one) as other:
            await asyncio.gather(
                *(play(env.conversation(index)) for env in (one, other) for index in range(8))
            )
        assert service.most_at_once == 3
        assert len(service.connections) == 3


async def test_roles_that_come_later_keep_the_limits_of_those_before(tmp_path: Path) -> None:
    """One environment's policy teaches, the other's learns: one service answers for both other sides."""
    async with serve(Watching(latency=0.01)) as service:
        assert isinstance(service, Watching)
        path = served(
            tmp_path, service.url, ("student", "teacher"), limits={"in_flight": 3}, selfplay={"max_turns": 12}
        )
        async with (
            EducationEnv.from_job(path) as one,
            EducationEnv.from_job(path, plays="student", shares=one) as other,
        ):
            await asyncio.gather(
                *(play(env.conversation(index)) for env in (one, other) for index in range(8))
            )
        assert {role for role, _ in service.seen} == {"student", "teacher"}
        assert service.most_at_once == 3


async def test_jobs_that_call_otherwise_share_nothing(tmp_path: Path) -> None:
    path = job(tmp_path)
    async with EducationEnv.from_job(path) as one:
        with pytest.raises(UsageError, match="cannot share a budget"):
            EducationEnv.from_job(path, "limits.in_flight=3", shares=one)


async def test_one_that_leaves_takes_nothing_from_the_other(tmp_path: Path) -> None:
    async with serve(Service()) as service:
        path = served(tmp_path, service.url)
        one = EducationEnv.from_job(path)
        other = EducationEnv.from_job(path, shares=one)
        await play(one.conversation(0))
        await one.aclose()
        await one.aclose()
        assert len(await play(other.conversation(0))) > 1
        with pytest.raises(UsageError, match="closed"):
            one.conversation(1)
        with pytest.raises(UsageError, match="closed"):
            EducationEnv.from_job(path, shares=one)
        await other.aclose()
        with pytest.raises(UsageError, match="closed"):
            await other.reset(0)


async def test_closing_breaks_off_what_is_asked_and_every_connection(tmp_path: Path) -> None:
    async with serve(Watching(hold_after=0)) as service:
        assert isinstance(service, Watching)
        env = EducationEnv.from_job(served(tmp_path, service.url))
        conversation = env.conversation(0)
        await conversation.reset()
        step = asyncio.create_task(conversation.step(SAID))
        await until(lambda: service.at_once)
        await env.aclose()
        with pytest.raises(UsageError, match="closed"):
            await step
        await until(lambda: all(transport.is_closing() for transport in service.connections))
    assert not [thread for thread in threading.enumerate() if thread.name == "edgen-env"]


@pytest.fixture
def server_elsewhere() -> Iterator[Watching]:
    """Run a server in a thread of its own: it continues while the test's thread waits."""
    service, ready, loop = Watching(latency=0.005), threading.Event(), asyncio.new_event_loop()

    async def run() -> None:
        async with serve(service):
            ready.set()
            await service.released.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),))
    thread.start()
    assert ready.wait(20)
    yield service
    loop.call_soon_threadsafe(service.release)
    thread.join()
    loop.close()


def test_an_environment_belongs_to_no_event_loop(tmp_path: Path, server_elsewhere: Watching) -> None:
    env = EducationEnv.from_job(served(tmp_path, server_elsewhere.url))
    first = asyncio.run(play(env.conversation(3), 2))
    again = asyncio.run(play(env.conversation(3), 2))
    conversation = env.conversation(3)
    steps: list[Any] = [asyncio.run(conversation.reset())]
    steps += [asyncio.run(conversation.step(f"{SAID} This is point {number}.")) for number in range(2)]
    steps.append(asyncio.run(conversation.stop()))
    asyncio.run(env.aclose())
    assert first == again == steps
    assert len(server_elsewhere.connections) == 1


def play_waiting(env: SyncEducationEnv, index: int, into: dict[int, list[Any]]) -> None:
    conversation = env.conversation(index)
    seen: list[Any] = [conversation.reset()]
    seen += [conversation.step(f"{SAID} This is point {number}.") for number in range(2)]
    into[index] = [*seen, conversation.stop()]


def test_threads_that_wait_say_what_an_event_loop_says(tmp_path: Path, server_elsewhere: Watching) -> None:
    path = served(tmp_path, server_elsewhere.url, limits={"in_flight": 3}, selfplay={"closing": "student"})
    waited: dict[int, list[Any]] = {}
    with SyncEducationEnv.from_job(path) as env:
        threads = [threading.Thread(target=play_waiting, args=(env, index, waited)) for index in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert server_elsewhere.most_at_once == 3

    async def side_by_side() -> list[list[Any]]:
        async with EducationEnv.from_job(path) as env:
            return await asyncio.gather(*(play(env.conversation(index), 2) for index in range(8)))

    assert [waited[index] for index in range(8)] == asyncio.run(side_by_side())


async def test_the_waiting_face_works_inside_an_event_loop(tmp_path: Path) -> None:
    """The blocking interface works inside an event loop, as in a notebook, whose cells run in one."""
    with SyncEducationEnv.from_job(job(tmp_path)) as env:
        start = env.reset(0)
        messages, _, done, info = env.step(SAID)
        assert messages[: len(start)] == start
        assert (done, info["turns"]) == (False, 2)
        assert 0 <= env.stop().info["probability"] <= 1
        with pytest.raises(UsageError, match="reset"):
            env.step(SAID)


async def test_what_was_answered_is_not_asked_for_again(tmp_path: Path) -> None:
    """The closing question fails twice; the student's last turn is paid for once."""
    fails = iter((False, True, True, False))

    async def trouble(_: Service, __: int) -> Any:
        return error(500) if next(fails) else None

    async with serve(Service(trouble=trouble)) as service:
        path = served(
            tmp_path, service.url, limits={"attempts": 1}, selfplay={"closing": "student", "max_turns": 2}
        )
        async with EducationEnv.from_job(path) as env:
            await env.reset(0)
            for _ in range(2):
                with pytest.raises(CallError):
                    await env.step(SAID)
            _, _, done, info = await env.step(SAID)
        assert done
        assert info["probability"] is not None
        assert sorted(service.asked.values()) == [1, 3]


async def test_a_step_that_is_cancelled_can_be_tried_again(tmp_path: Path) -> None:
    async with serve(Watching(hold_after=0)) as service:
        assert isinstance(service, Watching)
        async with EducationEnv.from_job(served(tmp_path, service.url)) as env:
            await env.reset(0)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(env.step(SAID), 0.3)
            service.release()
            messages, *_, info = await env.step(SAID)
        assert info["turns"] == 2
        assert [message["content"] for message in messages].count(SAID) == 1


async def test_a_service_that_falls_silent_is_given_up(tmp_path: Path) -> None:
    async with serve(Service(hold_after=0)) as service:
        limits = {"give_up_after": 1, "timeout": 1, "attempts": 100}
        async with EducationEnv.from_job(served(tmp_path, service.url, limits=limits)) as env:
            started = time.monotonic()
            ends = await asyncio.gather(
                *(play(env.conversation(index)) for index in range(4)), return_exceptions=True
            )
            assert time.monotonic() - started < 80  # of 100 attempts, a second each
            assert all(isinstance(end, ProviderError | CallError) for end in ends), ends
            service.release()
            assert len(await play(env.conversation(0))) > 1, "it is asked again when it is there again"


async def test_a_service_that_goes_away_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    """A service that disappears ends by the watchdog.

    It has answered before, so refused calls use up no attempt.
    """
    limits = {"give_up_after": 2, "attempts": 3}
    async with serve(Service()) as service:
        env = EducationEnv.from_job(served(tmp_path, service.url, limits=limits))
        conversations = [env.conversation(index) for index in range(6)]
        for conversation in conversations:
            await conversation.reset()
            await conversation.step(SAID)
    steps = [conversation.step(f"{SAID} Again.") for conversation in conversations]
    ends = await asyncio.wait_for(asyncio.gather(*steps, return_exceptions=True), 120)
    assert {type(end) for end in ends} == {FailuresError}, ends
    await env.aclose()


async def test_environments_and_runs_share_a_budget_over_time(tmp_path: Path) -> None:
    budget = tmp_path / "budget.yaml"
    budget.write_text(f"{{tokens_per_day: {CAP}}}")
    async with serve(Charging(latency=0.01)) as service:
        assert isinstance(service, Charging)
        path = served(tmp_path, service.url, limits={"budget": str(budget), "in_flight": 4})
        # They share nothing except the file.
        both = [EducationEnv.from_job(path), EducationEnv.from_job(path, "seed=8")]
        conversations = [env.conversation(index) for env in both for index in range(40)]
        ends = await asyncio.gather(*map(play, conversations), return_exceptions=True)
        over = [end for end in ends if isinstance(end, BaseException)]
        assert {type(end) for end in over} == {BudgetExhausted}
        assert "tokens_per_day" in str(over[0])
        assert 0 < service.charged <= service.highest <= CAP
        for env in both:
            await env.aclose()
        assert service.charged <= BudgetBook(budget).list_current_use()[0].used <= CAP
