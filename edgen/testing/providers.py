"""Check that a provider meets edgen's expectations."""

from __future__ import annotations

import asyncio
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from edgen.config.backends import PricesAndTokens, ServiceKeys
from edgen.core.errors import CallError
from edgen.core.registry import part_of
from edgen.core.values import Address, Message, Request
from edgen.execution.client.backend_calls import check_failure, check_reply
from edgen.providers.base import Key, Link, Provider
from edgen.testing.check import Check, begin_check


def check_provider(
    provider: Provider,
    settings: Mapping[str, Any] | None = None,
    *,
    key: str | None = "no-key",
    call: bool = False,
) -> None:
    """Check a provider. `settings`: settings of a backend in a job, without `type`. `call`: have the backend
    answer one request, over the network if it uses one. `key`: the key for the backend."""
    check = begin_check("provider", provider)
    config_type, tag = provider.Config, provider.name
    given = dict(settings or {})
    if "model" in config_type.__struct_fields__ and "model" not in given:
        given["model"] = "some-model"
    config = check.value(
        f"cannot be configured by {given}; give other `settings`",
        lambda: msgspec.convert({"type": tag, **given}, config_type),
    )
    asks: tuple[Callable[[Any], Any], ...]
    keys, prices = part_of(provider, ServiceKeys), part_of(provider, PricesAndTokens)
    asks = (provider.problems, keys.header_requests, prices.list_price)
    for ask in asks:
        check.value(f"`{ask.__name__}` raises", ask, config)
    link = Link(timeout=30.0, connections=2, environ={})
    backend = check.value("`create` raises", lambda: provider.create(config, Key(key), link))
    again = check.value(
        "`create` raises the second time", lambda: provider.create(config, Key("another"), link)
    )
    for name in ("identity", "model", "complete", "models", "aclose"):
        check.that(hasattr(backend, name), f"its backend has no `{name}`")
    identity = check.value(
        "the backend's `identity` is not JSON",
        lambda: msgspec.json.encode(dict(backend.identity), order="sorted"),
    )
    check.that(backend.identity.get("type") == tag, f"the backend's `identity` has no `type` {tag!r}")
    other = msgspec.json.encode(dict(again.identity), order="sorted")
    check.that(
        identity == other, "two backends of one configuration differ in `identity`, or it depends on the key"
    )
    check.that(key is None or key.encode() not in identity, "the backend's `identity` holds the key")
    check.that(isinstance(backend.model, str), "the backend's `model` is not text")
    elsewhere = _find_identity_elsewhere(provider, config, environ=link.environ)
    check.that(
        elsewhere in (None, identity),
        "the backend's `identity` is another one in another process; "
        "it is part of the address of stored answers, so each start would pay for all of them again",
    )
    asyncio.run(_check_backend(check, provider.name, backend, again, call=call))


def _find_identity_elsewhere(provider: Provider, config: Any, environ: Mapping[str, str]) -> bytes | None:
    """Return the identity of a backend of this configuration in another process; None if another process
    cannot import the provider."""
    try:
        given = pickle.dumps((provider, msgspec.to_builtins(config), dict(environ)))
    except (pickle.PicklingError, AttributeError, TypeError):
        return None
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONHASHSEED": "1"}
    done = subprocess.run(  # noqa: S603 - this Python, and the code below
        [sys.executable, "-P", "-c", _ELSEWHERE], input=given, capture_output=True, env=variables, check=False
    )
    return done.stdout or None


_ELSEWHERE = """
import contextlib, pickle, sys
import msgspec
from edgen.providers.base import Key, Link

with contextlib.redirect_stdout(sys.stderr):
    provider, config, environ = pickle.load(sys.stdin.buffer)
    config = msgspec.convert(config, provider.Config)
    backend = provider.create(config, Key("no-key"), Link(timeout=30.0, connections=2, environ=environ))
    identity = msgspec.json.encode(dict(backend.identity), order="sorted")
sys.stdout.buffer.write(identity)
"""


async def _check_backend(check: Check, name: str, backend: Any, other: Any, *, call: bool) -> None:
    request = Request(Address(0, 0), (Message("user", "Say hello."),), seed=1)
    if call:
        try:
            reply = await backend.complete(request)
        except CallError as error:
            check.value("`complete` raises a CallError that cannot be used", check_failure, name, error)
        except Exception as error:  # noqa: BLE001 - any exception but a CallError is a fault
            check.fail(
                f"`complete` raises {type(error).__name__}: {error}; it may raise nothing but CallError"
            )
        else:
            stored = check.value("`complete` returns no Reply that can be stored", check_reply, name, reply)
            check.that(
                stored is reply, "`complete` returns a Reply with a lone surrogate, which no file can hold"
            )
    for one in (backend, other):
        for _ in range(2):  # calling it twice must be possible
            try:
                await one.aclose()
            except Exception as error:  # noqa: BLE001 - it must raise nothing
                check.fail(f"`aclose` raises {type(error).__name__}: {error}")
