"""Facts about a run: texts by name, each with a checksum in a separate row.

The checksum of a fact is a row of the same table, so the layout of a ledger is unchanged. Facts of older
versions of edgen have no checksum and are accepted.

Facts with a structure of their own follow: why a session ended, retries by reason, the selection that made a
run, and the progress of its rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar
from zlib import crc32

import msgspec
from msgspec import Meta

from edgen.core.errors import DamagedError
from edgen.store.ledger.checked_reader import CheckedReader
from edgen.store.ledger.opening import decode_fact
from edgen.store.ledger.writer import Statement

T = TypeVar("T")
LOST = "lost_replies"
PLAN = "plan"
OWNER = "budget owner"  # the ledger's id in a shared budget
MEASURES = "measures"  # JSON: the files of the job's own measures
SIMULATED = "simulated"  # fingerprint of the results in which a simulator took part
SELECTION = "selection"
CHECKSUM = "crc32 of "  # and the fact's name
_PUT = "INSERT OR REPLACE INTO meta VALUES (?,?)"
_ALL = "SELECT name, value FROM meta"
_LASTING = (PLAN, SIMULATED, SELECTION, LOST, OWNER)  # nothing else in the run has these facts


def put_fact(name: str, value: str) -> tuple[Statement, Statement]:
    """Return the statements that store a fact and its checksum."""
    return (_PUT, (name, value)), (_PUT, (CHECKSUM + name, _compute_checksum(value)))


def forget_fact(name: str) -> tuple[Statement]:
    """Return the statement that removes a fact and its checksum."""
    return (("DELETE FROM meta WHERE name IN (?, ?)", (name, CHECKSUM + name)),)


def read_fact(reader: CheckedReader, name: str) -> str | None:
    """Return a fact about the run; None if missing. Raises DamagedError unless its checksum matches."""
    rows = dict(reader.read_rows(f"{_ALL} WHERE name IN (?, ?)", tuple[str, str], (name, CHECKSUM + name)))
    if not _is_sound(rows, name):
        raise _make_fact_error(reader, name, rows)
    return rows.get(name)


def read_facts(reader: CheckedReader) -> dict[str, str]:
    """Return all facts about the run by their names. Raises DamagedError unless their checksums match."""
    rows = dict(reader.read_rows(_ALL, tuple[str, str]))
    for name in _list_names(rows):
        if not _is_sound(rows, name):
            raise _make_fact_error(reader, name, rows)
    return {name: value for name, value in rows.items() if not name.startswith(CHECKSUM)}


def find_damaged_facts(reader: CheckedReader) -> Iterator[DamagedError]:
    """Yield an error for each fact whose checksum does not match."""
    rows = _read_leniently(reader)
    return (_make_fact_error(reader, name, rows) for name in _list_names(rows) if not _is_sound(rows, name))


def drop_damaged_facts(reader: CheckedReader) -> int:
    """Remove the damaged facts that the next session stores again. Return their number."""
    rows = _read_leniently(reader)
    gone = [
        name
        for name in _list_names(rows)
        if not _is_sound(rows, name) and not _is_lasting(name, rows) and name.isprintable()
    ]
    for name in gone:
        for statement in forget_fact(name):
            reader.write(*statement)
    return len(gone)


def _read_leniently(reader: CheckedReader) -> dict[str, Any]:
    """Return all rows, including invalid UTF-8 and values that are not texts."""
    with reader.explain_errors(), reader.read_text_leniently():
        return {name: value for name, value in reader.connection.execute(_ALL) if isinstance(name, str)}


def _is_lasting(name: str, rows: Mapping[str, Any]) -> bool:
    """Return whether a fact cannot be derived from the rest of the run. A missing end of a round is derived
    from the outcomes; a changed one cannot be, since it names conversations without outcomes."""
    return name in _LASTING or (name.startswith("end of round ") and name in rows)


def _list_names(rows: Mapping[str, Any]) -> list[str]:
    """Return the names of the facts, including those of which only the checksum remains."""
    return list(dict.fromkeys(name.removeprefix(CHECKSUM) for name in rows))


def _is_sound(rows: Mapping[str, Any], name: str) -> bool:
    noted = rows.get(CHECKSUM + name)
    return noted is None or noted == _compute_checksum(rows.get(name))


def _compute_checksum(value: Any) -> str:
    return str(crc32(value.encode("utf-8", "surrogateescape"))) if isinstance(value, str) else ""


def _make_fact_error(reader: CheckedReader, name: str, rows: Mapping[str, Any]) -> DamagedError:
    repair = (
        "Restore the ledger from a copy: nothing else in the run contains it."
        if _is_lasting(name, rows)
        else "Start the command that made this ledger again (`edgen generate`): it stores the note again, "
        "without a call."
    )
    return DamagedError(
        f"{reader.path}: the note {name!r} in this ledger is damaged: its checksum does not fit. {repair}"
    )


class JsonFact(Generic[T]):
    """A fact stored as JSON: its name, the type of its value, and its words in an error message."""

    def __init__(self, name: str, kind: type[T], words: str) -> None:
        self.name, self._kind, self._words = name, kind, words

    def note(self, set_fact: Callable[[str, str], None], value: T) -> None:
        """Store the value. `set_fact`: stores a fact by its name."""
        set_fact(self.name, msgspec.json.encode(value).decode())

    def read(self, read_fact: Callable[[str], str | None], path: Path) -> T | None:
        """Return the value; None if it is missing. `read_fact`: returns a fact by its name. Raises
        DamagedError for an invalid fact of the ledger at `path`."""
        return decode_fact(read_fact(self.name), self._kind, path, self._words)


class SessionEnd(msgspec.Struct, frozen=True):
    """The reason why a session ended early, in one word."""

    session: int
    reason: str


class WorkerCounts(msgspec.Struct, frozen=True):
    """One worker process of a cluster, in the present or the last start: calls under way, answers, failed
    attempts, ended tasks, and whether it was lost."""

    running: int
    answers: int
    failures: int
    ended: int
    lost: bool


class ServerCounts(msgspec.Struct, frozen=True):
    """Calls of all starts to one of a backend's servers."""

    answers: int
    failures: int
    """Attempts that were refused or got no answer."""

    def plus(self, other: ServerCounts) -> ServerCounts:
        """Return the sum of both."""
        return ServerCounts(self.answers + other.answers, self.failures + other.failures)


