"""The user's cache folder, for notes that only save time."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path


def cache_file(name: str, environ: Mapping[str, str]) -> Path | None:
    """Return the file of that name in the user's cache folder, by XDG's rules; None if there is no home."""
    folder = environ.get("XDG_CACHE_HOME", "")
    if Path(folder).is_absolute():  # ignore relative paths
        return Path(folder) / "edgen" / name
    with contextlib.suppress(RuntimeError):
        return Path.home() / ".cache" / "edgen" / name
    return None
