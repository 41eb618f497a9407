"""Reader of a ledger that checks each value and explains each error.

Raises DamagedError for a row that edgen would not have written, and EdgenError for SQLite's errors.

Rows of tables are named tuples, whose field types state the allowed values. Checksums cover each row.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar
from zlib import crc32

import msgspec
from msgspec import Meta

from edgen.core.values import Address, FinishReason, Reply, Status, TaskId, Usage
from edgen.store.ledger.opening import LedgerConnection, connect, find_raised_error, run_when_free
from edgen.store.ledger.problems import make_damaged_error, make_outcome_error, make_reply_error

# Seconds since the epoch that Python supports in every calendar and time zone: from year 1 to 9999, without
# two days at each end.
EARLIEST = -62_135_596_800.0 + 2 * 86_400
LATEST = 253_402_300_799.0 - 2 * 86_400

Row = TypeVar("Row")
Natural = Annotated[int, Meta(ge=0)]
Amount = Annotated[float, Meta(ge=0.0, le=1e18)]  # seconds, US dollars: finite
Moment = Annotated[float, Meta(ge=EARLIEST, le=LATEST)]  # seconds since the epoch
Task = Natural | Annotated[str, Meta(min_length=1)]

_LOW = 2**32 - 1  # the bits of the checksum of the answer itself
_encode = msgspec.msgpack.Encoder().encode
_any_json = msgspec.json.Decoder(msgspec.Raw).decode


def read_wall_time() -> float:
    """Return the seconds since the epoch, limited to valid moments: a machine without a clock battery may
    report 1970."""
    return min(max(time.time(), EARLIEST), LATEST)


class ReplyRow(NamedTuple):
    """A reply, in the columns of REPLIES."""

    scenario: Natural  # index of its scenario
    task: Task  # its task in the scenario
    step: Natural  # its step in the task
    attempt: Natural  # its attempt, from 0
    key: bytes  # digest of everything that shapes the answer
    finish_reason: FinishReason  # as in Reply
    refusal: str | None  # as in Reply
    model: str | None  # as the service names it
    simulated: Natural  # 1 if no model wrote it
    prompt_tokens: Natural | None  # None if not counted, as the next three
    completion_tokens: Natural | None  # tokens of the answer
    cache_read_tokens: Natural | None  # part of the prompt's tokens
    cache_write_tokens: Natural | None  # part of the prompt's tokens
    text: str  # raw text
    checksum: Natural  # checksum of the other columns

    @property
    def is_sound(self) -> bool:
        return compute_checksum(*self[:-1]) == self.checksum & _LOW


class CostRow(NamedTuple):
    """The time and the cost of a reply, in the columns of COSTS."""

    scenario: Natural  # index of the reply's scenario
    task: Task  # the reply's task in the scenario
    answered_at: float  # seconds since the epoch
    latency: float  # seconds of the answered attempt
    tries: int  # network attempts
    charged_tokens: int  # as counted by the service, or the maximum
    cost_usd: float | None  # US dollars; None without a price
    checksum: Natural  # checksum of the other columns

    @property
    def is_sound(self) -> bool:
        """True if the columns are unchanged, or were stored before this checksum existed."""
        noted = self.checksum & ~_LOW
        return not noted or noted == compute_cost_checksum(*self[2:-1])


class OutcomeRow(NamedTuple):
    """An outcome in the columns of OUTCOMES, with its record if selected and present."""

    scenario: Natural  # index of the scenario
    task: Task  # a task of the scenario
    status: Status  # accepted, rejected or failed
    reason: str | None  # None if accepted
    detail: str | None  # explanation of the reason, for people
    grp: Natural  # the split's group hash
    reply_key: bytes | None  # key of the last reply; None without one
    checksum: Natural  # checksum of the other columns
    data: bytes | None = None  # the record's bytes
    record_checksum: Natural | None = None  # checksum of the record's row

    @property
    def is_sound(self) -> bool:
        """True if the outcome's own checksum matches."""
        return compute_checksum(*self[:7]) == self.checksum

    @property
    def has_sound_record(self) -> bool:
        """True if there is a JSON record with a matching checksum."""
        if self.data is None or hash_record(self.scenario, self.task, self.data) != self.record_checksum:
            return False
        try:
            _ = self.data.isascii() or self.data.decode()
            _any_json(self.data)
        except (ValueError, RecursionError):
            return False
        return True


COSTS = f"SELECT {', '.join(CostRow._fields)} FROM replies"  # noqa: S608 - ours
REPLIES = f"SELECT {', '.join(ReplyRow._fields)} FROM replies"  # noqa: S608 - ours
_OUTCOME = "SELECT scenario, task, status, reason, detail, grp, reply_key, o.checksum"
OUTCOMES = f"{_OUTCOME} FROM outcomes o"
WITH_ANY_RECORDS = f"{_OUTCOME}, data, r.checksum FROM outcomes o LEFT JOIN records r USING (scenario, task)"


