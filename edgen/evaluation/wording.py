"""Texts with figures of a measure's value in braces: `{it:.1%} of {turns}`.

After the colon comes a format string, or: a counted thing (`{it:turn}`: 3 turns), `of NAME` and `/NAME` (as a
part of another figure), `share` (of a pair), `points`, `number`, `n` (cases of an estimate), `bars` (of a
distribution), `id` (a long id without its middle), or the maximum number of list items to name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from edgen.core.text import BRACKETS, format_interval, number, percent, quantity
from edgen.evaluation.aggregates import find_figure
from edgen.evaluation.terminal import (
    join_counts,
    join_shares,
    render_sparkline,
    share_with_interval,
    shorten_middle,
    with_interval,
)
from edgen.stats.distributions import Distribution
from edgen.stats.intervals import Estimate


def fill_in(text: str, value: Any, it: Any, key: str = "", words: str | None = None) -> str:
    """Fill in the figures of a value in a text. `it`: the figure that the text is about. `key`: its key, by
    which `[key]` finds parts of other figures. `words`: the key's display name; None for the key."""
    return text.format_map(_Fields(value, it, key, key if words is None else words))


class _Fields(dict[str, Any]):
    """The figures of a value by their names."""

    def __init__(self, value: Any, it: Any, key: str, words: str) -> None:
        super().__init__(key=words)
        self._value = value
        self.part_key = key
        self["it"] = _Said(it, self)

    def __missing__(self, name: str) -> _Said:
        return _Said(find_figure(self._value, name), self)


class _Said:
    """A figure in a text; `[key]` is its part under the text's key, `.name` a field."""

    def __init__(self, value: Any, fields: _Fields) -> None:
        self._value, self._fields = value, fields

    def __getitem__(self, key: str) -> _Said:
        return _Said(self._value[self._fields.part_key if key == "key" else key], self._fields)

    def __getattr__(self, name: str) -> _Said:
        return _Said(None if self._value is None else getattr(self._value, name), self._fields)

    def __format__(self, form: str) -> str:
        found = self._value
        if found is None:
            return "nothing tells"
        if isinstance(found, Estimate):
            return _format_estimate(found, form)
        if isinstance(found, Distribution) and form == "bars":
            return render_sparkline(found)
        if form == "share":
            return f"{found[0] / found[1]:.1%}"
        if form == "id":
            return shorten_middle(found)
        if form.startswith("of "):
            return self._format_part(form.removeprefix("of "))
        if form.startswith("/"):
            return f"{found:,} = {percent(found / self._fields[form[1:]]._value)}"
        if isinstance(found, Mapping):
            return _format_mapping(found, form)
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

    def _format_part(self, things: str) -> str:
        whole = self._fields[things]._value
        if whole is None:
            return quantity(self._value, things.removesuffix("s"))
        return f"{self._value:,} of {whole:,} {things} = {percent(self._value / whole) if whole else 'none'}"


def _format_estimate(found: Estimate, form: str) -> str:
    if form == "n":
        return f"{found.n:,}"
    if form == "number":
        return number(found.value) + format_interval(found.low, found.high, number, BRACKETS)
    return with_interval(found, form) if form else share_with_interval(found)


def _format_mapping(found: Mapping[str, Any], form: str) -> str:
    if form:
        return ", ".join(f"{key} {part:{form}}" for key, part in found.items() if part is not None)
    return join_counts(found) if all(isinstance(one, int) for one in found.values()) else join_shares(found)
