"""Checks of a ledger's notes on batches, since a ledger may come from somebody else.

A batch's files must be in the folder of this ledger's batches, reached without links. Values used in a
provider's URLs must be ids, not paths. The backend must be one of the job's. Anything else stops the run
before it reads, sends or writes.
"""

from __future__ import annotations

import stat
from collections.abc import Collection, Iterable
from pathlib import Path, PurePosixPath

from edgen.core.errors import DamagedError
from edgen.providers.batches import is_id
from edgen.store.ledger import NotedBatch

_LONGEST = 200  # maximum characters of a token


def find_batch_folder(ledger: Path) -> Path:
    """Return the folder of a ledger's batch files, next to it."""
    return ledger.with_name(f"{ledger.stem}.batches")


def find_batch_file(ledger: Path, name: str) -> Path:
    """Return the path of a batch's file, which may be missing. `name`: as noted in the ledger. Raises
    DamagedError if it is outside the folder, a link, or of the wrong type."""
    folder, place = find_batch_folder(ledger), PurePosixPath(name)
    parts = place.parts
    if len(parts) < 2 or parts[0] != folder.name or ".." in parts or not name.isprintable():
        raise _make_strange_error(
            ledger, f"it names {name[:200]!r} as a file of a batch, and those are in {folder}"
        )
    path = ledger.parent
    for number, part in enumerate(parts, 1):
        path = path / part
        try:
            found = path.lstat()
        except FileNotFoundError:
            continue
        except OSError as problem:
            raise _make_strange_error(ledger, f"{path} cannot be read ({problem.strerror})") from None
        if stat.S_ISLNK(found.st_mode):
            raise _make_strange_error(ledger, f"{path} is a link, which could lead anywhere")
        if not (stat.S_ISREG if number == len(parts) else stat.S_ISDIR)(found.st_mode):
            raise _make_strange_error(
                ledger, f"{path} is not a {'file' if number == len(parts) else 'folder'}"
            )
    return path


def require_own(ledger: Path, batches: Iterable[NotedBatch], backends: Collection[str]) -> None:
    """Raise DamagedError unless these batches can be resumed."""
    for batch in batches:
        require_backend(ledger, batch, backends)
        if batch.state not in ("written", "preparing"):  # in a user's folder, or unnamed
            find_batch_file(ledger, batch.file)
        for what, name in (("file", batch.file_id), ("batch", batch.remote_id)):
            if name is not None and not is_id(name):
                raise _make_strange_error(ledger, f"it holds {name[:80]!r} as a provider's id of a {what}")
        if not (batch.token.isprintable() and len(batch.token) <= _LONGEST and "/" not in batch.token):
            raise _make_strange_error(ledger, f"it holds {batch.token[:80]!r} as the name of a batch")


def require_backend(ledger: Path, batch: NotedBatch, backends: Collection[str]) -> None:
    """Raise DamagedError unless a batch belongs to one of these backends."""
    if batch.backend not in backends:
        raise _make_strange_error(
            ledger,
            f"batch {batch.number} is of a backend {batch.backend[:80]!r}, which the job does not have",
        )


def _make_strange_error(ledger: Path, what: str) -> DamagedError:
    return DamagedError(
        f"{ledger}: another program has changed the batches of this run: {what}. Nothing was "
        "read, sent or written. Restore the run from a copy, or use another run folder."
    )
