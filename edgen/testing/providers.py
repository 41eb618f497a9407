"""Check that a provider meets edgen's expectations."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from edgen.config.backends import BackendConfig, PricesAndTokens, ServiceKeys
from edgen.core.errors import CallError, Problem
from edgen.core.plugins.faults import require_items
from edgen.core.plugins.unending_tasks import CANCELLING, forget_task
from edgen.core.registry import part_of
from edgen.core.text import describe_error
from edgen.core.values import Address, Message, Reply, Request
from edgen.execution.client.backend_calls import check_failure, check_reply
from edgen.providers.base import Key, Link, Provider
from edgen.runtime.backends import CLOSING, require_backend
from edgen.testing.check import Check, begin_check
from edgen.testing.elsewhere import run_elsewhere

_TIMEOUT = 30.0  # seconds for an answer, of the backends' Link
_LATE = 5.0  # seconds that an answer may take beyond the timeout
_BLOCKED = 0.5  # seconds that a call may keep the loop
_TICK = 0.02  # seconds between two looks at the loop
_FEW = 16  # max_tokens of a call whose answer would be longer
_LONGEST = 16  # characters of a token


def check_provider(
    provider: Provider,
    settings: Mapping[str, Any] | None = None,
    *,
    key: str | None = "no-key",
    call: bool = False,
) -> None:
    """Check a provider. `settings`: settings of a backend in a job, without `type`. `call`: have the backend
    answer one request, and another one in few tokens, cancel a third, and list its models, over the network
    if it uses one. `key`: the key for the backend."""
    check = begin_check("provider", provider)
    config_type, tag = provider.Config, provider.name
    given = dict(settings or {})
    unknown = sorted(given.keys() - {*config_type.__struct_fields__})
    check.that(not unknown, f"has no setting {', '.join(unknown)}; give other `settings`")
    if "model" in config_type.__struct_fields__ and "model" not in given:
        given["model"] = "some-model"
    config = check.value(
        f"cannot be configured by {given}; give other `settings`",
        lambda: msgspec.convert({"type": tag, **given}, config_type),
    )
    asks: tuple[Callable[[Any], Any], ...]
    keys, prices = part_of(provider, ServiceKeys), part_of(provider, PricesAndTokens)
    asks = (keys.header_requests, prices.list_price)
    for ask in asks:
        check.value(f"`{ask.__name__}` raises", ask, config)
    problems = check.value("`problems` raises", provider.problems, config)
    check.value("`problems` cannot be used", require_items, "provider", tag, problems, Problem, "a Problem")
    link = Link(timeout=_TIMEOUT, connections=2, environ={})
    backend = check.value("`create` raises", lambda: provider.create(config, Key(key), link))
    again = check.value(
        "`create` raises the second time", lambda: provider.create(config, Key("another"), link)
    )
    check.value("cannot use its backend", require_backend, tag, backend)
    identity = msgspec.json.encode(dict(backend.identity), order="sorted")
    other = msgspec.json.encode(dict(again.identity), order="sorted")
    check.that(
        identity == other, "two backends of one configuration differ in `identity`, or it depends on the key"
    )
    check.that(key is None or key.encode() not in identity, "the backend's `identity` holds the key")
    elsewhere = run_elsewhere(_find_identity, provider, msgspec.to_builtins(config))
    check.that(
        elsewhere in (None, identity),
        "the backend's `identity` is another one in another process; "
        "it is part of the address of stored answers, so each start would pay for all of them again",
    )
    few = msgspec.structs.replace(config, max_tokens=_FEW, retry_max_tokens=None)
    brief = check.value(
        f"`create` raises for max_tokens: {_FEW}", lambda: provider.create(few, Key(key), link)
    )
    asyncio.run(_check_backend(check, config, (backend, again, brief), call=call))


def _find_identity(provider: Provider, plain: Any) -> bytes:
    """Return the identity of a backend of this configuration."""
    link = Link(timeout=_TIMEOUT, connections=2, environ={})
    backend = provider.create(msgspec.convert(plain, provider.Config), Key("no-key"), link)
    return msgspec.json.encode(dict(backend.identity), order="sorted")


async def _check_backend(check: Check, config: BackendConfig, backends: Sequence[Any], *, call: bool) -> None:
    if call:
        await _check_call(check, config, backends[0])
        await _check_brief_call(check, config.provider, backends[-1])
    for one in backends:
        for _ in range(2):  # calling it twice must be possible
            await _end(check, "aclose", one.aclose(), CLOSING)


class _WatchedRequest(Request, frozen=True):
    """A request that notes the fields that are read."""

    read: ClassVar[set[str]] = set()

    def __getattribute__(self, name: str) -> Any:
        _WatchedRequest.read.add(name)
        return super().__getattribute__(name)


async def _check_brief_call(check: Check, name: str, backend: Any) -> None:
    """Check that an answer is not longer than `max_tokens` of its backend."""
    asked = "Write the numbers from one to one hundred as words."
    reply = await _complete(check, name, backend, Request(Address(0, 1), (Message("user", asked),), seed=1))
    if reply is None:
        return
    used = 0 if reply.usage is None else reply.usage.completion_tokens
    said = f"{used} tokens" if used else f"{len(reply.text)} characters"
    short = max(used, len(reply.text) / _LONGEST) <= 2 * _FEW  # services count some tokens in other ways
    check.that(short, f"ignores `max_tokens` of its Config: asked for {_FEW} tokens at most, it gives {said}")


async def _check_call(check: Check, config: BackendConfig, backend: Any) -> None:
    name = config.provider
    request = _WatchedRequest(Address(0, 0), (Message("user", "Say hello."),), seed=1, one_of_several=True)
    _WatchedRequest.read.clear()
    ticks = asyncio.create_task(_find_longest_wait())
    await _complete(check, name, backend, request)
    check.that(
        "seed" in _WatchedRequest.read or not (config.TAKES_SEED and config.seed in (None, "auto")),
        "has a Config with TAKES_SEED, and `complete` never reads the `seed` of its request; send it, or "
        "leave TAKES_SEED out",
    )
    if await _end_ticks(ticks) > _BLOCKED:  # once, it may be an import
        ticks = asyncio.create_task(_find_longest_wait())
        await _complete(check, name, backend, request)
        blocked = await _end_ticks(ticks)
        check.that(
            blocked <= _BLOCKED,
            f"`complete` keeps the event loop for {blocked:.1f} s; await what takes long, or use "
            "asyncio.to_thread",
        )
    cancelled = asyncio.create_task(backend.complete(request))
    await asyncio.sleep(0)
    cancelled.cancel()
    await asyncio.wait({cancelled}, timeout=CANCELLING)
    if not cancelled.done():
        forget_task(cancelled)
        check.fail(f"`complete` does not end within {CANCELLING:g} s after it was cancelled")
    try:
        names = await _end(check, "models", backend.models(), _TIMEOUT + _LATE)
    except CallError as error:
        check.value("`models` raises a CallError that cannot be used", check_failure, name, error)
        return
    right = names is None or (isinstance(names, list) and all(isinstance(one, str) for one in names))
    check.that(right, f"`models` returns {names!r}, not a list of names or None")


async def _complete(check: Check, name: str, backend: Any, request: Request) -> Reply | None:
    """Return the reply to a call; None if it ends with a CallError."""
    try:
        reply = await _end(check, "complete", backend.complete(request), _TIMEOUT + _LATE)
    except CallError as error:
        check.value("`complete` raises a CallError that cannot be used", check_failure, name, error)
        return None
    stored = check.value("`complete` returns no Reply that can be stored", check_reply, name, reply)
    check.that(stored is reply, "`complete` returns a Reply with a lone surrogate, which no file can hold")
    return reply  # type: ignore[no-any-return]


async def _end(check: Check, method: str, work: Any, seconds: float) -> Any:
    """Return what a coroutine of the backend returns. Only a CallError may end it, and it must end in
    time."""
    check.that(inspect.isawaitable(work), f"has a `{method}` that is not `async def`")
    task = asyncio.create_task(_await_outcome(work))
    await asyncio.wait({task}, timeout=seconds)
    if not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=CANCELLING)
        if not task.done():
            forget_task(task)
        advice = "" if method == "aclose" else "; heed the `timeout` of its Link"
        check.fail(f"`{method}` does not return within {seconds:g} s{advice}")
    value, error = task.result()
    if isinstance(error, CallError) and method != "aclose":
        raise error
    if error is not None:
        allowed = "nothing" if method == "aclose" else "nothing but CallError"
        check.fail(f"`{method}` raises {describe_error(error)}; it may raise {allowed}", error)
    return value


async def _await_outcome(work: Any) -> tuple[Any, BaseException | None]:
    """Return the value of an awaitable, or its error, which may be one that would end the loop."""
    try:
        return await work, None
    except BaseException as error:  # noqa: BLE001 - a plugin may raise anything
        return None, error


async def _find_longest_wait() -> float:
    """Return the longest time in seconds in which the loop ran no other task, until cancelled."""
    clock, longest = asyncio.get_running_loop().time, 0.0
    before = clock()
    with contextlib.suppress(asyncio.CancelledError):
        while True:
            await asyncio.sleep(_TICK)
            longest, before = max(longest, clock() - before), clock()
    return max(longest, clock() - before)


async def _end_ticks(ticks: asyncio.Task[float]) -> float:
    await asyncio.sleep(0)
    ticks.cancel()
    return await ticks