def add_servers(*each: Mapping[str, ServerCounts]) -> dict[str, ServerCounts]:
    """Return the sums of counts by server."""
    total: dict[str, ServerCounts] = {}
    for counts in each:
        for url, one in counts.items():
            total[url] = total[url].plus(one) if url in total else one
    return total


END = JsonFact("end", SessionEnd, "why it ended")  # of the last session that ended early
RETRIES = JsonFact("retries", dict[str, int], "its retries")  # number of all sessions, by reason
TIMEOUTS = JsonFact("timeouts", int, "its timeouts")  # attempts of all sessions that timed out
SERVERS = JsonFact("servers", dict[str, ServerCounts], "its servers")  # calls of all sessions, by server
# workers of the last start that had workers, by node and process
WORKERS = JsonFact("workers", dict[str, WorkerCounts], "its workers")


class Clause(msgspec.Struct, frozen=True):
    """One condition of a selection."""

    name: str
    """The reason code of conversations that it rejected."""
    says: str
    """The condition in words."""
    of: int
    """Number of conversations to which it was applied."""
    took: int
    """Number of conversations that it rejected."""


class SplitRule(msgspec.Struct, frozen=True):
    """A split that replaces the job's, by the values of a name. `test` is the share of the test side.
    `in_order`: the latest values form the test side, and groups are numbered, latest first. Otherwise groups
    are hashes of values."""

    by: str
    test: Annotated[float, Meta(ge=0, lt=1)]
    in_order: bool = False

    @property
    def words(self) -> str:
        """The split's criterion, for people."""
        return f"test {self.test:.4g} by {self.by}{', the latest' if self.in_order else ''}"


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """The origin of a selected run."""

    run: str
    """The name of the source run's folder."""
    sha256: str
    """The digest of the source's accepted records, in order."""
    accepted: int  # conversations of the source
    kept: int  # conversations in the selection
    clauses: tuple[Clause, ...]  # conditions of the selection, with counts
    options: tuple[str, ...]
    """The options of `edgen select`."""
    split: SplitRule | None = None
    """The split of `--split-by`, from this selection or an earlier one."""
    tested: int = 0
    """Number of conversations on the test side."""
    before: Selection | None = None
    """The source run's own selection."""

    @property
    def depth(self) -> int:
        """The number of successive selections."""
        return 1 if self.before is None else 1 + self.before.depth


def read_selection(noted: str | None, path: Path) -> Selection | None:
    """Decode the selection; None if missing. Raises DamagedError if it is invalid."""
    return decode_fact(noted, Selection, path, "what it says of its selection")


class RoundEnd(msgspec.Struct, frozen=True):
    """The end of a round. `fingerprint`: the job's when the fact was last stored. `failed`: (scenario, task),
    in order."""

    fingerprint: str
    failed: tuple[tuple[int, int], ...]


def make_round_fact_name(number: int, size: int, replicates: int) -> str:
    """Return the name of the fact about the end of round `number` with `size` scenarios and `replicates`."""
    return f"end of round {number} of {size}, {replicates} each"


def read_round_end(noted: str | None, path: Path) -> RoundEnd | None:
    """Return the end of a round; None if it has not ended."""
    return decode_fact(noted, RoundEnd, path, "a note about a round")


def count_ended_rounds(facts: Mapping[str, str], fingerprint: str, path: Path) -> int:
    """Return the number of rounds that have ended under a fingerprint."""
    ends = [read_round_end(noted, path) for name, noted in facts.items() if name.startswith("end of round ")]
    return sum(end is not None and end.fingerprint == fingerprint for end in ends)
