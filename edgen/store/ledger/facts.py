"""Facts about a run: texts by name, each with a checksum in a separate row.

The checksum of a fact is a row of the same table, so the layout of a ledger is unchanged. A fact of an older
edgen has no checksum and is accepted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from zlib import crc32

from edgen.core.errors import DamagedError
from edgen.store.ledger.checked_reader import CheckedReader
from edgen.store.ledger.selection import SELECTION
from edgen.store.ledger.writer import Statement

LOST = "lost_replies"
PLAN = "plan"
OWNER = "budget owner"  # by which a shared budget knows the ledger
MEASURES = "measures"  # JSON: the files of the job's own measures
SIMULATED = "simulated"  # the fingerprint of what a simulator had a part in
_CHECKSUM = "crc32 of "  # and the fact's name
_PUT = "INSERT OR REPLACE INTO meta VALUES (?,?)"
_ALL = "SELECT name, value FROM meta"
_LASTING = (PLAN, SIMULATED, SELECTION, LOST, OWNER)  # nothing else of the run says this


def put_fact(name: str, value: str) -> tuple[Statement, Statement]:
    """Return the statements that store a fact and its checksum."""
    return (_PUT, (name, value)), (_PUT, (_CHECKSUM + name, _checksum(value)))


def read_fact(book: CheckedReader, name: str) -> str | None:
    """Return a fact about the run, None if not noted yet. Raises DamagedError unless its checksum matches."""
    rows = dict(book.rows(f"{_ALL} WHERE name IN (?, ?)", tuple[str, str], (name, _CHECKSUM + name)))
    if not _is_sound(rows, name):
        raise _damaged(book, name)
    return rows.get(name)


def read_facts(book: CheckedReader) -> dict[str, str]:
    """Return all facts about the run by their names. Raises DamagedError unless their checksums fit."""
    rows = dict(book.rows(_ALL, tuple[str, str]))
    facts = {name: value for name, value in rows.items() if not name.startswith(_CHECKSUM)}
    for name in facts:
        if not _is_sound(rows, name):
            raise _damaged(book, name)
    return facts


def find_damaged_facts(book: CheckedReader) -> Iterator[DamagedError]:
    """Yield an error for each fact whose checksum does not fit."""
    rows = _read_leniently(book)
    return (_damaged(book, name) for name in rows if not _is_sound(rows, name))


def drop_damaged_facts(book: CheckedReader) -> int:
    """Remove the damaged facts that the next session notes again; return how many."""
    rows = _read_leniently(book)
    gone = [
        name for name in rows if not _is_sound(rows, name) and not _is_lasting(name) and name.isprintable()
    ]
    for name in gone:
        book.write("DELETE FROM meta WHERE name IN (?, ?)", (name, _CHECKSUM + name))
    return len(gone)


def _read_leniently(book: CheckedReader) -> dict[str, Any]:
    """Return all rows, also texts that are no UTF-8 any more and values that are no texts."""
    with book.explain_errors(), book.lenient_text():
        return {name: value for name, value in book.connection.execute(_ALL) if isinstance(name, str)}


def _is_lasting(name: str) -> bool:
    return name in _LASTING or name.startswith("end of round ")


def _is_sound(rows: Mapping[str, Any], name: str) -> bool:
    noted = rows.get(_CHECKSUM + name)
    return noted is None or name not in rows or noted == _checksum(rows[name])


def _checksum(value: Any) -> str:
    return str(crc32(value.encode("utf-8", "surrogateescape"))) if isinstance(value, str) else ""


def _damaged(book: CheckedReader, name: str) -> DamagedError:
    repair = (
        "Restore the ledger from a copy: nothing else in the run says it."
        if _is_lasting(name)
        else "Start the command that made this ledger again (`edgen generate`): it notes it anew, without a call."
    )
    return DamagedError(
        f"{book.path}: the note {name!r} in this ledger is damaged: its checksum does not fit. {repair}"
    )
