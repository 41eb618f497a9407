"""A measure's figures as rows on a terminal, from what its aggregates declare.

A row's text is a format string: `{name}` is a figure of the measure's value, `{it}` the row's own, `{key}`
its key. A share is put as `12.3% [8.1%, 17.0%]`; `{mean:.2f}` is a mean with its interval in that form,
`{mean:number}` in as many digits as count, `{share:n}` the number of things that it is of, `{asked:turn}`
is `31 turns`, `{hits:/turns}` is `12 = 38.7%`, and `{by[key]}` the part of a figure under the row's key.
`{hits:of turns}` is `12 of 31 turns = 38.7%`, or `12 turns` where the figure `turns` is None. `{names:12}` is
the first 12 names of a list, and how many more there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from edgen.core.text import columns, number, percent, quantity, shorten
from edgen.evaluation.aggregates import Aggregate, ByKey, Histogram, Mean, Tally, is_empty, parts_of
from edgen.evaluation.terminal import (
    LABEL,
    SUMMARY_HEAD,
    histogram,
    join_counts,
    join_shares,
    rows,
    share_with_interval,
    summary,
    with_interval,
)
from edgen.stats.distributions import Distribution
from edgen.stats.intervals import Estimate

_SPREAD = "{mean:.0%}, from {p5:.0%} (5%) to {p95:.0%} (95%)"
_SUMMARY_LABEL = 24  # characters, of a line that still fits


def render_lines(aggregates: Sequence[Aggregate], value: Any) -> Iterator[str]:
    """Yield the rows of a value; none if no figure has data."""
    if not all(is_empty(getattr(value, one.name)) for one in aggregates):
        yield from _Rows().lines(aggregates, value)


class _Rows:
    """Rows as they follow one another: distributions have one head, and the bars of some are below."""

    def __init__(self) -> None:
        self._headed = False
        self._bars: list[tuple[str, Distribution]] = []

    def lines(self, aggregates: Sequence[Aggregate], value: Any, key: str = "") -> Iterator[str]:
        for one in aggregates:
            figure = getattr(value, one.name)
            if isinstance(one, ByKey):
                for inner, part in figure.items():
                    yield from self.lines(one.each, part, inner)
            elif not one.label or (one.if_any and is_empty(figure)):
                continue
            elif isinstance(one, Histogram) and not one.shares:
                yield from self._summaries(one, figure, key)
            else:
                yield from self._rest()
                self._headed = self._headed and bool(key)  # values by key share one head
                yield from (
                    _spread(one, figure, key)
                    if isinstance(one, Histogram)
                    else _rows(one, figure, value, key)
                )
        if not key:
            yield from self._rest()

    def _summaries(self, one: Histogram, figure: Any, outer: str) -> Iterator[str]:
        if not self._headed:
            yield SUMMARY_HEAD
        self._headed = True
        for key, each in parts_of(figure, outer):
            yield summary(_fit(one.label.format(key=key), _SUMMARY_LABEL), each)
            if one.line:
                self._bars.append((one.line, each))

    def _rest(self) -> Iterator[str]:
        for label, each in self._bars:
            yield from histogram(label, each)
        self._bars = []


def _spread(one: Histogram, figure: Any, outer: str) -> Iterator[str]:
    for key, each in parts_of(figure, outer):
        if each.mean is not None:
            said = _Fields(each, it=each, key=key)
            yield from rows(
                _fit(one.label.format(key=key), LABEL - 2), (one.says or _SPREAD).format_map(said)
            )
            yield from histogram("  share, 0 to 1", each)


def _rows(one: Aggregate, figure: Any, value: Any, outer: str = "") -> Iterator[str]:
    if isinstance(one, Mean) and figure is None:
        return
    says = one.says or one.usual
    if "{key}" not in one.label + says or not isinstance(figure, Mapping):
        if isinstance(one, Tally):
            figure = {one.names.get(key, key): count for key, count in figure.items()}
        label = _fit(one.label.format(key=outer), LABEL - 2)
        yield from rows(label, says.format_map(_Fields(value, it=figure, key=outer)))
        return
    each = [*figure.items()]
    shown = each[: one.most] if isinstance(one, Tally) else each
    for key, part in shown:
        label = _fit(one.label.format(key=key), LABEL - 2)
        yield from rows(label, says.format_map(_Fields(value, it=part, key=key)))
    if isinstance(one, Tally) and one.rest and len(each) > len(shown):
        others = sum(count for _, count in each[len(shown) :])
        yield from rows(one.rest, says.format_map(_Fields(value, it=others)))


def _fit(label: str, width: int) -> str:
    """Return the label, shortened if it is too long, with its indentation."""
    indent = len(label) - len(label.lstrip())
    return label if columns(label) <= width else " " * indent + shorten(label, width - indent)


class _Fields(dict[str, Any]):
    """The figures of a value by their names, as the texts of rows put them."""

    def __init__(self, value: Any, it: Any, key: str = "") -> None:
        super().__init__(key=key)
        self._value = value
        self["it"] = _Said(it, self)

    def __missing__(self, name: str) -> _Said:
        return _Said(getattr(self._value, name), self)


class _Said:
    """A figure in a row's text; `[key]` is its part under the row's key, `.name` its field."""

    def __init__(self, value: Any, fields: _Fields) -> None:
        self._value, self._fields = value, fields

    def __getitem__(self, key: str) -> _Said:
        return _Said(self._value[self._fields["key"] if key == "key" else key], self._fields)

    def __getattr__(self, name: str) -> _Said:
        return _Said(None if self._value is None else getattr(self._value, name), self._fields)

    @property
    def figure(self) -> Any:
        """The figure itself."""
        return self._value

    def __format__(self, form: str) -> str:
        found = self._value
        if found is None:
            return "nothing tells"
        if isinstance(found, Estimate):
            if form == "n":
                return f"{found.n:,}"
            if form == "number":
                span = "" if found.low is None else f" [{number(found.low)}, {number(found.high)}]"
                return f"{number(found.value)}{span}"
            return with_interval(found, form) if form else share_with_interval(found)
        if form == "share":
            return f"{found[0] / found[1]:.1%}"
        if form.startswith("of "):
            return self._of(form.removeprefix("of "))
        if form.startswith("/"):
            return f"{found:,} = {percent(found / self._fields[form[1:]].figure)}"
        if isinstance(found, Mapping):
            whole = all(isinstance(one, int) for one in found.values())
            return join_counts(found) if whole else join_shares(found)
        if isinstance(found, tuple) and len(found) == 2 and isinstance(found[1], Mapping):
            return f"{join_shares(found[1])} (of {found[0]:,})"
        if isinstance(found, tuple | list):
            shown, rest = [*map(str, found[: int(form or 3)])], len(found) - int(form or 3)
            return ", ".join([*shown, *([f"and {rest:,} more"] if form and rest > 0 else [])])
        if form == "points":
            return f"{found * 100:.1f} points"
        if isinstance(found, int) and len(form) > 1 and form.isalpha():
            return quantity(found, form)
        return format(found, form or ("," if isinstance(found, int) else ""))

    def _of(self, things: str) -> str:
        whole = self._fields[things].figure
        if whole is None:
            return quantity(self._value, things.removesuffix("s"))
        return f"{self._value:,} of {whole:,} {things} = {percent(self._value / whole) if whole else 'none'}"
