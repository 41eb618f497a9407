"""Notes on weights, kept in the user's cache folder: digests, and which weights llama.cpp has loaded.

They only save time. A note that is missing, unreadable or unwritable costs a second look.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from edgen.plugin.files import cache_file, write_whole

_MOST = 500  # notes of a kind


class Notes(msgspec.Struct):
    """`digests`: the sha256 of a file by its path, size and time of change. `loaded`: descriptions of weights
    and settings that llama.cpp has loaded."""

    digests: dict[str, str] = {}
    loaded: list[str] = []


def find_digest(path: Path) -> str:
    """Return the sha256 of a file, from the notes if its path, size and time of change are noted. Raises
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
    """Return whether llama.cpp has loaded this before."""
    return what in _read().loaded


def note_loaded(what: str) -> None:
    """Note that llama.cpp has loaded this."""
    notes = _read()
    _write(msgspec.structs.replace(notes, loaded=[*notes.loaded[-_MOST:], what]))


def find_notes_file(environ: Mapping[str, str]) -> Path | None:
    """Return the file of the notes; None if there is no home."""
    return cache_file("weights.json", environ)


def _read() -> Notes:
    try:
        return msgspec.json.decode(_find_place().read_bytes(), type=Notes)
    except (OSError, ValueError):
        return Notes()


def _write(notes: Notes) -> None:
    with contextlib.suppress(OSError):
        _find_place().parent.mkdir(parents=True, exist_ok=True)
        write_whole(_find_place(), msgspec.json.encode(notes), sync=False)


def _find_place() -> Path:
    return find_notes_file(os.environ) or Path(os.devnull)
