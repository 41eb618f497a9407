"""Adapters to language models, one folder per provider. Get one with `make` or `make_batch_service`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from edgen.config import BackendConfig
from edgen.config.backends import KeyRequest, ServiceKeys
from edgen.core.errors import InputError
from edgen.core.people.requests import AskPeople
from edgen.core.registry import find, find_plugin, part_of
from edgen.providers.base import Backend as Backend
from edgen.providers.base import BatchAnswers, Fleet, Key, Link, LocalCalls, Provider
from edgen.providers.batches import BatchService, BatchServices
from edgen.providers.trust import Consents, gather_consents

PATIENCE = 300.0  # seconds without a byte, by default
_PLACEHOLDER = Key("none")  # for a backend that sends nothing


def find_provider(config: BackendConfig) -> Provider:
    """Return the provider of a backend. Raises PluginError."""
    found: Provider = find("provider", config.provider)
    return found


def find_calls(config: BackendConfig) -> LocalCalls:
    """Return the differences of a backend's calls from those of a paid service. Raises PluginError."""
    return part_of(find_provider(config), LocalCalls)


def list_key_requests(config: BackendConfig) -> tuple[KeyRequest, ...]:
    """Return every key that one server needs and only the owner may grant. Raises InputError for an invalid
    address."""
    keys = part_of(find_provider(config), ServiceKeys)
    key = keys.key_request(config)
    return ((key,) if key is not None else ()) + keys.header_requests(config)


def list_servers(backend: Backend) -> Mapping[str, Backend]:
    """Return the servers of a backend by address: a fleet's servers, or else the backend itself."""
    if isinstance(backend, Fleet):
        return backend.servers
    return {str(backend.identity.get("base_url") or ""): backend}


def make(
    config: BackendConfig,
    *,
    timeout: float,
    connections: int,
    environ: Mapping[str, str],
    consents: Consents | None = None,
    silent: bool = False,
    people: AskPeople | None = None,
) -> Backend:
    """Build the backend that `config` describes.

    `timeout` is seconds per attempt, `connections` the most open connections. Keys are looked up in
    `environ`. `consents`: hosts besides their own providers' that keys may go to (None: read them from
    `environ`). `silent`: the backend sends nothing and gets no key. `people`: the way to ask people.

    Raises ProviderError if a key is missing. Raises InputError if a key may not go there, an extra is not
    installed or a value does not fit.
    """
    several: list[Any] = config.each_server
    if len(several) > 1:
        options: dict[str, Any] = {"timeout": timeout, "connections": connections, "environ": environ}
        made = [make(one, **options, consents=consents, silent=silent) for one in several]
        return Fleet({one.base_url.rstrip("/"): backend for one, backend in zip(several, made, strict=True)})
    (config,) = several
    key = Key()
    if requests := list_key_requests(config):
        from edgen.providers.keys import assemble_key

        if consents is None:
            consents = gather_consents(environ)
        key = _PLACEHOLDER if silent else assemble_key(requests, environ, consents)
    return find_provider(config).create(config, key, Link(timeout, connections, environ, people))


def make_batch_service(
    config: BackendConfig,
    backend: Backend,
    *,
    environ: Mapping[str, str],
    offline: bool = False,
    patience: float = PATIENCE,
) -> BatchService:
    """Build the batch service for `backend`, which `config` describes.

    `offline`: the service only writes and reads lines, which needs no SDK. `patience`: seconds without a byte
    in either direction after which a call or a transfer fails as TIMEOUT. Raises InputError if the provider
    has no batch service or the extra is not installed.
    """
    if len(config.each_server) > 1:
        raise InputError("a batch goes to one server; name one in base_url, or leave --via batch out.")
    service = find_batch_services(config).open(backend, environ, patience)
    if find_plugin("provider", config.provider) is not None:
        from edgen.providers.plugin_batches import CheckedBatchService  # few runs need it

        service = CheckedBatchService(config.provider, service)
    if not offline:
        _ = service.client  # import it now, so that a missing extra is reported before any work
    return service


def find_batch_services(config: BackendConfig) -> BatchServices:
    """Return the batch services of a backend's provider. Raises InputError if it has none."""
    provider = find_provider(config)
    answers = part_of(provider, BatchAnswers)
    if (services := answers.batches) is None:
        raise InputError(
            f"a backend of type {provider.name} has no batch service. {answers.instead_of_batches}".strip()
        )
    return services
