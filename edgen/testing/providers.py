"""Check that a provider meets edgen's expectations."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from edgen.config.backends import BackendConfig
from edgen.core.errors import CallError
from edgen.core.values import Address, Message, Reply, Request
from edgen.providers.base import Key, Link, Provider
from edgen.testing.check import Check, name_of


def check_provider(
    provider: Provider,
    settings: Mapping[str, Any] | None = None,
    *,
    key: str | None = "no-key",
    call: bool = False,
) -> None:
    """Check a provider. `settings` are those of a backend in a job, without `type`; `call`: have the backend
    answer one request, over the network if that is where it goes; `key`: the key that it is given."""
    check = Check("provider", name_of("provider", provider))
    check.that(isinstance(provider, Provider), "is no edgen.plugin.Provider")
    config_type = check.value("has no `Config`", lambda: provider.Config)
    check.that(
        isinstance(config_type, type) and issubclass(config_type, BackendConfig),
        "`Config` is no BackendConfig",
    )
    tag = config_type.__struct_config__.tag
    check.that(
        tag == provider.name, f"`Config` has the tag {tag!r}, and the provider is called {provider.name!r}"
    )
    given = dict(settings or {})
    if "model" in config_type.__struct_fields__ and "model" not in given:
        given["model"] = "some-model"
    config = check.value(
        f"cannot be configured by {given}; give other `settings`",
        lambda: msgspec.convert({"type": tag, **given}, config_type),
    )
    asks: tuple[Callable[[Any], Any], ...]
    asks = (provider.problems, provider.header_requests, provider.list_price)
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
    check.that(isinstance(backend.model, str), "the backend's `model` is no text")
    asyncio.run(_check_backend(check, backend, again, call=call))


async def _check_backend(check: Check, backend: Any, other: Any, *, call: bool) -> None:
    request = Request(Address(0, 0), (Message("user", "Say hello."),), seed=1)
    if call:
        try:
            reply = await backend.complete(request)
        except CallError:
            reply = None
        except Exception as error:  # noqa: BLE001 - any exception but a CallError is a fault
            check.fail(
                f"`complete` raises {type(error).__name__}: {error}; it may raise nothing but CallError"
            )
        if reply is not None:
            check.that(isinstance(reply, Reply), f"`complete` returns a {type(reply).__name__}, not a Reply")
            check.value(
                "`complete` returns a Reply with a field of a wrong type",
                lambda: msgspec.convert(msgspec.to_builtins(reply), Reply),
            )
    for one in (backend, other):
        for _ in range(2):  # calling it twice is allowed
            try:
                await one.aclose()
            except Exception as error:  # noqa: BLE001 - it may raise nothing
                check.fail(f"`aclose` raises {type(error).__name__}: {error}")
