"""A function as a backend: its answers, its failures, and its identity."""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from collections.abc import Awaitable
from typing import Any

import pytest

from edgen.core.errors import CallError, FailureKind, InputError, UsageError
from edgen.core.registry import find
from edgen.core.values import Reply, Request
from edgen.providers import make
from edgen.providers.base import CountsSlots
from edgen.providers.function import (
    AnswerFunction,
    FunctionBackend,
    FunctionConfig,
    make_backend,
    make_config,
)
from tests.providers.fakes import request


async def hello(_: Request) -> str:
    return "hello \ud800"


class Answers:
    version = 3

    async def __call__(self, _: Request) -> Reply:
        return Reply(text="hi", finish_reason="length")


def backend(function: AnswerFunction, timeout: float = 60.0) -> FunctionBackend:
    return make_backend(function, make_config(function), timeout)


async def test_a_text_or_a_reply_is_an_answer() -> None:
    assert (await backend(hello).complete(request("x"))).text == "hello �"
    assert (await backend(Answers()).complete(request("x"))).finish_reason == "length"


async def test_the_texts_of_a_reply_can_be_stored() -> None:
    async def odd(_: Request) -> Reply:
        return Reply("a\ud800", refusal="b\udfff")

    async def number(_: Request) -> Reply:
        return Reply(3)  # type: ignore[arg-type]

    assert (await backend(odd).complete(request("x"))) == Reply("a\ufffd", refusal="b\ufffd")
    with pytest.raises(CallError, match="answers with a Reply whose `text` is not a str"):
        await backend(number).complete(request("x"))


def test_who_it_is_comes_of_its_name_and_version() -> None:
    assert backend(hello).identity == {"type": "function", "model": f"{__name__}.hello", "version": None}
    assert backend(Answers()).identity == {"type": "function", "model": f"{__name__}.Answers", "version": "3"}
    assert make_config(functools.partial(hello)).model == f"{__name__}.hello"


@pytest.mark.parametrize(
    ("problem", "kind"),
    [
        (ValueError("no"), FailureKind.BAD_REQUEST),
        (ConnectionResetError(), FailureKind.CONNECTION),
        (CallError(FailureKind.RATE_LIMIT, "slow down"), FailureKind.RATE_LIMIT),
    ],
)
async def test_what_it_raises_is_a_failed_call(problem: Exception, kind: FailureKind) -> None:
    async def failing(_: Request) -> str:
        raise problem

    with pytest.raises(CallError) as caught:
        await backend(failing).complete(request("x"))
    assert caught.value.kind is kind


async def test_it_has_the_time_of_an_attempt() -> None:
    async def slow(_: Request) -> str:
        await asyncio.sleep(60)
        return ""

    with pytest.raises(CallError) as caught:
        await backend(slow, timeout=0.01).complete(request("x"))
    assert caught.value.kind is FailureKind.TIMEOUT


async def test_another_answer_is_a_failure() -> None:
    async def number(_: Request) -> str:
        return 7  # type: ignore[return-value]

    with pytest.raises(CallError, match="answers with int"):
        await backend(number).complete(request("x"))


def plain(asked: Request) -> str:
    return f"{asked.messages[0].content} in {threading.current_thread().name}"


def plain_that_fails(_: Request) -> str:
    raise SystemExit(3)


def plain_that_returns_a_coroutine(asked: Request) -> Awaitable[str | Reply]:
    return hello(asked)


class TestPlainFunctions:
    async def test_one_runs_in_a_thread(self) -> None:
        assert (await backend(plain).complete(request("x"))).text == f"x in {__name__}.plain"

    async def test_what_it_raises_is_a_failed_call(self) -> None:
        with pytest.raises(CallError, match="raised RuntimeError: SystemExit"):
            await backend(plain_that_fails).complete(request("x"))

    async def test_a_coroutine_that_it_returns_is_awaited(self) -> None:
        assert (await backend(plain_that_returns_a_coroutine).complete(request("x"))).text.startswith("hello")

    @pytest.mark.parametrize("threads", [1, 3])
    async def test_as_many_calls_run_at_once_as_it_has_threads(self, threads: int) -> None:
        at_once, most, lock = 0, 0, threading.Lock()
        together = threading.Barrier(threads)

        def count(_: Request) -> str:
            nonlocal at_once, most
            with lock:
                at_once += 1
                most = max(most, at_once)
            together.wait(60)
            time.sleep(0.02)
            with lock:
                at_once -= 1
            return "x"

        count.threads = threads  # type: ignore[attr-defined]
        counting = backend(count, timeout=0.001)  # an answer from a thread has no time limit
        await asyncio.gather(*(counting.complete(request("x")) for _ in range(9)))
        assert most == threads
        assert isinstance(counting, CountsSlots)
        assert await counting.slots() == threads

    async def test_a_cancelled_call_holds_its_place_until_it_has_ended(self) -> None:
        go_on, began = threading.Event(), []

        def wait(asked: Request) -> str:
            began.append(asked.messages[0].content)
            go_on.wait(60)
            return "x"

        waiting = backend(wait)
        first = asyncio.create_task(waiting.complete(request("first")))
        while not began:
            await asyncio.sleep(0.001)
        first.cancel()
        second = asyncio.create_task(waiting.complete(request("second")))
        await asyncio.sleep(0.02)
        assert began == ["first"]
        go_on.set()
        assert (await second).text == "x"
        assert began == ["first", "second"]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda _: "x", "a lambda; its answers are stored"),
        ("x", "is not a function"),
        (functools.partial(plain), "`threads`"),
    ],
)
def test_what_cannot_be_a_backend_is_refused(function: Any, message: str) -> None:
    if isinstance(function, functools.partial):
        function.threads = 0  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match=message):
        make_config(function)


def test_a_job_cannot_bring_one() -> None:
    assert find("provider", "function").Config is FunctionConfig
    with pytest.raises(InputError, match=r"m\.f is a Python function"):
        make(FunctionConfig(model="m.f"), timeout=1, connections=1, environ={})
