"""Details of replies: the tokens of a reply with log probabilities, or the times of a person's answer.

One row per reply, compressed JSON, written in the same group as the reply and read with it. A row's checksum
covers the reply's text, too. A row with a wrong checksum is ignored, so the reply then has no tokens or
times. Ledgers of earlier versions have two times of a person's answer alone, in columns of the reply
(`with_times`); such an answer has no network attempts.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from edgen.core.values import Address, AnswerTimes, Reply, TaskId, Token
from edgen.store.ledger.checked_reader import CheckedReader, Natural, Task, compute_checksum, take_fitting
from edgen.store.ledger.schema import LOGPROBS
from edgen.store.ledger.writer import Statement

_INSERT = "INSERT OR REPLACE INTO logprobs VALUES (?,?,?,?,?,?,?)"
_OF_TASK = "SELECT * FROM logprobs WHERE scenario = ? AND task = ?"
_WITH_TEXTS = (
    "SELECT l.*, r.text FROM logprobs l LEFT JOIN replies r USING (scenario, task, step, attempt, key)"
)
_PEOPLE = "SELECT key, answered_at, latency FROM replies WHERE scenario = ? AND task = ? AND tries = 0"
TABLE = "logprobs"
_LONGEST = 1 << 27  # bytes; no service returns more tokens for a reply
_encode = msgspec.json.Encoder().encode
Details = tuple[Token, ...] | AnswerTimes
_decode = msgspec.json.Decoder(Details).decode


class _Row(NamedTuple):
    scenario: Natural  # index of the reply's scenario
    task: Task  # the reply's task
    step: Natural  # the reply's step
    attempt: Natural  # the reply's attempt
    key: bytes  # key of the reply
    data: bytes  # packed log probabilities
    checksum: Natural  # checksum of the row and the reply's text


class _PersonRow(NamedTuple):
    key: bytes  # key of the reply
    answered_at: float  # in seconds since the epoch
    latency: float  # in seconds; 0 if the page did not measure it


def add_table(reader: CheckedReader) -> None:
    """Create the table if missing."""
    with reader.run_transaction("BEGIN IMMEDIATE"):
        if not reader.has_table(TABLE):
            reader.write(LOGPROBS)


def store_details(address: Address, key: bytes, reply: Reply) -> list[Statement]:
    """Return the statements that store the tokens or times of a reply, if it has any."""
    details = reply.tokens if reply.given is None else reply.given
    if details is None:
        return []
    data = zlib.compress(_encode(details))
    row = (*msgspec.structs.astuple(address), key, data)
    return [(_INSERT, (*row, compute_checksum(*row, reply.text)))]


def with_details(
    reader: CheckedReader, replies: Mapping[bytes, Reply], scenario: int, task: TaskId
) -> dict[bytes, Reply]:
    """Return the replies of a task, by key, with their stored tokens or times."""
    found = dict(replies)
    for row in reader.read_rows(_OF_TASK, _Row, (scenario, task)):
        reply = found.get(row.key)
        if reply is not None and (details := _read(row, reply.text)) is not None:
            name = "given" if isinstance(details, AnswerTimes) else "tokens"
            found[row.key] = msgspec.structs.replace(reply, **{name: details})
    return found


def with_times(
    reader: CheckedReader, replies: Mapping[bytes, Reply], scenario: int, task: TaskId
) -> dict[bytes, Reply]:
    """Return the replies of a task, by key. People's replies have the times of their columns."""
    found = dict(replies)
    for row in reader.read_rows(_PEOPLE, _PersonRow, (scenario, task)):
        if (reply := found.get(row.key)) is not None:
            times = AnswerTimes(row.answered_at, row.latency or None)
            found[row.key] = msgspec.structs.replace(reply, given=times)
    return found


def find_unsound_details(reader: CheckedReader) -> Iterator[tuple[Any, Any]]:
    """Yield scenario and task of tokens and times that are damaged or belong to no stored reply."""
    if not reader.has_table(TABLE):
        return
    with reader.explain_errors(), reader.read_text_leniently():
        for *values, text in reader.connection.execute(_WITH_TEXTS):
            row = take_fitting(values, _Row)
            if row is None or not isinstance(text, str) or _read(row, text) is None:
                yield values[0], values[1]


def _read(row: _Row, text: str) -> Details | None:
    try:
        if compute_checksum(*row[:-1], text) != row.checksum:
            return None
        unpacking = zlib.decompressobj()
        data = unpacking.decompress(row.data, _LONGEST)
        return _decode(data) if unpacking.eof else None
    except (zlib.error, ValueError):
        return None
