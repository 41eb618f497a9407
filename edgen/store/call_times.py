"""Timed calls of `edgen doctor`, stored in the user's cache folder for `edgen estimate`.

The file holds the latest timed call of each model at each address. Without a home folder or a readable file
there are no times.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from edgen.config import BackendConfig
from edgen.core.digest import compute_fingerprint
from edgen.core.files import read_regular, write_whole
from edgen.core.resources import cache_file

_FILE = "call_times.json"
_MOST = 500  # models with the latest calls
_BYTES = 1024 * 1024
_OLD = 30 * 86_400.0  # seconds after which a time is ignored


class CallTime(msgspec.Struct, frozen=True):
    """One timed call: its seconds, the tokens of its answer, the calls that the server answers at once (None:
    unknown), and its time (seconds since the epoch)."""

    seconds: float
    completion: int
    slots: int | None
    at: float


_decode = msgspec.json.Decoder(dict[str, CallTime]).decode


def note_call_time(config: BackendConfig, timed: CallTime, environ: Mapping[str, str]) -> None:
    """Store a timed call to one server of a backend."""
    if (file := cache_file(_FILE, environ)) is None:
        return
    with contextlib.suppress(OSError):
        kept = _read(file) | {_name(config): timed}
        latest = sorted(kept.items(), key=lambda item: -item[1].at)[:_MOST]
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, msgspec.json.encode(dict(latest)), sync=False)


def read_call_time(config: BackendConfig, environ: Mapping[str, str]) -> CallTime | None:
    """Return the latest timed call to one server of a backend; None if there is none of the last 30 days."""
    file = cache_file(_FILE, environ)
    timed = None if file is None else _read(file).get(_name(config))
    return timed if timed is not None and time.time() - timed.at < _OLD else None


def _name(config: BackendConfig) -> str:
    """Return a digest of a model and its address or file."""
    place = {key: str(getattr(config, key, None) or "").rstrip("/") for key in ("base_url", "path")}
    return compute_fingerprint({"type": config.provider, "model": config.model, **place})


def _read(file: Path) -> dict[str, CallTime]:
    try:
        return _decode(read_regular(file, _BYTES))
    except (OSError, msgspec.DecodeError, UnicodeError):
        return {}
