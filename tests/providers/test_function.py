"""A function as a backend: its answers, its failures, and who it is."""

from __future__ import annotations

import asyncio
import functools

import pytest

from edgen.core.errors import CallError, FailureKind, InputError, UsageError
from edgen.core.registry import find
from edgen.core.values import Reply, Request
from edgen.providers import make
from edgen.providers.function import AnswerFunction, FunctionBackend, FunctionConfig, config_of
from tests.providers.fakes import request


async def hello(_: Request) -> str:
    return "hello \ud800"


class Answers:
    version = 3

    async def __call__(self, _: Request) -> Reply:
        return Reply(text="hi", finish_reason="length")


def backend(function: AnswerFunction, timeout: float = 5.0) -> FunctionBackend:
    return FunctionBackend(function, config_of(function), timeout)


async def test_a_text_or_a_reply_is_an_answer() -> None:
    assert (await backend(hello).complete(request("x"))).text == "hello �"
    assert (await backend(Answers()).complete(request("x"))).finish_reason == "length"


def test_who_it_is_comes_of_its_name_and_version() -> None:
    assert backend(hello).identity == {"type": "function", "model": f"{__name__}.hello", "version": None}
    assert backend(Answers()).identity == {"type": "function", "model": f"{__name__}.Answers", "version": "3"}
    assert config_of(functools.partial(hello)).model == f"{__name__}.hello"


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


def test_it_has_to_be_asynchronous() -> None:
    with pytest.raises(UsageError, match="async def"):
        config_of(lambda _: "x")  # type: ignore[arg-type,return-value]


def test_a_job_cannot_bring_one() -> None:
    assert find("provider", "function").Config is FunctionConfig
    with pytest.raises(InputError, match=r"m\.f is a function of Python"):
        make(FunctionConfig(model="m.f"), timeout=1, connections=1, environ={})
