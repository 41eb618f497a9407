"""Plain values as a Job. Every unknown key and unusable value is reported with its path."""

from __future__ import annotations

from typing import Any

import msgspec

from edgen.config.backends import BackendConfig, Price
from edgen.config.checks import check
from edgen.config.job import Job, conversation_protocols, find_protocol
from edgen.core.errors import JobError, Problem
from edgen.core.registry import PluginError, find, names
from edgen.core.yaml_values import convert, shorten_word, suggest_name

KEYS = tuple(key for key in Job.__struct_fields__ if key not in ("protocol_settings", "speakers"))


def check_values(value: dict[str, Any], source: str) -> Job:
    """Return the checked job of plain values, with list prices. Raises JobError with every problem."""
    job = _with_list_prices(convert_values(value, source))
    check(job, source)
    return job


def convert_values(value: dict[str, Any], source: str) -> Job:
    """Return the job of plain values. Raises JobError for keys and values that are not a job's."""
    found: list[Problem] = []
    settings = {}
    for key in [key for key in value if key not in KEYS]:
        protocol = find_protocol(str(key))
        if protocol is None:
            found.append(
                Problem(
                    f"$.{shorten_word(str(key))}", f"unknown key{suggest_name(str(key), list_known_keys())}"
                )
            )
        else:
            settings[key] = convert(value[key], protocol.Config, f"$.{key}", found)
    plain = {key: given for key, given in value.items() if key in KEYS}
    job = convert(plain, Job, "$", found)
    if isinstance(job, Job):
        if (protocol := find_protocol(job.protocol)) is None:
            found.append(Problem("$.protocol", _unusable_protocol(job.protocol)))
        else:
            settings.setdefault(job.protocol, protocol.Config())
    if found:
        raise JobError.of(source, found)
    converted: Job = msgspec.structs.replace(job, protocol_settings=settings)
    return converted


def list_known_keys() -> list[str]:
    """Return the keys that a job can have."""
    return [*KEYS, *conversation_protocols()]


def _unusable_protocol(name: str) -> str:
    """Explain why a job cannot use this protocol."""
    if name in names("protocol"):
        try:
            find("protocol", name)
        except PluginError as error:
            return str(error)
    return f"unknown protocol {shorten_word(repr(name))}{suggest_name(name, conversation_protocols())}"


def _with_list_prices(job: Job) -> Job:
    """Return the job with list prices for backends that have no price of their own."""
    priced = {
        name: backend
        if backend.price is not None
        else msgspec.structs.replace(backend, price=find_list_price(backend))
        for name, backend in job.backends.items()
    }
    return msgspec.structs.replace(job, backends=priced)


def find_list_price(backend: BackendConfig) -> Price | None:
    """Return the list price of a backend's model at the provider's own host; None elsewhere, and for servers
    with different ones."""
    provider = find("provider", backend.provider)
    prices: set[Price | None] = {provider.list_price(server) for server in backend.each_server}
    return prices.pop() if len(prices) == 1 else None
