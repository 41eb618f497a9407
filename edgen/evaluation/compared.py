"""Comparisons of a measure's columns by `edgen compare`, and the sums for them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Literal

import msgspec

from edgen.evaluation.aggregates import Aggregate, Columns, Histogram, Mean, Share, Tally

_WORDED = ("name", "title", "definition")  # fields that may have `{key}`


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """A comparison of a measure by `edgen compare`: the sum of one column divided by the sum of another, in
    each arm, and the difference, paired by scenario."""

    name: str  # stable name; with `{key}`, `top` is a column of texts, each compared
    title: str  # for people
    kind: Literal["share", "number"]
    """How it is printed."""
    top: str  # the column of the numerator
    bottom: str = ""
    """The column of the denominator; "": the number of items in the column `top`."""
    over: str
    """Units of the average."""
    definition: str  # for people


def list_usual_comparisons(
    measure: str, definition: str, aggregates: Sequence[Aggregate]
) -> Iterator[Compared]:
    """Yield a comparison for every share, mean and distribution of a measure, and for every counted text."""
    escaped = definition.replace("{", "{{").replace("}", "}}")
    for one in aggregates:
        if getattr(one, "by_key", False) or not isinstance(one, Share | Mean | Histogram | Tally):
            continue
        each = "={key}" if isinstance(one, Tally) else ""
        called = measure if one.name == measure else f"{measure}.{one.name}"
        yield Compared(
            name=f"{called}{each}",
            title=f"{called}{each and ': {key}'}",
            kind="share" if isinstance(one, Share | Tally) else "number",
            top=one.reads,
            bottom=one.of,
            over="accepted conversations",
            definition=escaped if each else definition,
        )


def complete_comparisons(comparisons: Sequence[Compared], columns: Collection[str]) -> Iterator[Compared]:
    """Yield the comparisons with their denominators. A comparison with `{key}` yields one for each of its
    texts in `columns`, the names of sums."""
    for one in comparisons:
        bottom = one.bottom or f"{one.top}#"
        if "{key}" not in one.name:
            yield msgspec.structs.replace(one, bottom=bottom)
            continue
        for column in columns:
            if column.startswith(begin := f"{one.top}="):
                key = column.removeprefix(begin)
                words = {field: getattr(one, field).format(key=key) for field in _WORDED}
                yield msgspec.structs.replace(one, top=column, bottom=bottom, **words)


def sum_columns(columns: Columns, comparisons: Sequence[Compared]) -> Iterator[tuple[str, float]]:
    """Yield (column, value) of a conversation for all columns of these comparisons, each column once."""
    read = dict.fromkeys(name for one in comparisons for name in (one.top, one.bottom) if name)
    for name in read:
        value = columns.get(name)
        if value is None:
            continue
        count = 1
        if isinstance(value, int | float):
            yield name, value
        else:
            each: list[Any] = [value] if isinstance(value, str) else [*value]
            if each and isinstance(each[0], str):
                yield from ((f"{name}={text}", 1) for text in each)
            else:
                yield name, sum(each)
                count = len(each)
        yield f"{name}#", count
