"""Adapters to language models, one file a kind. `make` is the one way to get one."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from edgen.backends.base import Backend
from edgen.config import BackendConfig

# type in a job -> module that holds `create(config, timeout=…, connections=…, environ=…)`.
# Imported only when asked for: a vendor's SDK is heavy.
_KINDS = {
    "openai": "edgen.backends.openai",
    "gemini": "edgen.backends.gemini",
    "google-generativeai": "edgen.backends.google_generativeai",
    "simulator": "edgen.backends.simulator",
}


def make(config: BackendConfig, *, timeout: float, connections: int, environ: Mapping[str, str]) -> Backend:
    """The backend that `config` describes.

    `timeout` is seconds per attempt, `connections` the most that will be open at once, `environ`
    where keys are looked up. Raises ProviderError if a key is missing, InputError if an extra is
    not installed or a value does not fit.
    """
    kind = str(config.__struct_config__.tag)
    module = importlib.import_module(_KINDS[kind])
    backend: Backend = module.create(config, timeout=timeout, connections=connections, environ=environ)
    return backend


__all__ = ["Backend", "make"]
