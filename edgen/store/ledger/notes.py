"""Checks of the notes in a ledger whose process was killed: its sessions and batches.

A ledger at rest is covered by its seal. In one without a seal, a session's beginning has noted a checksum of
all earlier sessions, which change no more, and of what is fixed of its own; its sums must equal those of the
replies stored since. Each note of a batch has a checksum. An older edgen noted neither, and nothing is
checked then.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from zlib import crc32

import msgspec

from edgen.store.ledger.checked_reader import CheckedReader, Natural
from edgen.store.ledger.facts import CHECKSUM, put_fact, read_fact
from edgen.store.ledger.opening import decode_fact
from edgen.store.ledger.schema import PICO, total, total_pico
from edgen.store.ledger.writer import COUNT, Statement

_BEGUN = "sessions"  # the fact's name
_BATCH = "batch "  # and its number
_EARLIER = "SELECT * FROM sessions WHERE id < ? ORDER BY id"
_OWN = "SELECT id, started_at, pid, host, edgen FROM sessions WHERE id = ?"
_SUMMED = ("prompt_tokens", "completion_tokens", "cache_read_tokens", "cache_write_tokens")
_STORED = (
    f"SELECT COUNT(*), {', '.join(total(name) for name in _SUMMED)}, {total_pico('cost_usd')} "  # noqa: S608 - ours
    "FROM replies WHERE rowid > ?"
)
_NOTED = (
    f"SELECT made, {', '.join(_SUMMED)}, IFNULL(CAST(ROUND(cost_usd * {PICO:g}) AS INTEGER), 0), "  # noqa: S608 - ours
    "(state = 'running') = (ended_at IS NULL) FROM sessions WHERE id = ?"
)
_ROUNDED = 1e-6  # of the sum of costs, which are added one by one
_FORGET = (
    f"DELETE FROM meta WHERE name IN (SELECT ? || '{_BATCH}' || id FROM batches WHERE state = 'preparing')"  # noqa: S608 - ours
)


class _Begun(msgspec.Struct, frozen=True):
    """The ledger at the beginning of a session: the session's number, the last reply, and the checksum."""

    session: Natural
    replies: Natural
    checksum: Natural


def note_beginning(book: CheckedReader, session: int) -> tuple[Statement, ...]:
    """Return the statements that note the beginning of a session, which is in the ledger."""
    last = book.one(COUNT, tuple[Natural])[0]
    begun = _Begun(session, last, _sum_up(book, session))
    return put_fact(_BEGUN, msgspec.json.encode(begun).decode())


def note_batch(row: tuple[Any, ...]) -> tuple[Statement, ...]:
    """Return the statements that note the checksum of a batch's row."""
    return put_fact(f"{_BATCH}{row[0]}", str(_checksum(row)))


def forget_preparing() -> tuple[Statement, ...]:
    """Return the statements that remove the notes about batches in preparation."""
    return (_FORGET, ("",)), (_FORGET, (CHECKSUM,))


def find_changed_notes(book: CheckedReader) -> Iterator[str]:
    """Yield the tables, of `sessions` and `batches`, that are not as they were noted."""
    begun = decode_fact(read_fact(book, _BEGUN), _Begun, book.path, "the beginning of its session")
    if begun is not None and not _is_sound(book, begun):
        yield "sessions"
    if _has_changed_batches(book):
        yield "batches"


def _is_sound(book: CheckedReader, begun: _Begun) -> bool:
    if _sum_up(book, begun.session) != begun.checksum:
        return False
    if book.one("SELECT MAX(id) FROM sessions", tuple[Natural])[0] > begun.session:  # by an older edgen
        return True
    with book.explain_errors(), book.lenient_text():
        own = book.connection.execute(_NOTED, (begun.session,)).fetchone()
        *stored, paid = book.connection.execute(_STORED, (begun.replies,)).fetchone()
    if own is None:
        return False
    *noted, cost, is_consistent = own
    near = isinstance(cost, int) and abs(cost - paid) <= 1 + _ROUNDED * paid
    return noted == stored and near and bool(is_consistent)


def _has_changed_batches(book: CheckedReader) -> bool:
    like = f"SELECT name, value FROM meta WHERE name LIKE '{_BATCH}%'"  # noqa: S608 - ours
    noted = dict(book.rows(like, tuple[str, str]))
    if not noted:
        return False
    with book.explain_errors(), book.lenient_text():
        rows = {f"{_BATCH}{row[0]}": row for row in book.connection.execute("SELECT * FROM batches")}
    # Batches of an older edgen come first, and have no note.
    first = min(int(name.removeprefix(_BATCH)) if name[len(_BATCH) :].isdecimal() else 0 for name in noted)
    new = {name: str(_checksum(row)) for name, row in rows.items() if row[0] >= first}
    return new != noted


def _sum_up(book: CheckedReader, session: int) -> int:
    checksum = 0
    with book.explain_errors(), book.lenient_text():
        for sql in (_EARLIER, _OWN):
            for row in book.connection.execute(sql, (session,)):
                checksum = crc32(ascii(row).encode(), checksum)
    return checksum


def _checksum(row: tuple[Any, ...]) -> int:
    return crc32(ascii(tuple(row)).encode())
