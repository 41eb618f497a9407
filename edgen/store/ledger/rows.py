"""Row types of a ledger. SQLite lets any column hold anything, so rows are checked against these types.

A row type is a NamedTuple, a Struct that is `array_like`, or a plain tuple type, with a field for each column
of the query in its order; a plain tuple type is inspected for each row, so use it for queries of few rows.
Replies, outcomes and records have a CRC-32 checksum, which detects every single flipped bit and every short
burst when a row is read, but no deliberate change. It does not cover an outcome's fingerprint: merging
changes that, and an outcome with a wrong one is ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple, TypeVar
from zlib import crc32

import msgspec
from msgspec import Meta

from edgen.core.clock import EARLIEST, LATEST
from edgen.core.values import FinishReason, Status, TaskId

Row = TypeVar("Row")
Natural = Annotated[int, Meta(ge=0)]
Amount = Annotated[float, Meta(ge=0.0, le=1e18)]  # seconds, US dollars: finite
Moment = Annotated[float, Meta(ge=EARLIEST, le=LATEST)]  # seconds since the epoch
Task = Natural | Annotated[str, Meta(min_length=1)]

_encode = msgspec.msgpack.Encoder().encode
_any_json = msgspec.json.Decoder(msgspec.Raw).decode


class ReplyRow(NamedTuple):
    """A reply, in the columns of REPLIES."""

    scenario: Natural
    task: Task
    step: Natural
    attempt: Natural
    key: bytes
    finish_reason: FinishReason
    refusal: str | None
    model: str | None
    simulated: Natural
    prompt_tokens: Natural | None
    completion_tokens: Natural | None
    cache_read_tokens: Natural | None
    cache_write_tokens: Natural | None
    text: str
    checksum: Natural

    @property
    def is_sound(self) -> bool:
        return checksum_of(*self[:-1]) == self.checksum


class OutcomeRow(NamedTuple):
    """An outcome in the columns of OUTCOMES, with its record if selected and present."""

    scenario: Natural
    task: Task
    status: Status
    reason: str | None
    detail: str | None
    grp: Natural
    reply_key: bytes | None
    checksum: Natural
    data: bytes | None = None
    record_checksum: Natural | None = None

    @property
    def is_sound(self) -> bool:
        """True if the outcome's own checksum matches."""
        return checksum_of(*self[:7]) == self.checksum

    @property
    def has_sound_record(self) -> bool:
        """True if there is a JSON record with a matching checksum."""
        if self.data is None or record_checksum(self.scenario, self.task, self.data) != self.record_checksum:
            return False
        try:
            self.data.decode()
            _any_json(self.data)
        except (ValueError, RecursionError):
            return False
        return True


class UnitRow(NamedTuple):
    """An accepted outcome."""

    scenario: Natural
    task: Task


class AnsweredRow(NamedTuple):
    """The outcome of a task with an answer."""

    scenario: Natural
    task: Task
    status: Status
    reason: str | None


class GroupRow(NamedTuple):
    """The accepted outcomes of a group."""

    group: Natural
    outcomes: Natural


REPLIES = f"SELECT {', '.join(ReplyRow._fields)} FROM replies"  # noqa: S608 - ours
_OUTCOME = "SELECT scenario, task, status, reason, detail, grp, reply_key, o.checksum"
OUTCOMES = f"{_OUTCOME} FROM outcomes o"
WITH_RECORDS = f"{_OUTCOME}, data, r.checksum FROM outcomes o JOIN records r USING (scenario, task)"
WITH_ANY_RECORDS = WITH_RECORDS.replace("JOIN", "LEFT JOIN")


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


def checksum_of(*values: Any) -> int:
    """Return the checksum of a reply or an outcome: of its columns in reading order. Raises
    UnicodeEncodeError for a lone surrogate."""
    return crc32(_encode(values))


def record_checksum(scenario: int, task: TaskId, data: bytes) -> int:
    return crc32(data, crc32(_encode((scenario, task))))


def is_sound(values: Sequence[Any]) -> bool:
    """Return whether an outcome of WITH_ANY_RECORDS and its record are unchanged."""
    outcome = take_fitting(values, OutcomeRow)
    if outcome is None or not outcome.is_sound:
        return False
    if outcome.data is None and outcome.record_checksum is None:
        return outcome.status != Status.ACCEPTED
    return outcome.has_sound_record
