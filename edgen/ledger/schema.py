"""The ledger's tables, and how a run.db is opened, recognised and refused.

`unit` numbers conversations: scenario * 2**20 + replicate. Nothing is ever updated in `replies`:
what was answered stays answered. `outcomes` and `records` are derived from it and may be made again.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from edgen.errors import EdgenError, RunError, StoppedError

APPLICATION_ID = 0x65646765  # "edge"
VERSION = 2
REPLICATES = 1 << 20

_TABLES = """
CREATE TABLE replies (
    unit INTEGER NOT NULL, step INTEGER NOT NULL, attempt INTEGER NOT NULL,
    key BLOB NOT NULL,              -- sha256 over all that shaped the answer
    finish_reason TEXT NOT NULL, refusal TEXT, model TEXT, simulated INTEGER NOT NULL,
    prompt_tokens INTEGER, completion_tokens INTEGER,
    answered_at REAL NOT NULL,      -- seconds since the epoch
    latency REAL NOT NULL,          -- seconds, of the attempt that succeeded
    tries INTEGER NOT NULL,         -- network attempts
    charged_tokens INTEGER NOT NULL, -- against a budget: as counted, or the most it can have been
    cost_usd REAL,                  -- by the price that the job gave; NULL without one
    text TEXT NOT NULL
);
CREATE UNIQUE INDEX replies_by_call ON replies (unit, step, attempt, key);
CREATE TABLE outcomes (
    unit INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL,      -- of the job that this outcome was made under
    status TEXT NOT NULL, reason TEXT, detail TEXT,
    grp INTEGER NOT NULL,           -- hash of the group that the split keeps together
    reply_key BLOB                  -- the last reply that was read for it
);
CREATE TABLE records (unit INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY,
    started_at REAL NOT NULL, ended_at REAL, pid INTEGER NOT NULL, host TEXT NOT NULL, edgen TEXT NOT NULL,
    made INTEGER NOT NULL DEFAULT 0, replayed INTEGER NOT NULL DEFAULT 0, retried INTEGER NOT NULL DEFAULT 0,
    prompt_tokens INTEGER NOT NULL DEFAULT 0, completion_tokens INTEGER NOT NULL DEFAULT 0,
    cost_usd REAL, state TEXT NOT NULL DEFAULT 'running', message TEXT,
    lost_tokens INTEGER NOT NULL DEFAULT 0, lost_usd REAL NOT NULL DEFAULT 0  -- calls charged, no answer kept
);
CREATE TRIGGER replies_counted AFTER INSERT ON replies BEGIN
    UPDATE sessions SET
        made = made + 1,
        prompt_tokens = prompt_tokens + IFNULL(NEW.prompt_tokens, 0),
        completion_tokens = completion_tokens + IFNULL(NEW.completion_tokens, 0),
        cost_usd = CASE WHEN NEW.cost_usd IS NULL THEN cost_usd ELSE IFNULL(cost_usd, 0) + NEW.cost_usd END
    WHERE id = (SELECT MAX(id) FROM sessions);
END;
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""
# What layout 2 added: see ledger/batches.
_TABLES_2 = """
CREATE TABLE batches (
    id INTEGER PRIMARY KEY, state TEXT NOT NULL, fingerprint TEXT NOT NULL, backend TEXT NOT NULL,
    token TEXT NOT NULL, round INTEGER NOT NULL, requests INTEGER NOT NULL, file TEXT NOT NULL,
    file_id TEXT, remote_id TEXT, made_at REAL NOT NULL, sent_at REAL, message TEXT
);
CREATE TABLE outstanding (
    id INTEGER PRIMARY KEY,
    batch INTEGER,                  -- NULL: a call by itself
    unit INTEGER NOT NULL, step INTEGER NOT NULL, attempt INTEGER NOT NULL, key BLOB NOT NULL,
    tokens INTEGER NOT NULL, usd REAL NOT NULL  -- the most it can take
);
CREATE TABLE returned (  -- requests of batches that came back without a reply
    unit INTEGER NOT NULL, step INTEGER NOT NULL, attempt INTEGER NOT NULL, key BLOB NOT NULL,
    kind TEXT, detail TEXT,         -- the failure, NULL where there is none that counts
    tries INTEGER NOT NULL,         -- failures in a row
    PRIMARY KEY (unit, step, attempt, key)
) WITHOUT ROWID;
CREATE INDEX outstanding_by_call ON outstanding (unit, step, attempt);
CREATE INDEX outstanding_by_batch ON outstanding (batch, id);
"""


