"""A Python function as a backend: `async def answer(request) -> str | Reply`.

Its identity is the function's qualified name with its attribute `version`, if it has one: after a change of
either, every request is sent again. A function has no batch service, key or list price.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

from edgen.plugin import (
    Backend,
    BackendConfig,
    CallError,
    FailureKind,
    InputError,
    Key,
    Link,
    Provider,
    Reply,
    Request,
    Text,
)
from edgen.plugin.errors import EdgenError, UsageError
from edgen.plugin.providers import clean_message, scrub

AnswerFunction = Callable[[Request], Awaitable[str | Reply]]


class FunctionConfig(BackendConfig, frozen=True, kw_only=True, tag_field="type", tag="function"):
    """A Python function; a job file cannot define one."""

    ALWAYS_SEEDED: ClassVar[bool] = True

    version: Text | None = None
    """The version of the function, if it has one."""


class FunctionBackend:
    """Backend that calls a function. `timeout` is seconds for one answer."""

    def __init__(self, function: AnswerFunction, config: FunctionConfig, timeout: float) -> None:
        self.model = config.model
        self.identity = {"type": config.provider, "model": config.model, "version": config.version}
        self._function = function
        self._timeout = timeout

    def __repr__(self) -> str:
        return f"FunctionBackend({self.model})"

    async def complete(self, request: Request) -> Reply:
        """Call the function once. Raises its own CallError, and one for any other exception."""
        try:
            async with asyncio.timeout(self._timeout):
                answer: object = await self._function(request)
        except (CallError, EdgenError):
            raise
        except Exception as problem:
            if isinstance(problem, RuntimeError) and "loop" in str(problem):
                raise UsageError(
                    f"{self._describe(problem)}. It uses something, a client most likely, of an event loop that is "
                    "closed or another one: open it inside the function, or call edgen.agenerate in its loop."
                ) from problem
            raise CallError(_kind_of(problem), self._describe(problem)) from problem
        if isinstance(answer, str):
            return Reply(text=scrub(answer), finish_reason="stop")
        if isinstance(answer, Reply):
            return answer
        raise CallError(
            FailureKind.BAD_REQUEST,
            f"the function {self.model} answers with {type(answer).__name__}; it has to be a str or an edgen.Reply",
        )

    async def models(self) -> list[str] | None:
        """Return the only model."""
        return [self.model]

    async def aclose(self) -> None:
        """Do nothing: there are no connections."""

    def _describe(self, problem: Exception) -> str:
        return clean_message(f"the function {self.model} raised {type(problem).__name__}: {problem}")


def _kind_of(problem: Exception) -> FailureKind:
    if isinstance(problem, TimeoutError):
        return FailureKind.TIMEOUT
    return FailureKind.CONNECTION if isinstance(problem, ConnectionError) else FailureKind.BAD_REQUEST


def config_of(function: AnswerFunction) -> FunctionConfig:
    """Return a job's configuration for a function. Raises UsageError unless it is asynchronous."""
    inner: Any = function.func if isinstance(function, functools.partial) else function
    named = inner if hasattr(inner, "__qualname__") else type(inner)
    name = f"{named.__module__}.{named.__qualname__}"
    if not (inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(type(inner).__call__)):
        raise UsageError(
            f"the backend {name} is not an asynchronous function: write `async def`, take one request, and return the "
            "answer as a text."
        )
    version = getattr(function, "version", None)
    return FunctionConfig(model=name, version=None if version is None else str(version))


class FunctionProvider(Provider):
    name = "function"
    Config = FunctionConfig
    schema_field = "schema"  # of the Request: the function may use it
    forms_by_default = False
    logprobs_fields = ("logprobs",)  # likewise: the function returns a Reply with `tokens`
    instead_of_batches = "Leave --via batch out, and it is asked call by call."
    stays_here = True

    def create(self, config: FunctionConfig, key: Key, link: Link) -> Backend:  # noqa: ARG002
        raise InputError(
            f"the backend {config.model} is a function of Python, which a job's file cannot bring: hand it over as "
            "in edgen.generate(job, backends={'default': the_function})."
        )


PROVIDER = FunctionProvider()
