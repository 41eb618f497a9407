"""Adapters to language models, one file a kind. `make` is the one way to get one."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from edgen.backends.base import Backend
from edgen.config import BackendConfig, SimulatorConfig
from edgen.trust import Consents, gathered

# type in a job -> module that holds `create(config, timeout=…, connections=…, environ=…)`, with `key=…` but for the
# simulator.
# Imported only when asked for: a vendor's SDK is heavy.
_KINDS = {
    "openai": "edgen.backends.openai",
    "gemini": "edgen.backends.gemini",
    "google-generativeai": "edgen.backends.google_generativeai",
    "simulator": "edgen.backends.simulator",
}


def make(
    config: BackendConfig,
    *,
    timeout: float,
    connections: int,
    environ: Mapping[str, str],
    consents: Consents | None = None,
    silent: bool = False,
) -> Backend:
    """The backend that `config` describes.

    `timeout` is seconds per attempt, `connections` the most that will be open at once, `environ` where keys are looked
    up, `consents` where they may go beside their own providers (None: as `environ` says). `silent`: it will send
    nothing and gets no key. Raises ProviderError if a key is missing, InputError if it may not go there, if an extra
    is not installed or a value does not fit.
    """
    kind = str(config.__struct_config__.tag)
    module = importlib.import_module(_KINDS[kind])
    key = {}
    if not isinstance(config, SimulatorConfig):
        from edgen.backends.keys import PLACEHOLDER, key_of  # takes the HTTP client along

        if consents is None:
            consents = gathered(environ)
        key = {"key": PLACEHOLDER if silent else key_of(config, environ, consents)}
    backend: Backend = module.create(config, timeout=timeout, connections=connections, environ=environ, **key)
    return backend


__all__ = ["Backend", "make"]
