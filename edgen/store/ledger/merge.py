# ruff: noqa: S608 - statements contain only this module's own words
"""Merging of ledgers: SQLite copies the rows, so memory does not grow with their number.

Source ledgers and their logs are not changed: a ledger with a non-empty log is copied first. Of duplicates
the best one is kept, or the first of equally good ones. The others are passed to `drop` row by row, so
nothing is lost.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from edgen.core.errors import EdgenError
from edgen.core.kept_files import refuse_links
from edgen.core.values import Status, TaskId
from edgen.core.version import __version__
from edgen.store.ledger.checked_reader import CheckedReader, compute_checksum, read_wall_time
from edgen.store.ledger.facts import MEASURES, PLAN, SIMULATED, put_fact, read_facts
from edgen.store.ledger.opening import (
    check,
    connect,
    decode_fact,
    find_raised_error,
    has_log,
    make_immutable_uri,
    require_files,
)
from edgen.store.ledger.problems import describe_sqlite_error
from edgen.store.ledger.reply_details import TABLE, add_table
from edgen.store.ledger.status import (
    LedgerSession,
    NotedBatch,
    RunPlan,
    RunStatus,
    read_batches,
    read_sessions,
    read_status,
)
from edgen.store.ledger.tally import open_tally

Drop = Callable[[dict[str, Any]], None]

_FEW = 10  # conversations that are listed
# Rank of an outcome: 2 if it is final, 1 if it failed and is retried, 0 if another form of the job made it.
_RANK = "CASE WHEN {0}.fingerprint IS NOT :{1} THEN 0 WHEN {0}.status = 'failed' THEN 1 ELSE 2 END"
_THEIRS, _OURS = _RANK.format("s", "theirs"), _RANK.format("m", "ours")
_BOTH = "src.outcomes s JOIN main.outcomes m ON m.scenario = s.scenario AND m.task = s.task"
_LEFT = _BOTH.replace("JOIN", "LEFT JOIN")
_THEIR_RECORD = "(SELECT data FROM src.records r WHERE r.scenario = s.scenario AND r.task = s.task)"
_OUR_RECORD = "(SELECT data FROM main.records r WHERE r.scenario = s.scenario AND r.task = s.task)"
_SAME = (
    f"({_THEIRS} = {_OURS} AND s.status = m.status AND s.reason IS m.reason AND s.detail IS m.detail "
    f"AND (s.status != 'accepted' OR {_THEIR_RECORD} IS {_OUR_RECORD}))"
)
_CALLS = (
    "src.replies s JOIN main.replies m "
    "ON m.scenario = s.scenario AND m.task = s.task AND m.step = s.step AND m.attempt = s.attempt AND m.key "
    "= s.key"
)
_SAID = "(s.text = m.text AND s.finish_reason = m.finish_reason AND s.refusal IS m.refusal)"
_CALL = "scenario, task, step, attempt, key"
_TABLES = """
CREATE TEMP TABLE taken (scenario, task, PRIMARY KEY (scenario, task));     -- whose outcome is the added ledger's
CREATE TEMP TABLE preferred (scenario, task, PRIMARY KEY (scenario, task)); -- whose replies are
CREATE TEMP TABLE clash (scenario INTEGER PRIMARY KEY); -- whose calls were answered otherwise
CREATE TEMP TABLE several (scenario, task, other INTEGER NOT NULL, PRIMARY KEY (scenario, task));
CREATE TEMP VIEW settled AS SELECT scenario FROM main.outcomes WHERE status != 'failed';
"""
_INTO_SESSIONS = (
    f"INSERT INTO sessions ({', '.join(LedgerSession._fields)}) VALUES "
    f"({','.join('?' * len(LedgerSession._fields))})"
)


class SourceLedger:
    """A ledger to be merged, unchanged. `scratch` is a folder for a copy, if one is needed.

    Raises RunError if it is missing, damaged or not a ledger.
    """

    def __init__(self, path: Path, run: str, scratch: Path) -> None:
        self.path = path
        self.run = run
        self.file = _copy_if_logged(path, scratch)
        try:
            with contextlib.closing(CheckedReader(connect(self.file, still=True), path)) as reader:
                check(reader.connection, path)
                self.status: RunStatus = read_status(reader)
                self.batches: list[NotedBatch] = read_batches(reader)
                self.facts: dict[str, str] = read_facts(reader)
                self.sessions = read_sessions(reader)
                self.logprobs = reader.has_table(TABLE)
                reader.require_all_sound()
        except EdgenError as problem:
            raise type(problem)(str(problem).replace(str(self.file), str(path))) from None

    @property
    def fingerprint(self) -> str:
        """The fingerprint of its present outcomes."""
        return self.status.plan.fingerprint


class MergeDuplicates(msgspec.Struct, frozen=True):
    """Duplicates in several ledgers: conversations settled more than once, by whether they are equal, with
    the first few different ones as (scenario, task), and calls answered more than once."""

    same: int
    other: int
    others: tuple[tuple[int, Any], ...]
    calls: int
    calls_otherwise: int


class MergedLedger(contextlib.AbstractContextManager["MergedLedger"]):
    """A new ledger at `path`, merged from others. Use as a context manager.

    Outcomes that count are stored under `fingerprint`. `branching`: replicates of a scenario share requests,
    so if replies differ, they all come from one ledger. Raises RunError and StoppedError for problems of the
    disk and the ledgers.
    """

    def __init__(self, path: Path, fingerprint: str, drop: Drop, *, branching: bool = False) -> None:
        self._path = path
        self._fingerprint = fingerprint
        self._drop = drop
        self._branching = branching
        self._sessions: list[LedgerSession] = []
        self._lost = [0, 0.0]
        self._calls = [0, 0]
        self._batches = 0
        self._added = 0
        self._inherited: dict[str, str] = {}
        self._measures: list[Any] = []
        self._connection = connect(path, create=True)
        self._connection.executescript(_TABLES)

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def add(self, source: SourceLedger) -> None:
        """Add the content of a ledger."""
        with self._explain_errors(source.path):
            if source.logprobs:
                add_table(CheckedReader(self._connection, self._path))
            self._connection.execute("ATTACH DATABASE ? AS src", (make_immutable_uri(source.file),))
            self._connection.execute("BEGIN")
            self._choose(source)
            self._record_duplicate_outcomes(source)
            self._record_duplicate_replies(source)
            self._copy(source)
            self._connection.execute("COMMIT")
            self._connection.execute("DETACH DATABASE src")

        self._inherit(source)

    def _inherit(self, source: SourceLedger) -> None:
        """Take over facts that hold for anything made of a ledger: a simulator's part, the files of its own
        measures."""
        if source.facts.get(SIMULATED) == source.fingerprint:
            self._inherited[SIMULATED] = self._fingerprint
        files = decode_fact(source.facts.get(MEASURES), list[Any], source.path, "its list of measures")
        self._measures += [file for file in files or () if file not in self._measures]
        if self._measures:
            self._inherited[MEASURES] = msgspec.json.encode(self._measures).decode()

    def _choose(self, source: SourceLedger) -> None:
        """Fill `taken` and `preferred`: the tasks whose outcomes and replies, respectively, come from this
        source."""
        run = self._connection.execute
        for table in ("taken", "preferred", "clash"):
            run(f"DELETE FROM temp.{table}")
        run(
            f"INSERT INTO taken SELECT s.scenario, s.task FROM {_LEFT} WHERE m.scenario IS NULL OR "
            f"{_THEIRS} > {_OURS}",
            self._find_batch_names(source),
        )
        if self._branching:
            run(f"INSERT INTO clash SELECT DISTINCT s.scenario FROM {_CALLS} WHERE NOT {_SAID}")
            run("DELETE FROM taken WHERE scenario IN clash AND scenario IN settled")
            run(
                "INSERT INTO preferred SELECT DISTINCT scenario, task FROM src.replies WHERE scenario IN "
                "clash AND scenario IN (SELECT scenario FROM taken)"
            )
        run("INSERT OR IGNORE INTO preferred SELECT * FROM taken")

    def _record_duplicate_outcomes(self, source: SourceLedger) -> None:
        """Count conversations settled twice; pass dropped ones that differ to `drop`."""
        self._connection.execute(
            f"INSERT INTO several SELECT s.scenario, s.task, NOT {_SAME} FROM {_BOTH} WHERE {_THEIRS} = 2 "
            f"AND {_OURS} = 2 ON CONFLICT (scenario, task) DO UPDATE SET other = MAX(other, excluded.other)",
            self._find_batch_names(source),
        )
        ours = (
            f"SELECT m.*, {_OUR_RECORD} AS record FROM {_BOTH} WHERE (s.scenario, s.task) IN taken AND NOT "
            f"{_SAME}"
        )
        theirs = (
            f"SELECT s.*, {_THEIR_RECORD} AS record FROM {_LEFT} WHERE (s.scenario, s.task) NOT IN taken "
            f"AND NOT (m.scenario IS NOT NULL AND {_SAME})"
        )
        self._pass_to_drop("outcome", source, ours, theirs)

    def _record_duplicate_replies(self, source: SourceLedger) -> None:
        """Count calls answered twice, charge the replies that are dropped, and pass different ones to
        `drop`."""
        preferred = "(s.scenario, s.task) IN preferred"
        otherwise = f"FROM {_CALLS} WHERE NOT {_SAID} AND"
        ours, theirs = f"SELECT m.* {otherwise} {preferred}", f"SELECT s.* {otherwise} NOT {preferred}"
        self._pass_to_drop("reply", source, ours, theirs)
        gone = f"CASE WHEN {preferred} THEN m.{{0}} ELSE s.{{0}} END"
        calls, differ, tokens, usd = self._connection.execute(
            f"SELECT COUNT(*), TOTAL(NOT {_SAID}), TOTAL({gone.format('charged_tokens')}), "
            f"TOTAL({gone.format('cost_usd')}) FROM {_CALLS}"
        ).fetchone()
        self._calls = [self._calls[0] + calls, self._calls[1] + int(differ)]
        self._lost = [self._lost[0] + int(tokens), self._lost[1] + usd]
        if calls:
            self._connection.execute(
                f"DELETE FROM main.replies WHERE rowid IN (SELECT m.rowid FROM {_CALLS} WHERE {preferred})"
            )

    def _copy(self, source: SourceLedger) -> None:
        run = self._connection.execute
        if source.logprobs:  # only for the replies that are copied next
            run(
                f"INSERT OR REPLACE INTO main.logprobs SELECT * FROM src.logprobs WHERE ({_CALL}) NOT IN "
                f"(SELECT {_CALL} FROM main.replies)"
            )
        run("INSERT OR IGNORE INTO main.replies SELECT * FROM src.replies")
        run("DELETE FROM main.records WHERE (scenario, task) IN taken")
        run("INSERT INTO main.records SELECT * FROM src.records WHERE (scenario, task) IN taken")
        run(
            "INSERT OR REPLACE INTO main.outcomes SELECT scenario, task, CASE fingerprint WHEN :theirs THEN "
            ":ours ELSE "
            "fingerprint END, status, reason, detail, grp, reply_key, checksum FROM src.outcomes WHERE "
            "(scenario, task) IN taken",
            self._find_batch_names(source),
        )
        self._sessions += source.sessions
        rest = "scenario, task, step, attempt, key, tokens, usd"
        run(
            f"INSERT INTO main.outstanding (batch, {rest}) "
            f"SELECT NULL, {rest} FROM src.outstanding WHERE batch IS NULL ORDER BY id"
        )
        run("INSERT OR IGNORE INTO main.returned SELECT * FROM src.returned")
        self._copy_batches(source)

    def _copy_batches(self, source: SourceLedger) -> None:
        """Copy the batches and the folder of their files. The new folder is named after the ledger's
        position. Files elsewhere belong to the user and are not copied."""
        self._added += 1
        theirs = source.path.with_name(f"{source.path.stem}.batches")
        ours = self._path.with_name(f"{self._path.stem}.batches") / str(self._added)
        refuse_links(theirs.parent, [theirs.name])
        if theirs.is_dir():
            shutil.copytree(theirs, ours, ignore=shutil.ignore_patterns(".*"))
        for batch in source.batches:
            self._batches += 1
            file = source.path.parent / batch.file
            if file.is_relative_to(theirs):
                place = str((ours / file.relative_to(theirs)).relative_to(self._path.parent))
                batch = msgspec.structs.replace(batch, file=place)
            row = msgspec.structs.astuple(msgspec.structs.replace(batch, number=self._batches))
            self._connection.execute(f"INSERT INTO main.batches VALUES ({','.join('?' * len(row))})", row)

    def reject(self, units: Iterable[tuple[int, TaskId, str, str]]) -> None:
        """Reject these accepted conversations, each with a reason and a detail, and delete their records."""
        with self._change_in_transaction():
            for *unit, reason, detail in units:
                self._change(*unit, status=Status.REJECTED, reason=reason, detail=detail)
                self._connection.execute("DELETE FROM records WHERE scenario = ? AND task = ?", unit)

    def regroup(self, units: Iterable[tuple[int, TaskId, int]]) -> None:
        """Move these conversations to other groups of the split."""
        with self._change_in_transaction():
            for scenario, task, group in units:
                self._change(scenario, task, grp=group)

    @contextlib.contextmanager
    def _change_in_transaction(self) -> Iterator[None]:
        with self._explain_errors(self._path):
            self._connection.execute("BEGIN")
            yield
            self._connection.execute("COMMIT")

    def _change(self, scenario: Any, task: Any, **changes: Any) -> None:
        """Change columns of an outcome, with a new checksum."""
        facts = "status, reason, detail, grp, reply_key"
        where = "WHERE scenario = ? AND task = ?"
        found = self._connection.execute(f"SELECT {facts} FROM outcomes {where}", (scenario, task)).fetchone()
        now = dict(zip(facts.split(", "), found, strict=True)) | changes
        self._connection.execute(
            f"UPDATE outcomes SET ({facts}, checksum) = (?, ?, ?, ?, ?, ?) {where}",
            (*now.values(), compute_checksum(scenario, task, *now.values()), scenario, task),
        )

    def count_duplicates(self) -> MergeDuplicates:
        """Return the duplicates among the merged ledgers."""
        run = self._connection.execute
        same, other = run("SELECT TOTAL(NOT other), TOTAL(other) FROM several").fetchone()
        first = run("SELECT scenario, task FROM several WHERE other ORDER BY scenario, task LIMIT ?", (_FEW,))
        return MergeDuplicates(int(same), int(other), tuple(first), *self._calls)

    def count_settled(self) -> int:
        """Return the number of outcomes that count."""
        count = "SELECT COUNT(*) FROM main.outcomes WHERE fingerprint = ?"
        return int(self._connection.execute(count, (self._fingerprint,)).fetchone()[0])

    def close(
        self, plan: RunPlan, facts: Mapping[str, str], message: Callable[[RunStatus], str | None]
    ) -> RunStatus:
        """Store the plan, every session in order, and this merge as the last session, with the charges of
        dropped replies. `message` describes what a status lacks. Return the status."""
        run, many = self._connection.execute, self._connection.executemany
        with self._explain_errors(self._path):
            run("BEGIN")
            meta = {**self._inherited, **facts, PLAN: msgspec.json.encode(plan).decode()}
            for name, value in meta.items():
                for sql, values in put_fact(name, value):
                    run(sql, values)
            self._sessions.sort(key=lambda session: session.started_at)
            many(_INTO_SESSIONS, self._sessions)
            run("COMMIT")
            reader = CheckedReader(self._connection, self._path)
            status = msgspec.structs.replace(read_status(reader), session_state="complete")
            now, state = read_wall_time(), status.find_state(held=False)
            here = (os.getpid(), socket.gethostname(), __version__)
            run(
                _INTO_SESSIONS,
                (now, now, *here, 0, 0, 0, 0, 0, 0, 0, None, state, message(status), *self._lost),
            )
            open_tally(reader)
            return read_status(reader)

    def _pass_to_drop(self, kind: str, source: SourceLedger, ours: str, theirs: str) -> None:
        """Pass the dropped rows of two queries to `drop`: rows merged earlier, and rows of the present
        ledger."""
        for sql, run in ((ours, None), (theirs, source.run)):
            rows = self._connection.execute(sql, self._find_batch_names(source))
            columns = [column[0] for column in rows.description]
            for row in rows:
                facts: dict[str, Any] = dict(zip(columns, row, strict=True))
                del facts["checksum"]
                told = {name: _convert_to_json(name, value) for name, value in facts.items()}
                self._drop({"kind": kind, "run": run, **told})

    def _find_batch_names(self, source: SourceLedger) -> dict[str, str]:
        return {"theirs": source.fingerprint, "ours": self._fingerprint}

    @contextlib.contextmanager
    def _explain_errors(self, path: Path) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OverflowError) as problem:
            full = "disk" in str(problem)
            raise find_raised_error(self._connection, self._path if full else path, problem) from None


def _convert_to_json(column: str, value: Any) -> Any:
    """Return a column's value for JSON: records are JSON already, keys become hex digits."""
    if not isinstance(value, bytes):
        return value
    return msgspec.Raw(value) if column == "record" else value.hex()


def _copy_if_logged(path: Path, scratch: Path) -> Path:
    """Return a path from which the ledger can be read without changing it: itself, or a copy in `scratch` if
    its log is not empty. No process may write to it meanwhile."""
    require_files(path)
    if not has_log(path):
        return path
    copy = scratch / f"{sum(1 for _ in scratch.iterdir())}.db"
    for suffix in ("", "-wal"):
        shutil.copyfile(f"{path}{suffix}", f"{copy}{suffix}")
    try:
        with contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.DatabaseError as problem:
        raise describe_sqlite_error(path, problem) from None
    return copy
