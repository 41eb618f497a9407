"""Times of people's answers, in the columns of a reply's time and latency.

People's answers have no network attempts. All their times are stored with the reply (`logprobs`); ledgers of
earlier versions have only these two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from edgen.core.values import AnswerTimes, Reply, TaskId
from edgen.store.ledger.checked_reader import CheckedReader

_OF_TASK = "SELECT key, answered_at, latency FROM replies WHERE scenario = ? AND task = ? AND tries = 0"


class _Row(NamedTuple):
    key: bytes
    answered_at: float
    latency: float


def list_times(times: AnswerTimes) -> tuple[float, float]:
    """Return the columns of an answer's times. A latency of 0 means that the page did not measure it."""
    return times.at, times.seconds or 0.0


def with_times(
    reader: CheckedReader, replies: Mapping[bytes, Reply], scenario: int, task: TaskId
) -> dict[bytes, Reply]:
    """Return the replies of a task, by key. People's replies have their times."""
    found = dict(replies)
    for row in reader.read_rows(_OF_TASK, _Row, (scenario, task)):
        if (reply := found.get(row.key)) is not None:
            times = AnswerTimes(row.answered_at, row.latency or None)
            found[row.key] = msgspec.structs.replace(reply, times=times)
    return found