def unit_number(scenario: int, replicate: int) -> int:
    """The ledger's number of a conversation, or of a comparison."""
    if not 0 <= replicate < REPLICATES:
        raise ValueError(f"replicate {replicate} does not fit between 0 and {REPLICATES - 1}")
    return scenario * REPLICATES + replicate


def units(first: int, end: int) -> tuple[int, int]:
    """The units between which those of the scenarios first <= index < end lie: no less than the first of the
    two, less than the second."""
    return unit_number(first, 0), unit_number(end, 0)


def connect(
    path: Path, *, create: bool = False, read_only: bool = False, still: bool = False
) -> sqlite3.Connection:
    """A connection to the ledger at `path`. Raises RunError if it is missing, torn or not a ledger.

    `still`: nobody writes to it and its log is empty, so that it is read without a trace beside it. What is opened
    `read_only` is read so where its folder cannot be written: no reader can make its log there either."""
    if not path.exists() and not create:
        raise RunError(f"{path}: there is no ledger here; is this the folder of a run?")
    still = still or (read_only and _is_still(path))
    uri = (
        still_uri(path)
        if still
        else f"{path.resolve().as_uri()}?mode={'ro' if read_only else 'rwc' if create else 'rw'}"
    )
    try:
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=30)
    except sqlite3.Error as problem:
        raise RunError(f"{path}: the ledger cannot be opened ({problem}).") from None
    try:
        _recognise(connection, path, create=create, read_only=read_only or still)
        connection.execute("PRAGMA cache_size = -4096")
    except sqlite3.DatabaseError as problem:
        connection.close()
        raise worded(path, problem) from None
    except BaseException:
        connection.close()
        raise
    return connection


def _is_still(path: Path) -> bool:
    """Whether nothing can be put beside the ledger, and all of it is in its file."""
    log = path.with_name(f"{path.name}-wal")
    return not os.access(path.parent, os.W_OK) and not (log.exists() and log.stat().st_size)


def still_uri(path: Path) -> str:
    """What opens, or attaches, the database at `path` as it is: without a lock, a log or any other file."""
    return f"{path.resolve().as_uri()}?mode=ro&immutable=1"


def _recognise(connection: sqlite3.Connection, path: Path, *, create: bool, read_only: bool) -> None:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    empty = connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0] == 0
    if application == 0 and empty and create:
        connection.executescript(
            f"PRAGMA journal_mode = WAL; BEGIN; {_TABLES}{_TABLES_2}"
            f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION}; COMMIT;"
        )
    elif application != APPLICATION_ID:
        if empty and application == 0:
            raise RunError(
                f"{path}: this ledger is empty. If a run was killed before it began, start it again; if it had "
                "answers, its log (run.db-wal) is missing: restore that beside it, or choose another run folder."
            )
        raise RunError(
            f"{path}: this is not an edgen ledger. Nothing was changed; "
            "move it away or choose another run folder with -o."
        )
    elif version == 1:
        if not read_only:
            connection.executescript(f"BEGIN IMMEDIATE; {_TABLES_2} PRAGMA user_version = {VERSION}; COMMIT;")
    elif version != VERSION:
        raise RunError(
            f"{path}: this ledger has layout {version}, and this edgen reads layout {VERSION}. "
            "Nothing was changed; use the edgen that made it, or another run folder."
        )


def check(connection: sqlite3.Connection, path: Path) -> None:
    """Raise RunError if the file is torn (pages missing or malformed)."""
    try:
        answer = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.DatabaseError as problem:
        raise worded(path, problem) from None
    if answer != "ok":
        raise worded(path, answer)


def worded(path: Path, problem: object) -> EdgenError:
    """What sqlite says about the file at `path`, as a sentence with a way out."""
    if isinstance(problem, EdgenError):
        return problem
    text = str(problem)
    if "disk is full" in text or "disk I/O" in text:
        return StoppedError(
            f"{path}: the ledger cannot be written ({text}). Everything answered before is stored. "
            "Make room on the disk and start the same command again: it goes on where it stopped."
        )
    if "locked" in text:
        return RunError(f"{path}: another program keeps the ledger locked ({text}).")
    if "unable to open" in text or "readonly" in text:
        return RunError(f"{path}: the ledger cannot be opened here ({text}); is the folder writable?")
    return RunError(
        f"{path}: the ledger is damaged or no ledger at all ({problem}). Nothing was changed. "
        f"Restore it from a copy, save what can be read with `sqlite3 {path.name} .recover`, "
        "or choose another run folder with -o."
    )