def take(values: Sequence[Any], row: type[Row]) -> Row:
    """Convert a row. Raises msgspec.ValidationError, which is a ValueError, with the place of an invalid
    value."""
    return msgspec.convert(values, row, builtin_types=(bytes,))


def take_fitting(values: Sequence[Any], row: type[Row]) -> Row | None:
    """Convert a row; None if a value is invalid, such as a text with a lone surrogate."""
    try:
        _encode(values)
        return take(values, row)
    except ValueError:
        return None


def compute_checksum(*values: Any) -> int:
    """Return the checksum of a reply or an outcome: of its columns in reading order. Raises
    UnicodeEncodeError for a lone surrogate."""
    return crc32(_encode(values))


def list_columns(address: Address, key: bytes, reply: Reply) -> tuple[Any, ...]:
    """Return the first columns of a reply's row, up to its tokens."""
    usage = reply.usage
    tokens = (None,) * 4 if usage is None else msgspec.structs.astuple(usage)
    facts = (reply.finish_reason, reply.refusal, reply.model, int(reply.simulated))
    return (*msgspec.structs.astuple(address), key, *facts, *tokens)


def compute_reply_checksum(address: Address, key: bytes, reply: Reply) -> int:
    """Return the checksum of a reply without its cost."""
    return compute_checksum(*list_columns(address, key, reply), reply.text)


def compute_outcome_checksums(
    unit: tuple[int, TaskId], facts: Sequence[Any], record: bytes | None
) -> tuple[int, int]:
    """Return the checksums of an outcome (`facts`: its columns in order) and of its record, 0 without one."""
    return compute_checksum(*unit, *facts), 0 if record is None else hash_record(*unit, record)


def compute_cost_checksum(
    answered_at: float, latency: float, tries: int, charged_tokens: int, cost_usd: float | None
) -> int:
    """Return the checksum of a reply's time and cost, in the bits above those of its other columns: 31 bits,
    never 0. Replies of older versions of edgen have 0 there."""
    cost = None if cost_usd is None else float(cost_usd)
    spent = (float(answered_at), float(latency), tries, charged_tokens, cost)
    return (crc32(_encode(spent)) >> 1 or 1) << 32


def hash_record(scenario: int, task: TaskId, data: bytes) -> int:
    return crc32(data, crc32(_encode((scenario, task))))


def is_sound(values: Sequence[Any]) -> bool:
    """Return whether an outcome of WITH_ANY_RECORDS and its record are unchanged."""
    outcome = take_fitting(values, OutcomeRow)
    if outcome is None or not outcome.is_sound:
        return False
    if outcome.data is None and outcome.record_checksum is None:
        return outcome.status != Status.ACCEPTED
    return outcome.has_sound_record


Values = Sequence[Any] | Mapping[str, Any]

_STATUSES = ", ".join(f"'{status}'" for status in Status)
_OF_NO_STATUS = f"SELECT scenario, task FROM outcomes WHERE status NOT IN ({_STATUSES}) LIMIT 1"  # noqa: S608 - ours
_HELD = 8 << 20  # approximate bytes of a page of rows
_TOGETHER = 32  # rows that a stream reads at once
_TABLES = "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = ?"


