"""Loaded models of this process. Backends with the same weights and settings share one.

A model that was never loaded on this machine with these settings is first loaded in a trial process, since
llama.cpp ends its process on some damaged files and runs out of memory on large ones.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import secrets
import subprocess
import sys
import threading
import weakref
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from edgen.plugin.errors import InputError
from edgen.plugin.files import require_extra
from edgen.providers.llamacpp import server
from edgen.providers.llamacpp.notes import note_loaded, was_loaded

_PATIENCE = 900.0  # seconds for a trial: large weights on a slow disk


class Settings(NamedTuple):
    """Settings that distinguish loaded models: the digest of the weights, threads, slots, tokens of each
    slot, and the chat template (empty: the model's own)."""

    sha256: str
    threads: int
    slots: int
    context: int
    chat_template: str


class Engine:
    """A loaded model at a loopback port that only `key` opens. `address` is the port's."""

    def __init__(self, path: Path, settings: Settings) -> None:
        self.key = secrets.token_urlsafe(32)
        self.users = 0
        self._slots = settings.slots
        self._turns: Any = weakref.WeakKeyDictionary()
        plain = {"path": str(path), **settings._asdict()}
        _require_loadable(path, plain, settings)
        try:
            self._server = server.start(plain, self.key)
        except RuntimeError as problem:
            raise InputError(_explain_unloadable(path, str(problem))) from None
        except ImportError as problem:  # built for another Python, or lacks a system library
            raise InputError(
                f"xllamacpp {find_library_version()} is installed, but Python cannot import it: {problem}. "
                "Install it again."
            ) from None
        self.address: str = self._server.listening_address

    def find_free_slots(self) -> asyncio.Semaphore:
        """Return the free slots, for the running event loop."""
        loop = asyncio.get_running_loop()
        turns: asyncio.Semaphore = self._turns.setdefault(loop, asyncio.Semaphore(self._slots))
        return turns

    def close(self) -> None:
        """Unload the model. This ends answers in progress."""
        del self._server


_lock = threading.Lock()
_engines: dict[Settings, Engine] = {}


def open_engine(path: Path, settings: Settings) -> Engine:
    """Return the loaded model with these settings, and load it if necessary, which may take seconds. Raises
    InputError if llama.cpp is not installed or cannot load the model."""
    require_library()
    with _lock:
        engine = _engines.get(settings) or Engine(path, settings)
        _engines[settings] = engine
        engine.users += 1
        return engine


def close_engine(settings: Settings) -> None:
    """Release a loaded model; the last release unloads it."""
    with _lock:
        engine = _engines[settings]
        engine.users -= 1
        if not engine.users:
            del _engines[settings]
            engine.close()


def find_library_version() -> str | None:
    """Return xllamacpp's version, None if it is not installed."""
    try:
        return metadata.version("xllamacpp")
    except metadata.PackageNotFoundError:
        return None


def require_library() -> None:
    """Raise UsageError if xllamacpp is missing or of an unsupported version."""
    require_extra("local", "backends of type llamacpp")


def _require_loadable(path: Path, plain: dict[str, Any], settings: Settings) -> None:
    """Raise InputError for a model that llama.cpp cannot load. A model that it has loaded before is not tried
    again."""
    described = repr((settings, find_library_version()))
    note = hashlib.sha256(described.encode()).hexdigest()
    if was_loaded(note):
        return
    try:
        tried = subprocess.run(  # noqa: S603 - this Python, with edgen's own file
            [sys.executable, "-P", server.__file__],
            input=json.dumps(plain),
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_PATIENCE,
            start_new_session=True,  # Ctrl-C is for edgen, and would look like a failed trial
            env={**os.environ, "GGML_NO_BACKTRACE": "1"},
        )
    except subprocess.TimeoutExpired:
        raise InputError(
            _explain_unloadable(path, f"it did not end within {_PATIENCE / 60:.0f} minutes")
        ) from None
    if tried.returncode:
        raise InputError(_explain_unloadable(path, _find_reason(tried.returncode, tried.stderr)))
    note_loaded(note)


_LOGGED = re.compile(r"[\d.]+ E .*?error[^:\n]*: (.*)|(GGML_ASSERT.*)")


def _find_reason(code: int, said: str) -> str:
    """Return why a trial failed: llama.cpp's first error, or how its process ended."""
    found = _LOGGED.search(said)
    logged = (found[1] or found[2]) if found else said.rpartition("TRIAL ")[2].strip()
    if code < 0:
        killed = "no memory was left, most likely" if code == -9 else logged
        return f"its process ended by signal {-code} ({killed})"
    return f"the chat template fails ({logged})" if "chat template" in said else logged


def _explain_unloadable(path: Path, reason: str) -> str:
    advice = (
        "Give the backend another `chat_template:`."
        if reason.startswith("the chat template")
        else "Check the file, and that `context` and `slots` fit this machine's memory, or name another "
        "model."
    )
    said = " ".join(reason.split())[:300].rstrip(".")
    return f"llama.cpp (xllamacpp {find_library_version()}) cannot load {path}: {said}. {advice}"
