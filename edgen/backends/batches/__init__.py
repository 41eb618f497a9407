"""Providers' batch services, one file a kind: many requests in a file, answers within a day, at half the price.

`batches` is the one way to get one. The vendors' SDKs are imported here alone, and only when asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping

from edgen.backends.base import MAX_ANSWER, Backend
from edgen.backends.batches.base import (
    Answered,
    Batches,
    Limits,
    OversizedError,
    Remote,
    Unanswered,
    custom_id,
    is_id,
    read_custom_id,
)
from edgen.config import BackendConfig
from edgen.errors import InputError

PATIENCE = 300.0  # seconds
# type in a job -> module that holds a class, `SERVICE`, and `read_line`.
_KINDS = {
    "openai": "edgen.backends.batches.openai",
    "gemini": "edgen.backends.batches.gemini",
}


def batches(
    config: BackendConfig,
    backend: Backend,
    *,
    environ: Mapping[str, str],
    offline: bool = False,
    patience: float = PATIENCE,
) -> Batches:
    """The batch service of the backend that `config` describes; `backend` is that backend, made.

    `offline`: it will only write and read lines, which needs no SDK. `patience`: seconds without a byte, either
    way, after which a call or a transfer is given up as TIMEOUT. Raises InputError for a kind that has none, and
    where the extra is not installed.
    """
    kind = str(config.__struct_config__.tag)
    if kind not in _KINDS:
        instead = {
            "simulator": "Start `edgen simulator` in another terminal and name it: "
            "{type: openai, model: any, base_url: http://127.0.0.1:8377/v1, seed: auto}.",
            "google-generativeai": "The gemini backend has one, for the same models: {type: gemini, model: …}.",
        }
        raise InputError(f"a backend of type {kind} has no batch service. {instead.get(kind, '')}".strip())
    module = importlib.import_module(_KINDS[kind])
    service = module.SERVICE(config, backend, environ, patience)
    if not offline:
        _ = service.client  # made now, so that what is missing is said before any work
    made: Batches = service
    return made


def line_reader(config: BackendConfig) -> Callable[[bytes], Answered | Unanswered | None]:
    """What reads the lines of that kind's result files: `Batches.read`, without a key or a network."""
    kind = str(config.__struct_config__.tag)
    if kind not in _KINDS:
        raise InputError(f"a backend of type {kind} has no batch service.")
    read: Callable[[bytes], Answered | Unanswered | None] = importlib.import_module(_KINDS[kind]).read_line
    return read


__all__ = [
    "MAX_ANSWER",
    "PATIENCE",
    "Answered",
    "Batches",
    "Limits",
    "OversizedError",
    "Remote",
    "Unanswered",
    "batches",
    "custom_id",
    "is_id",
    "line_reader",
    "read_custom_id",
]
