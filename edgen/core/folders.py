"""Everything in a folder, at any depth, looked at without following links."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator
from pathlib import Path

from edgen.core.errors import RunError
from edgen.core.files import target_name

_LINK = (
    "a link, which could lead anywhere",
    "Put what it leads to in its place, or remove it.",
)
_DEVICE = ("a pipe, a device or a socket, not a file", "Remove it.")


def refuse_links(folder: Path, names: Collection[str] | None = None) -> None:
    """Raise RunError if `folder` contains, at any depth, anything but regular files and folders; `names`:
    check only these names in it. The folder's own path, which the user gave, may be a link."""
    for entry in _walk(folder, names):
        if not (entry.is_dir(follow_symlinks=False) or entry.is_file(follow_symlinks=False)):
            what, hint = _LINK if entry.is_symlink() else _DEVICE
            raise RunError(f"{entry.path}: this is {what}. Nothing was read or changed. {hint}")


def sweep(folder: Path, names: Collection[str]) -> None:
    """Remove the temporary files of killed processes for these names in a folder, and in the folders of these
    names. The caller holds a lock that keeps others from writing there."""
    for entry in _walk(folder, names):
        if target_name(entry.name) is not None and not entry.is_dir(follow_symlinks=False):
            with contextlib.suppress(OSError):
                Path(entry.path).unlink()


def _walk(folder: Path, names: Collection[str] | None) -> Iterator[os.DirEntry[str]]:
    """Yield everything in a folder, at any depth, without following links. `names`: only below these names in
    it, and temporary names for them."""
    waiting = [folder]
    while waiting:
        place = waiting.pop()
        try:
            with os.scandir(place) as entries:
                found = list(entries)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as problem:
            raise RunError(f"{place}: it cannot be read ({problem.strerror}).") from None
        for entry in found:
            if place is folder and names is not None and (target_name(entry.name) or entry.name) not in names:
                continue
            yield entry
            if entry.is_dir(follow_symlinks=False):
                waiting.append(Path(entry.path))
