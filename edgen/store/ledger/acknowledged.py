"""Number of replies confirmed on disk, noted next to a ledger in `<ledger>-acked`.

SQLite silently ignores the rest of a truncated log (`-wal`), so replies stored there are lost. The writer
notes the number of replies after each commit, so the next start detects the loss. The note is written in
place without waiting: after a power failure its number may be too small, never too large.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from zlib import crc32

from edgen.core import system
from edgen.core.files import read_regular

ACKNOWLEDGED = "-acked"  # suffix of the note next to a ledger
COUNT = "SELECT IFNULL(MAX(rowid), 0) FROM replies"  # rows are never deleted from replies


def read_acknowledged(ledger: Path) -> int:
    """Return the number noted for a ledger; 0 if the note is missing or invalid."""
    return _read(ledger) or 0


def has_acknowledgement(ledger: Path) -> bool:
    """Return whether there is a valid note for a ledger."""
    return _read(ledger) is not None


def _read(ledger: Path) -> int | None:
    try:
        number, checksum = read_regular(_place(ledger), 100).split()
        return int(number) if int(checksum, 16) == crc32(number) else None
    except (OSError, ValueError):
        return None


def lost_replies_sentence(ledger: Path, count: int) -> str:
    """Say that a ledger has lost replies, and what follows."""
    many = f"{count:,} answers that were stored are" if count > 1 else "an answer that was stored is"
    again = "They are asked for and paid for again" if count > 1 else "It is asked for and paid for again"
    return (
        f"{ledger}: {many} missing from this ledger: it or its log ({ledger.name}-wal) was cut or removed, or the ledger is an "
        f"older copy. {again}, unless both files are restored first."
    )


class Acknowledgement:
    """The note of an open ledger. If the disk cannot store it, the ledger has no note."""

    def __init__(self, ledger: Path) -> None:
        self._noted = -1
        self._file: int | None = None
        with contextlib.suppress(OSError):
            number = system.open_as_it_is(_place(ledger), os.O_WRONLY | os.O_CREAT)
            found = os.fstat(number)
            # Do not write to links and special files.
            if stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
                self._file = number
            else:
                os.close(number)

    def note(self, count: int) -> None:
        """Note that this many replies are on disk."""
        if self._file is None or count == self._noted:
            return
        number = b"%019d" % count
        with contextlib.suppress(OSError):
            os.write(self._file, b"%b %08x\n" % (number, crc32(number)))
            os.lseek(self._file, 0, os.SEEK_SET)
            self._noted = count

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _place(ledger: Path) -> Path:
    return ledger.with_name(ledger.name + ACKNOWLEDGED)
