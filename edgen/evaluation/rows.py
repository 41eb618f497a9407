"""The rows of a measure on the terminal, from its aggregates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from edgen.core.text import columns, readable_name, shorten
from edgen.evaluation.aggregates import (
    Aggregate,
    ByKey,
    Crossed,
    Histogram,
    Mean,
    Share,
    Tally,
    find_figure,
    has_data,
    is_empty,
    iterate_parts,
)
from edgen.evaluation.terminal import LABEL, SUMMARY_HEAD, render_histogram, render_summary, rows, wrap
from edgen.evaluation.wording import fill_in
from edgen.stats.distributions import Distribution

_SPREAD = "{mean:.0%}, from {p5:.0%} (5%) to {p95:.0%} (95%)"
_SUMMARY_LABEL = 24  # maximum characters of a label in a summary line


def render_rows(aggregates: Sequence[Aggregate], value: Any) -> Iterator[str]:
    """Yield the rows of a value; nothing without data (`aggregates.has_data`). If no figure has a label,
    names serve as labels."""
    if not any(one.label or one.note or isinstance(one, ByKey) for one in aggregates):
        aggregates = [msgspec.structs.replace(one, label=readable_name(one.name)) for one in aggregates]
    if has_data(aggregates, value):
        yield from _Rows().list_lines(aggregates, value)


class _Rows:
    """A writer of consecutive rows: distributions share one head, and their bars follow below."""

    def __init__(self) -> None:
        self._headed = False
        self._bars: list[tuple[str, Distribution]] = []

    def list_lines(self, aggregates: Sequence[Aggregate], value: Any, key: str = "") -> Iterator[str]:
        for one in aggregates:
            figure = find_figure(value, one.name)
            if isinstance(one, ByKey):
                for inner, part in one.list_parts(figure)[: one.most]:
                    yield from self.list_lines(one.each, part, one.rename(inner))
                continue
            if one.if_any and is_empty(figure):
                continue
            if one.label and isinstance(one, Histogram) and not one.shares:
                yield from self._list_summaries(one, figure, key)
            elif one.label:
                yield from self._interrupt(key)
                yield from (
                    _describe_spread(one, figure, key)
                    if isinstance(one, Histogram)
                    else _list_rows(one, figure, value, key)
                )
            if one.note:
                yield from self._interrupt(key)
                yield from wrap(fill_in(one.note, value, figure, key))
        if not key:
            yield from self._flush_bars()

    def _interrupt(self, key: str) -> Iterator[str]:
        """End a block of distributions before another row."""
        yield from self._flush_bars()
        self._headed = self._headed and bool(key)  # values by key share one head

    def _list_summaries(self, one: Histogram, figure: Any, outer: str) -> Iterator[str]:
        if not self._headed:
            yield SUMMARY_HEAD
        self._headed = True
        for key, each in iterate_parts(figure, outer):
            label = _find_label(one).format(key=one.rename(key))
            yield render_summary(_fit(label, _SUMMARY_LABEL), each)
            if one.line:
                self._bars.append((one.line, each))

    def _flush_bars(self) -> Iterator[str]:
        for label, each in self._bars:
            yield from render_histogram(label, each)
        self._bars = []


def _describe_spread(one: Histogram, figure: Any, outer: str) -> Iterator[str]:
    for key, each in iterate_parts(figure, outer):
        if each.mean is not None:
            label = _fit(_find_label(one).format(key=one.rename(key)), LABEL - 2)
            yield from rows(label, fill_in(one.says or _SPREAD, each, each, key, one.rename(key)))
            yield from render_histogram("  share, 0 to 1", each)


def _list_rows(one: Aggregate, figure: Any, value: Any, outer: str = "") -> Iterator[str]:
    if isinstance(one, Mean) and figure is None:
        return
    says, label = one.says or one.usual, _find_label(one)
    most = one.most if isinstance(one, Tally) else None
    if "{key}" not in label + says or not isinstance(figure, Mapping):
        if isinstance(figure, Mapping):
            figure = {one.rename(key): part for key, part in [*figure.items()][:most]}
        yield from rows(_fit(label.format(key=outer), LABEL - 2), fill_in(says, value, figure, outer))
        return
    each = [*figure.items()]
    for key, part in each[:most]:
        words = one.rename(key)
        yield from rows(_fit(label.format(key=words), LABEL - 2), fill_in(says, value, part, key, words))
    if isinstance(one, Tally) and one.rest and len(each) > len(each[:most]):
        others = sum(count for _, count in each[most:])
        yield from rows(one.rest, fill_in(says, value, others))


def _find_label(one: Aggregate) -> str:
    """Return the label of a figure, with `{key}` appended if the figure is by key and its texts lack it."""
    by_key = isinstance(one, Crossed) or (isinstance(one, Share | Histogram) and one.by_key)
    return f"{one.label} {{key}}" if by_key and "{key}" not in one.label + one.says else one.label


def _fit(label: str, width: int) -> str:
    """Return the label, shortened if it is too long, with its indentation."""
    indent = len(label) - len(label.lstrip())
    return label if columns(label) <= width else " " * indent + shorten(label, width - indent)
