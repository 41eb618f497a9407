"""What a value in a ledger can be. SQLite lets any column hold anything, so what is read is held against this."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from edgen.core.values import FinishReason, Status


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A type, the least and the most of a number, and the words of a text where there are few."""

    type: type
    least: float | None = None
    most: float | None = None
    words: Collection[str] | None = None
    optional: bool = False

    @property
    def or_none(self) -> ColumnType:
        return replace(self, optional=True)

    def fits(self, value: Any) -> bool:
        if type(value) is not self.type:
            return value is None and self.optional
        number: Any = value
        if self.least is not None and self.most is not None:
            return bool(self.least <= number <= self.most)
        return self.words is None or value in self.words


class TaskType(ColumnType):
    """A task's name: a number from 0 on, or a text."""

    def fits(self, value: Any) -> bool:
        return (type(value) is int and 0 <= value < 2**63) or (type(value) is str and bool(value))


NATURAL = ColumnType(int, 0, 2**63 - 1)
AMOUNT = ColumnType(float, 0.0, 1e18)  # seconds, US dollars: never infinite, never no number
MOMENT = ColumnType(float, 0.0, 253_402_300_799.0)  # seconds since the epoch, before the year 10000
TEXT = ColumnType(str)
TASK = TaskType(object)
BLOB = ColumnType(bytes)
STATUS = ColumnType(str, words=frozenset(Status))
FINISH = ColumnType(str, words=frozenset(get_args(FinishReason)))


def wrong(row: Sequence[Any], kinds: Sequence[ColumnType]) -> int | None:
    """The place of the first value in a row that is none of its kind."""
    for place, (value, kind) in enumerate(zip(row, kinds, strict=True)):
        if not kind.fits(value):
            return place
    return None