class CheckedReader:
    """An open ledger for reading."""

    def __init__(self, connection: LedgerConnection, path: Path) -> None:
        self.connection = connection
        self.path = path

    def close(self) -> None:
        self.connection.close()

    @contextlib.contextmanager
    def explain_errors(self) -> Iterator[None]:
        """Turn errors of statements in the body into errors with an explanation."""
        try:
            yield
        except (sqlite3.Error, OverflowError) as problem:
            raise find_raised_error(self.connection, self.path, problem) from None

    def read_rows(self, sql: str, row: type[Row], values: Values = ()) -> list[Row]:
        """Return all rows of a query."""
        with self.explain_errors():
            rows = self.connection.execute(sql, values).fetchall()
        return self._take_several(rows, row)

    def read_derived(self, sql: str, row: type[Row], values: Values = ()) -> list[Row]:
        """Return the valid rows of a query over derived data. Invalid rows are left out, since the next
        session makes them again."""
        with self.explain_errors(), self.read_text_leniently():
            rows = self.connection.execute(sql, values).fetchall()
        return [made for one in rows if (made := take_fitting(one, row)) is not None]

    def read_page(self, sql: str, row: type[Row], values: Values) -> tuple[list[Row], bool]:
        """Return the first page of rows of a query, and whether these are all."""
        rows, held = [], 0
        with self.explain_errors():
            for one in self.connection.execute(sql, values):
                rows.append(one)
                for value in one:  # a generator would take a third of the time of reading a row
                    if type(value) is bytes or type(value) is str:
                        held += len(value)
                if held > _HELD:
                    return self._take_several(rows, row), False
        return self._take_several(rows, row), True

    def iterate_rows(self, sql: str, row: type[Row], values: Values = ()) -> Generator[Row, None, None]:
        """Yield the rows of a query one by one."""
        with self.explain_errors():
            cursor = self.connection.execute(sql, values)
            while rows := cursor.fetchmany(_TOGETHER):
                yield from self._take_several(rows, row)

    def read_row(self, sql: str, row: type[Row], values: Values = ()) -> Row | None:
        """Return the first row of a query."""
        with self.explain_errors():
            one: tuple[Any, ...] | None = self.connection.execute(sql, values).fetchone()
        return None if one is None else self._take(one, row)

    def require_row(self, sql: str, row: type[Row], values: Values = ()) -> Row:
        """Return the row of a query that always has one."""
        one = self.read_row(sql, row, values)
        assert one is not None, "a sum is always there"
        return one

    def has_table(self, name: str) -> bool:
        """Return whether the ledger has a table of this name."""
        return self.require_row(_TABLES, tuple[Natural], (name,))[0] > 0

    def write(self, sql: str, values: Values = ()) -> sqlite3.Cursor:
        with self.explain_errors():
            return self.connection.execute(sql, values)

    @contextlib.contextmanager
    def read_text_leniently(self) -> Iterator[None]:
        """Within the body, read invalid UTF-8 with surrogates instead of raising."""
        factory = self.connection.text_factory
        self.connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
        try:
            yield
        finally:
            self.connection.text_factory = factory

    @contextlib.contextmanager
    def run_transaction(self, begin: str = "BEGIN") -> Iterator[None]:
        """Run the body in one transaction. `BEGIN IMMEDIATE` allows writing, and waits until no other program
        writes."""
        with self.explain_errors():
            run_when_free(self.connection, self.path, lambda: self.connection.execute(begin))
        try:
            yield
            with self.explain_errors():
                if begin == "BEGIN":
                    self.connection.execute("COMMIT")
                else:
                    self.connection.commit()
        except BaseException:
            self.connection.rollback()
            raise

    def _take_several(self, rows: list[tuple[Any, ...]], row: type[Row]) -> list[Row]:
        """Convert rows, all at once if they are valid."""
        try:
            return msgspec.convert(rows, list[row], builtin_types=(bytes,))  # type: ignore[valid-type]
        except msgspec.ValidationError:
            return [self._take(one, row) for one in rows]  # names the invalid value

    def _take(self, values: tuple[Any, ...], row: type[Row]) -> Row:
        try:
            return take(values, row)
        except msgspec.ValidationError as problem:
            place = int(str(problem).rpartition("$[")[2].rstrip("]`"))
            what = f"it holds the invalid value {str(values[place])[:40]!r}"
            raise make_damaged_error(self.path, what) from None

    # -- rows with a checksum

    def check_reply(self, row: ReplyRow) -> Reply:
        """Return the reply in a row. Raises DamagedError unless its checksum matches."""
        if not row.is_sound:
            raise make_reply_error(self.path, Address(row.scenario, row.task, row.step, row.attempt))
        usage = None
        if row.prompt_tokens is not None:
            cached = (row.cache_read_tokens or 0, row.cache_write_tokens or 0)
            usage = Usage(row.prompt_tokens, row.completion_tokens or 0, *cached)
        return Reply(row.text, row.finish_reason, row.refusal, usage, row.model, bool(row.simulated))

    def require_sound(self, outcome: OutcomeRow) -> None:
        """Raise DamagedError unless the checksum of an outcome matches."""
        if not outcome.is_sound:
            raise make_outcome_error(self.path, outcome.scenario, outcome.task)

    def require_all_sound(self) -> None:
        """Raise DamagedError for a reply, outcome or record whose checksum does not match."""
        for unit in self.find_unsound():
            raise make_outcome_error(self.path, *unit)
        for row in self.iterate_rows(REPLIES, ReplyRow):
            self.check_reply(row)

    def check_record(self, outcome: OutcomeRow) -> bytes:
        """Return the record of an outcome. Raises DamagedError unless its checksum matches and it is JSON."""
        if outcome.data is None or not outcome.has_sound_record:
            raise make_outcome_error(self.path, outcome.scenario, outcome.task)
        return outcome.data

    def require_statuses(self) -> None:
        """Raise DamagedError if an outcome has an unknown status: queries by status would omit it."""
        with self.explain_errors(), self.read_text_leniently():
            found = self.connection.execute(_OF_NO_STATUS).fetchone()
        if found is not None:
            raise make_outcome_error(self.path, *found)

    def find_unsound(self) -> Iterator[tuple[Any, Any]]:
        """Yield scenario and task of damaged outcomes and records. Both are derived and can be made again."""
        with self.explain_errors(), self.read_text_leniently():
            for values in self.connection.execute(WITH_ANY_RECORDS):
                if not is_sound(values):
                    yield values[:2]


def open_to_read(path: Path) -> contextlib.closing[CheckedReader]:
    """Open the ledger at `path` read-only. A run in progress is not disturbed, and a finished one not
    changed."""
    return contextlib.closing(CheckedReader(connect(path, read_only=True), path))
