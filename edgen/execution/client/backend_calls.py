"""Calls to a backend's methods; they report faults of a plugin's backend.

`complete_once` makes one attempt, and `count_slots` asks about the server.
"""

from __future__ import annotations

import asyncio
import inspect
import math
from typing import Any

import msgspec

from edgen.core.errors import MOST_MESSAGE, CallError, FailureKind
from edgen.core.plugins.faults import FaultyPluginError, blame, refuse_value, require_value
from edgen.core.plugins.unending_tasks import LateError, run_apart
from edgen.core.registry import find_plugin
from edgen.core.text import limit_length, replace_surrogates
from edgen.core.values import Reply, Request
from edgen.providers import Backend
from edgen.providers.base import CountsSlots
from edgen.providers.usage import MOST_PROMPT

LATE = 1.0  # seconds that a plugin's backend may take beyond the time of an attempt


async def complete_once(
    backend: Backend, provider: str, request: Request, seconds: float | None = None
) -> Reply:
    """Return the backend's reply to one attempt. `seconds`: the time of an attempt, which a plugin's backend
    may ignore; None or 0: no limit.

    Raises CallError. Raises FaultyPluginError if a plugin's backend raises anything else or returns no Reply.
    """
    plugin = find_plugin("provider", provider)
    if plugin is None:
        return await _complete(backend, provider, request)
    limit = seconds + LATE if seconds else None
    try:
        reply = await run_apart(_complete(backend, provider, request), limit)
    except LateError:
        said = f"{plugin.title} did not return from `complete` within {limit:g} s"
        raise CallError(FailureKind.TIMEOUT, said) from None
    return check_reply(provider, reply)


async def _complete(backend: Backend, provider: str, request: Request) -> Reply:
    own = asyncio.current_task()
    try:
        call = backend.complete(request)
        if not inspect.isawaitable(call):
            refuse_value("provider", provider, "has a `complete` that is not `async def`")
        return await call
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        blame("provider", provider, error, "in place of a CallError")  # the plugin raised it
    except FaultyPluginError:
        raise
    except CallError as error:
        if find_plugin("provider", provider) is not None:
            check_failure(provider, error)
        raise
    except BaseException as error:
        if isinstance(error, GeneratorExit) and not _is_running(own):
            raise  # a call that never ended is destroyed
        blame("provider", provider, error, "in place of a CallError")


def _is_running(task: asyncio.Task[Any] | None) -> bool:
    try:
        return asyncio.current_task() is task
    except RuntimeError:  # no loop runs
        return False


def check_reply(provider: str, reply: Reply) -> Reply:
    """Return a plugin's reply, with U+FFFD for lone surrogates. Raises FaultyPluginError if the reply is no
    Reply, or cannot be stored."""
    checked = require_value("provider", provider, reply, Reply, "a Reply")
    if (used := checked.usage) is not None:
        counts = msgspec.structs.astuple(used)
        if min(counts) < 0:
            refuse_value("provider", provider, f"returned a Reply with a negative number of tokens: {used}")
        if max(counts) > MOST_PROMPT:
            said = f"returned a Reply with more than {MOST_PROMPT:,} tokens, which no model has: {used}"
            refuse_value("provider", provider, said)
    return checked


def check_failure(provider: str, error: CallError) -> None:
    """Raise FaultyPluginError if a plugin's CallError has an unknown kind or an invalid wait."""
    if not isinstance(error.kind, FailureKind):
        said = f"raised a CallError of the kind {error.kind!r}, which is not an edgen.plugin.FailureKind"
        refuse_value("provider", provider, said)
    error.message = limit_length(replace_surrogates(str(error.message)), MOST_MESSAGE)
    wait = error.retry_after
    if wait is not None and not (isinstance(wait, int | float) and 0 <= wait < math.inf):
        refuse_value(
            "provider", provider, f"raised a CallError with `retry_after` {wait!r}, no number of seconds"
        )


async def count_slots(backend: CountsSlots, provider: str) -> int | None:
    """Return how many calls the backend's server answers at once; None if it does not say.

    Raises CallError. Raises FaultyPluginError if a plugin's backend raises anything else or returns another
    value.
    """
    try:
        slots = await backend.slots()
    except Exception as error:  # noqa: BLE001 - raised again
        blame("provider", provider, error, "in place of a CallError")
    if slots is not None and find_plugin("provider", provider) is not None:
        require_value("provider", provider, slots, int, "a number of slots or None")
    return slots
