"""One piece of work at a time on a run, within this process. Locks of files keep other processes away."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from edgen.core.errors import LockedError

_under_way: set[Path] = set()  # the folders that this process works on


@contextlib.contextmanager
def alone_at(folder: Path) -> Iterator[None]:
    """Mark a run as worked on by this process. Raises LockedError if it is already."""
    place = folder.resolve()
    if place in _under_way:
        raise LockedError(
            f"{folder}: this process works on this run already. Wait for it, or name another folder "
            "(output= in Python, -o on the command line)."
        )
    _under_way.add(place)
    try:
        yield
    finally:
        _under_way.discard(place)
