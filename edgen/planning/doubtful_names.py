"""Ambiguous names in a job: a shipped file, and the user's own of that name.

A bare name always means the shipped file. A user with a file of that name next to the job, in the current
folder, or in a folder there with the shipped folder's name may have meant that.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from edgen.core import resources

# Text in a file of each kind, so that a job with the name of its space is not mistaken for a space.
_MARKS = {
    "preference_space": re.compile(r"^(?:dimensions|topics)\s*:", re.MULTILINE),
    "label_sets": re.compile(r"^labels\s*:", re.MULTILINE),
}
_MOST = 65_536  # characters of a file that are examined


def describe_doubt(kind: resources.Folder, name: str, key: str, base: Path) -> str | None:
    """Return a sentence if `name`, under a job's key `key`, is ambiguous; None if not. `base`: the folder of
    the job's relative names."""
    shipped = resources.find(kind, name, base)
    if not resources.is_shipped(kind, shipped) or not shipped.exists():
        return None
    for path in _candidates(kind, shipped.name, base):
        if _is_another(kind, path, shipped):
            own = os.path.relpath(path, base)
            own = own if own.startswith("..") else f"./{own}"
            return (
                f"`{key}: {name}` means the shipped file, not {path}; to use that one, write `{key}: {own}`"
            )
    return None


def _candidates(kind: resources.Folder, file: str, base: Path) -> Iterator[Path]:
    for folder in dict.fromkeys((base, Path())):
        yield from (folder / file, folder / kind / file)


def _is_another(kind: resources.Folder, path: Path, shipped: Path) -> bool:
    """Return whether a path is a file (or a machine's folder) of this kind with other contents than the
    shipped one."""
    try:
        if shipped.is_dir():
            return path.is_dir() and any(path.glob("*.y*ml")) and not path.samefile(shipped)
        if not path.is_file() or path.samefile(shipped):
            return False
        with path.open(encoding="utf-8", errors="replace") as file:
            text = file.read(_MOST)
    except OSError:
        return False
    mark = _MARKS.get(kind)
    return (mark is None or mark.search(text) is not None) and text != shipped.read_text(encoding="utf-8")[
        :_MOST
    ]
