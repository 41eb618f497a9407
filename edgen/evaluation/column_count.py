"""The columns of conversations, checked and counted by the aggregates of a measure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from itertools import islice
from typing import Any

from edgen.core.plugins.faults import refuse_value
from edgen.core.text import describe_type, replace_surrogates, shorten
from edgen.evaluation.aggregate_sums import MOST_NUMBER
from edgen.evaluation.aggregates import (
    Aggregate,
    Columns,
    Crossed,
    Histogram,
    Mean,
    Share,
    Tally,
    Total,
)
from edgen.evaluation.sample import DataSet, Sample, Words

_MOST = 1e100  # its square is a float, too
_MOST_TEXT = 10_000  # maximum characters of a counted text
_MOST_COLUMNS = 1_000  # of a conversation
_MOST_VALUES = 100_000  # in a column of a conversation


class ColumnCount:
    """The running count of a measure's aggregates over one data set. `read` returns the columns of a
    conversation; `finish` makes the measure's value from the figures."""

    def __init__(
        self,
        aggregates: Sequence[Aggregate],
        data: DataSet,
        read: Callable[[Sample, Words], Columns],
        finish: Callable[[dict[str, Any]], Any],
    ) -> None:
        self._read, self._finish = read, finish
        self._sums = {one.name: one.start(data) for one in aggregates}
        self._adds = [(self._sums[one.name].add, one.reads, one.of) for one in aggregates]

    def see(self, sample: Sample, words: Words) -> None:
        """Add a conversation's columns."""
        columns = self._read(sample, words)
        if not columns:
            return
        for add, column, of in self._adds:
            if (value := columns.get(column)) is not None:
                add(sample, value, columns.get(of) if of else None)

    def result(self) -> Any:
        """Return the value."""
        return self._finish({name: one.result() for name, one in self._sums.items()})


def check_columns(measure: str, aggregates: Iterable[Aggregate], given: Any, about: str) -> Columns:
    """Return the columns that a measure gave for one conversation, which `about` names. Raises
    FaultyPluginError with the measure's name if an aggregate cannot count a value."""
    if not isinstance(given, Mapping):
        refuse_value(
            "measure", measure, f"returned {_show(given)} as columns, not a mapping of values by name{about}"
        )
    columns: Columns = {
        name: [*islice(value, _MOST_VALUES + 1)] if isinstance(value, Iterator) else value
        for name, value in islice(given.items(), _MOST_COLUMNS + 1)
    }
    if len(columns) > _MOST_COLUMNS:
        refuse_value("measure", measure, f"gave more than {_MOST_COLUMNS:,} columns{about}")
    for name, value in columns.items():
        if isinstance(value, Sized) and not isinstance(value, str) and len(value) > _MOST_VALUES:
            said = f"gave more than {_MOST_VALUES:,} values in the column {name!r}{about}"
            refuse_value("measure", measure, said)
    for one in aggregates:
        value = columns.get(one.reads)
        if value is None:
            continue
        of = columns.get(one.of) if one.of else None
        if one.of and of is None:
            refuse_value(
                "measure",
                measure,
                f"gave the column {one.reads!r} without {one.of!r}, which {one.name!r} is of{about}",
            )
        for flaw in _find_flaws(one, value, of):
            refuse_value(
                "measure", measure, f"gave {_show(value)} in the column {one.reads!r}, {flaw}{about}"
            )
    return columns


def _find_flaws(one: Aggregate, value: Any, of: Any) -> Iterator[str]:
    """Yield the reasons why an aggregate cannot count a value, as clauses such as "which is not a
    finite number"."""
    if isinstance(one, Share):
        yield from _find_share_flaws(one, value, of)
    elif isinstance(one, Total | Mean):
        if not _is_number(value):
            yield "which is not a finite number (int or float)"
        if one.of and not (isinstance(of, int) and 0 <= of < 2**32):
            yield f"of {_show(of)} in {one.of!r}, which is not a number of things"
    elif isinstance(one, Histogram):
        yield from _find_histogram_flaws(one, value)
    elif isinstance(one, Crossed):
        if not isinstance(value, tuple | list) or not all(map(_is_crossed, value)):
            yield "which is not a list of (row, a list of columns)"
    elif isinstance(one, Tally):
        each = [value] if isinstance(value, str) else value
        if not isinstance(each, Iterable) or not all(isinstance(text, str) for text in each):
            yield "which is neither a text nor a list of texts"
        elif wrong := next(
            (text for text in each if len(text) > _MOST_TEXT or replace_surrogates(text) != text), None
        ):
            yield f"whose text of {len(wrong):,} characters is too long to count, or has a lone surrogate"


def _find_share_flaws(one: Share, value: Any, of: Any) -> Iterator[str]:
    if one.by_key:
        if not isinstance(value, Mapping) or not isinstance(of, Mapping):
            yield f"which has to be a mapping from keys to counts, as {one.of!r} has to be"
        elif wrong := next((key for key, hits in value.items() if not _is_part(hits, of.get(key))), None):
            yield f"whose count of {wrong!r} is not from 0 to the {_show(of.get(wrong))} in {one.of!r}"
    elif one.of:
        if not _is_part(value, of):
            yield f"which is not a whole number from 0 to the {_show(of)} in {one.of!r}"
    elif isinstance(value, str | float) or (isinstance(value, int) and value not in (0, 1)):
        yield "which is not true or false; name the column with the number of things in `of`"


def _find_histogram_flaws(one: Histogram, value: Any) -> Iterator[str]:
    if one.by_key:
        pairs = isinstance(value, Iterable) and all(
            isinstance(each, tuple) and len(each) == 2 for each in value
        )
        if not pairs or not all(isinstance(key, str) and _is_whole(number) for key, number in value):
            yield "which is not a list of (key, whole number)"
    elif one.shares:
        if not _is_number(value) or not 0 <= value <= 1:
            yield "which is not a number from 0 to 1"
    elif isinstance(value, int | float):
        if not _is_number(value) or (isinstance(value, int) and not _is_whole(value)):
            yield f"which is not a finite number up to {MOST_NUMBER:,}"
    elif not isinstance(value, Iterable) or not all(map(_is_whole, value)):
        yield f"which is neither a number nor a list of whole numbers up to {MOST_NUMBER:,}"


def _is_crossed(thing: Any) -> bool:
    if not (isinstance(thing, tuple | list) and len(thing) == 2 and isinstance(thing[0], str | int | float)):
        return False
    columns = thing[1]
    return (
        isinstance(columns, Iterable)
        and not isinstance(columns, str)
        and all(isinstance(one, str) for one in columns)
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and -_MOST < value < _MOST


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and -MOST_NUMBER <= value <= MOST_NUMBER


def _is_part(value: Any, of: Any) -> bool:
    return isinstance(value, int) and isinstance(of, int) and 0 <= value <= of < 2**32


def _show(value: Any) -> str:
    """Return a value as text for a message, with its type if that is not built in."""
    own = type(value).__module__ == "builtins"
    return shorten(repr(value), 80) + ("" if own else f" ({describe_type(value)})")
