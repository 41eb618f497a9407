"""Lines for a terminal of 80 columns: labelled rows, wrapped text, small histograms, values with
intervals.

`render_lines` makes the rows of a measure's aggregates.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from edgen.core.text import columns, number, percent, quantity, shorten
from edgen.evaluation.aggregates import Aggregate, ByKey, Histogram, Mean, Tally, is_empty, parts_of
from edgen.stats.distributions import Distribution
from edgen.stats.intervals import Estimate

WIDTH = 80
LABEL = 28
_BARS = " ▁▂▃▄▅▆▇█"


def row(label: str, text: str) -> str:
    """Return a label and its text."""
    return f"{label:<{LABEL}}{text}"


def rows(label: str, text: str) -> Iterator[str]:
    """Yield a row that may have several lines."""
    lines = textwrap.wrap(text, WIDTH - LABEL - 2, break_on_hyphens=False) or [""]
    yield row(label, lines[0])
    yield from (row("", line) for line in lines[1:])


def wrap(text: str, width: int = WIDTH - 2, *, bullet: str = "") -> list[str]:
    """Return the lines of a paragraph; after a `bullet`, its lines are aligned."""
    rest = " " * len(bullet) if bullet else "  " if text.startswith(" ") else ""
    return textwrap.wrap(
        text, width, initial_indent=bullet, subsequent_indent=rest, break_long_words=not bullet
    )


def histogram(label: str, found: Distribution) -> Iterator[str]:
    """Yield the bars in a line, with the ends of the first and the last."""
    if len(found.bins) > 1:
        low, high = found.bins[0].low, found.bins[-1].high
        ends = (f"{low:,.0f} ", f" {high - 1:,.0f}") if high > 1 else ("", "")
        yield f"{label:<16}{ends[0]}{sparkline(found)}{ends[1]}"


def sparkline(found: Distribution) -> str:
    """Return a character per bar, as high as its count; a count above 0 is always visible."""
    most = max((bar.count for bar in found.bins), default=0)
    return "▕" + "".join(_BARS[-(-8 * bar.count // most)] if most else " " for bar in found.bins) + "▏"


def share_with_interval(found: Estimate | None) -> str:
    """`12.3% [8.1%, 17.0%]`."""
    return "nothing tells" if found is None else with_interval(found, ".1%")


def with_interval(found: Estimate, form: str) -> str:
    """`0.61 [0.58, 0.64]`, each number in the `form` of a format string."""
    if found.low is None or found.high is None:
        return f"{found.value:{form}}"
    return f"{found.value:{form}} [{found.low:{form}}, {found.high:{form}}]"


def join_counts(counts: Mapping[str, int], names: Mapping[str, str] | None = None) -> str:
    """`12 Teacher, 6 Student`, what is 0 left out."""
    names = names or {}
    return ", ".join(f"{n:,} {names.get(key, key)}" for key, n in counts.items() if n) or "none"


def join_shares(shares: Mapping[str, float]) -> str:
    """`Hint 59.9%, Question 28.4%`."""
    return ", ".join(f"{name} {share:.1%}" for name, share in shares.items())


def shorten_line(text: str, width: int) -> str:
    """Return the text on one line of at most `width` characters."""
    line = " ".join(text.split())
    return line if len(line) <= width else f"{line[: width - 1]}…"


def shorten_middle(name: str) -> str:
    """Return a long name without its middle: ids differ at their ends."""
    line = " ".join(name.split())
    return line if len(line) <= 22 else f"{line[:6]}…{line[-15:]}"


_WIDTHS = (7, 7, 5, 5, 7, 7, 9)  # characters of the cells of a summary


def align_columns(label: str, cells: Sequence[str]) -> str:
    """Return seven right-aligned cells after a label."""
    return f"{label:<22}" + "".join(f" {cell:>{width}}" for cell, width in zip(cells, _WIDTHS, strict=True))


def _fit_number(number: float | None, places: int, width: int) -> str:
    """Return a number in at most so many characters: in thousands (k), millions (M), … where it is longer."""
    if number is None:
        return "–"
    text = f"{number:,.{places}f}"
    for unit in "kMGT":
        if len(text) <= width:
            return text
        number /= 1000
        text = f"{number:,.0f}{unit}"
    return text


def summary(label: str, found: Distribution) -> str:
    """Return the mean, deviation and quantiles of whole numbers, below `SUMMARY_HEAD`."""
    if found.mean is None:
        return row(label, "none")
    places = 1 if found.mean < 10_000 else 0
    numbers = (found.mean, found.sd, found.min, found.p5, found.median, found.p95, found.max)
    cells = [
        _fit_number(number, places if place < 2 else 0, width)
        for place, (number, width) in enumerate(zip(numbers, _WIDTHS, strict=True))
    ]
    return align_columns(label, cells)


SUMMARY_HEAD = align_columns("", ("mean", "sd", "min", "5%", "median", "95%", "max"))


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
                yield from self._flush_bars()
                self._headed = self._headed and bool(key)  # values by key share one head
                yield from (
                    _spread(one, figure, key)
                    if isinstance(one, Histogram)
                    else _rows(one, figure, value, key)
                )
        if not key:
            yield from self._flush_bars()

    def _summaries(self, one: Histogram, figure: Any, outer: str) -> Iterator[str]:
        if not self._headed:
            yield SUMMARY_HEAD
        self._headed = True
        for key, each in parts_of(figure, outer):
            yield summary(_fit(one.label.format(key=key), _SUMMARY_LABEL), each)
            if one.line:
                self._bars.append((one.line, each))

    def _flush_bars(self) -> Iterator[str]:
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
