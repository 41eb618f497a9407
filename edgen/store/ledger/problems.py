"""Sentences about ledgers that cannot be used: errors of SQLite, and damaged contents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from edgen.core.errors import DamagedError, EdgenError, RunError, StoppedError
from edgen.core.values import Address


def describe_sqlite_error(path: Path, problem: object) -> EdgenError:
    """Explain SQLite's error about the file at `path`, with a remedy."""
    if isinstance(problem, EdgenError):
        return problem
    text = str(problem)
    if "disk is full" in text or "disk I/O" in text:
        return StoppedError(
            f"{path}: the ledger cannot be written ({text}). All earlier answers are stored. "
            "Free some space on the disk and run the same command again to resume."
        )
    if "locked" in text:
        return RunError(f"{path}: another program keeps the ledger locked ({text}).")
    if "unable to open" in text or "readonly" in text:
        return RunError(f"{path}: the ledger cannot be opened here ({text}); is the folder writable?")
    return make_damaged_error(path, " ".join(text.removeprefix("*** in database main ***").split()))


def make_empty_error(path: Path) -> RunError:
    """Return the error for an empty ledger file at `path`."""
    return RunError(
        f"{path}: this ledger is empty. If a run was killed before it began, start it again; if it had "
        f"answers, its log ({path.name}-wal) is missing: restore it next to the ledger, or use another run "
        "folder."
    )


def make_damaged_error(path: Path, what: str) -> DamagedError:
    """Return the error for unexpected content in the ledger at `path`."""
    return DamagedError(
        f"{path}: the ledger is damaged or no ledger at all ({what}). Nothing was changed. "
        f"Restore it from a copy, save what can be read with `sqlite3 {path.name} .recover`, "
        "or use another run folder."
    )


def make_reply_error(path: Path, address: Address) -> DamagedError:
    """Return the error for a stored answer of the ledger at `path` whose checksum does not match."""
    scenario, task, step, attempt = msgspec.structs.astuple(address)
    name = f"CAST(x'{task.encode().hex()}' AS TEXT)" if isinstance(task, str) else task
    forget = (
        f"DELETE FROM replies WHERE scenario = {scenario} AND task = {name} "  # noqa: S608 - numbers, and hex digits
        f"AND step = {step} AND attempt = {attempt}"
    )
    return DamagedError(
        f"{path}: the stored answer to scenario {scenario} (task {task}, step {step}, attempt "
        f"{attempt}) is damaged: its checksum does not fit. It was paid for, so edgen does not "
        "replace it automatically. Restore the ledger from a copy; or give this answer up, and the "
        f'call is made again: sqlite3 {path} "{forget}"'
    )


def make_outcome_error(path: Path, scenario: Any, task: Any) -> DamagedError:
    """Return the error for an outcome, or its record, whose checksum does not match."""
    return DamagedError(
        f"{path}: the outcome of scenario {scenario} (task {task}) is damaged: its checksum does "
        "not fit. Start the command that made this ledger again (`edgen generate`, or `edgen "
        "pairs` for a judge's): it is made again from the stored answers, without a call."
    )
