"""A cache in the user's cache folder: digests of weights, and the weights that llama.cpp has loaded.

It only saves time. A missing, unreadable or unwritable entry costs a second look.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

import msgspec

from edgen.plugin.files import cache_file, write_whole

_MOST = 500  # entries of a kind


class Notes(msgspec.Struct):
    """The cache's content. `digests`: the sha256 of a file by its path, size and time of change. `loaded`:
    descriptions of weights and settings that llama.cpp has loaded."""

    digests: dict[str, str] = {}
    loaded: list[str] = []


def find_digest(path: Path) -> str:
    """Return the sha256 of a file, from the cache if path, size and time of change are equal. Raises
    OSError."""
    found = path.stat()
    key = f"{found.st_size} {found.st_mtime_ns} {path.resolve()}"
    if (known := _read().digests.get(key)) is not None:
        return known
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    notes = _read()
    kept = [*notes.digests.items()][-_MOST:]
    _write(msgspec.structs.replace(notes, digests={**dict(kept), key: digest}))
    return digest


def was_loaded(what: str) -> bool:
    """Return whether llama.cpp has loaded the described weights before."""
    return what in _read().loaded


def note_loaded(what: str) -> None:
    """Record that llama.cpp has loaded the described weights."""
    notes = _read()
    _write(msgspec.structs.replace(notes, loaded=[*notes.loaded[-_MOST:], what]))


def _read() -> Notes:
    try:
        return msgspec.json.decode(find_notes_file().read_bytes(), type=Notes)
    except (OSError, ValueError):
        return Notes()


def _write(notes: Notes) -> None:
    with contextlib.suppress(OSError):
        find_notes_file().parent.mkdir(parents=True, exist_ok=True)
        write_whole(find_notes_file(), msgspec.json.encode(notes), sync=False)


def find_notes_file() -> Path:
    """Return the cache's file; /dev/null without a home folder."""
    return cache_file("weights.json", os.environ) or Path(os.devnull)
