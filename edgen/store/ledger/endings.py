"""Notes of sessions besides their rows: the reason why the last one ended, retries by reason, and timeouts.

All are facts of the ledger, so its tables stay unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from edgen.store.ledger.opening import decode_fact

if TYPE_CHECKING:
    from edgen.store.ledger import Ledger

END, RETRIES, TIMEOUTS = "end", "retries", "timeouts"  # the facts' names


class _End(msgspec.Struct, frozen=True):
    """The reason why a session ended, in one word."""

    session: int
    reason: str


def note_end(ledger: Ledger, session: int, reason: str) -> None:
    """Queue the reason why a session ended early."""
    ledger.set_fact(END, msgspec.json.encode(_End(session, reason)).decode())


def read_end(noted: str | None, session: int, path: Path) -> str | None:
    """Return why a session ended; None if it noted nothing, as after a kill."""
    end = decode_fact(noted, _End, path, "why it ended")
    return end.reason if end is not None and end.session == session else None


def note_retries(ledger: Ledger, counts: Mapping[str, int]) -> None:
    """Queue the total number of retries, by reason."""
    ledger.set_fact(RETRIES, msgspec.json.encode(dict(sorted(counts.items()))).decode())


def read_retries(noted: str | None, path: Path) -> dict[str, int]:
    """Return the total number of retries, by reason."""
    return decode_fact(noted, dict[str, int], path, "its retries") or {}


def note_timeouts(ledger: Ledger, count: int) -> None:
    """Queue the total number of attempts that got no answer in time."""
    ledger.set_fact(TIMEOUTS, str(count))


def read_timeouts(noted: str | None, path: Path) -> int:
    """Return the total number of attempts that got no answer in time."""
    return decode_fact(noted, int, path, "its timeouts") or 0
