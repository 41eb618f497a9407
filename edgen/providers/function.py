"""A Python function as a backend: `async def answer(request) -> str | Reply`, or the same without `async`.

Its identity is the function's qualified name, with its attribute `version` if it has one. After a change of
either, every request is sent again. A function has no batch service, key or list price.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import inspect
import threading
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

import msgspec

from edgen.plugin import (
    Backend,
    BackendConfig,
    BatchAnswers,
    CallError,
    FailureKind,
    Key,
    Link,
    LocalCalls,
    Provider,
    Reply,
    Request,
    RequestFeatures,
)
from edgen.plugin.errors import EdgenError, InputError, UsageError
from edgen.plugin.providers import Text, clean_message, scrub

AnswerFunction = Callable[[Request], str | Reply | Awaitable[str | Reply]]


_MOST_THREADS = 256


class FunctionConfig(BackendConfig, frozen=True, kw_only=True, tag_field="type", tag="function"):
    """A Python function; a job file cannot define one."""

    ALWAYS_SEEDED: ClassVar[bool] = True

    version: Text | None = None
    """The version of the function, if it has one."""


class FunctionBackend:
    """Backend that calls an asynchronous function. `timeout` is seconds for one answer."""

    def __init__(self, function: AnswerFunction, config: FunctionConfig, timeout: float) -> None:
        self.model = config.model
        self.identity = {"type": config.provider, "model": config.model, "version": config.version}
        self._function = function
        self._timeout = timeout

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model})"

    async def complete(self, request: Request) -> Reply:
        """Call the function once. Raises its own CallError, and one for any other exception."""
        try:
            answer = await self._call(request)
        except (CallError, EdgenError):
            raise
        except Exception as problem:
            if isinstance(problem, RuntimeError) and "loop" in str(problem):
                raise UsageError(
                    f"{self._describe(problem)}. It probably uses a client of a closed event loop, or of "
                    "another one: open the client inside the function, or call edgen.agenerate in its loop."
                ) from problem
            raise CallError(_find_kind(problem), self._describe(problem)) from problem
        if isinstance(answer, str):
            return Reply(text=scrub(answer), finish_reason="stop")
        if isinstance(answer, Reply):
            texts = {name: getattr(answer, name) for name in ("text", "refusal", "model")}
            if wrong := [
                name
                for name, text in texts.items()
                if not isinstance(text, str) and (text is not None or name == "text")
            ]:
                said = f"the function {self.model} answers with a Reply whose `{wrong[0]}` is not a str"
                raise CallError(FailureKind.BAD_REQUEST, said)
            scrubbed = {name: text if text is None else scrub(text) for name, text in texts.items()}
            return answer if scrubbed == texts else msgspec.structs.replace(answer, **scrubbed)
        raise CallError(
            FailureKind.BAD_REQUEST,
            f"the function {self.model} answers with {type(answer).__name__}; it has to be a str or an "
            "edgen.Reply",
        )

    async def models(self) -> list[str] | None:
        """Return the only model."""
        return [self.model]

    async def aclose(self) -> None:
        """Do nothing: there are no connections."""

    async def _call(self, request: Request) -> object:
        """Return the function's result. Raises the function's exceptions."""
        async with asyncio.timeout(self._timeout):
            answer: Any = self._function(request)
            return await answer

    def _describe(self, problem: Exception) -> str:
        return clean_message(f"the function {self.model} raised {type(problem).__name__}: {problem}")


class ThreadedFunctionBackend(FunctionBackend):
    """A backend that calls a plain function in threads: as many at once as its attribute `threads`, by
    default one.

    A thread cannot be stopped, so an answer has no time limit.
    """

    def __init__(self, function: AnswerFunction, config: FunctionConfig, timeout: float) -> None:
        super().__init__(function, config, timeout)
        self._threads: int = getattr(function, "threads", 1)
        self._free = asyncio.Semaphore(self._threads)

    async def slots(self) -> int | None:
        """Return the number of concurrent calls."""
        return self._threads

    async def _call(self, request: Request) -> object:
        await self._free.acquire()
        loop = asyncio.get_running_loop()
        called: asyncio.Future[Callable[[], object]] = loop.create_future()

        def settle(outcome: Callable[[], object]) -> None:
            self._free.release()
            if not called.done():  # otherwise the caller was cancelled
                called.set_result(outcome)

        def work() -> None:
            outcome = _find_outcome(self._function, request)
            with contextlib.suppress(RuntimeError):  # the loop is closed, so no caller waits
                loop.call_soon_threadsafe(settle, outcome)

        # A daemon thread, so that a call that hangs does not keep the process alive.
        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(work,), name=self.model, daemon=True).start()
        answer = (await called)()
        return await answer if inspect.isawaitable(answer) else answer


def _find_outcome(function: AnswerFunction, request: Request) -> Callable[[], object]:
    """Call a function. Return another function that returns or raises the same."""
    try:
        answer = function(request)
    except (Exception, SystemExit) as problem:  # noqa: BLE001 - raised again for its caller
        failed = problem if isinstance(problem, Exception) else RuntimeError(type(problem).__name__)

        def fail() -> object:
            raise failed

        return fail
    return lambda: answer


def _find_kind(problem: Exception) -> FailureKind:
    if isinstance(problem, TimeoutError):
        return FailureKind.TIMEOUT
    return FailureKind.CONNECTION if isinstance(problem, ConnectionError) else FailureKind.BAD_REQUEST


def make_backend(function: AnswerFunction, config: FunctionConfig, timeout: float) -> FunctionBackend:
    """Return the backend for a function. `timeout`: seconds for one answer of an asynchronous function."""
    kind = FunctionBackend if _is_asynchronous(function) else ThreadedFunctionBackend
    return kind(function, config, timeout)


def make_config(function: AnswerFunction) -> FunctionConfig:
    """Return a job's configuration for a function. Raises UsageError for an object that cannot be called or
    has no name, and for an invalid `threads`."""
    inner = _unwrap_partial(function)
    named = inner if hasattr(inner, "__qualname__") else type(inner)
    name = f"{named.__module__}.{named.__qualname__}"
    if not callable(function):
        raise UsageError(
            f"the backend {name} is not a function: write one that takes a request and returns a text."
        )
    if name.endswith("<lambda>"):
        raise UsageError(
            "a backend is a lambda; its answers are stored under the name of a function, so define it with "
            "`def`."
        )
    threads = getattr(function, "threads", 1)
    if not isinstance(threads, int) or not 1 <= threads <= _MOST_THREADS:
        raise UsageError(
            f"the attribute `threads` of the backend {name} is {threads!r}: it is the number of calls at "
            f"once, from 1 to {_MOST_THREADS}."
        )
    version = getattr(function, "version", None)
    return FunctionConfig(model=name, version=None if version is None else str(version))


def _unwrap_partial(function: AnswerFunction) -> Any:
    return function.func if isinstance(function, functools.partial) else function


def _is_asynchronous(function: AnswerFunction) -> bool:
    inner = _unwrap_partial(function)
    return inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(type(inner).__call__)


class FunctionProvider(RequestFeatures, BatchAnswers, LocalCalls, Provider):
    name = "function"
    Config = FunctionConfig
    schema_field = "schema"  # from the Request: the function may use it
    forms_by_default = False
    logprobs_fields = ("logprobs",)  # the function may return a Reply with `tokens`
    instead_of_batches = "Leave --via batch out, and it is asked call by call."
    stays_here = True

    def create(self, config: FunctionConfig, key: Key, link: Link) -> Backend:  # noqa: ARG002
        raise InputError(
            f"the backend {config.model} is a Python function, which a job file cannot define: pass it, as in "
            "edgen.generate(job, backends={'default': the_function})."
        )


PROVIDER = FunctionProvider()
