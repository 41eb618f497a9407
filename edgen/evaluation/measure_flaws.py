"""Flaws in the declarations of a plugin's measure: its texts, figures, aggregates and panels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from string import Formatter
from typing import Any, get_args

from edgen.core.text import describe_type, join_list, shorten
from edgen.evaluation.aggregates import Aggregate, ByKey
from edgen.evaluation.compared import Compared
from edgen.evaluation.panels import Panel, Sentence, TablePanel
from edgen.expressions.language import Kind

_TEXTS = ("section", "nothing")


def list_declared_flaws(measure: Any, *, counts_alone: bool) -> Iterator[str]:
    """Yield flaws that keep an object from being used as a measure, as clauses. `counts_alone`: it has a
    count of its own."""
    if not isinstance(definition := getattr(measure, "definition", None), str) or not definition:
        yield "has no `definition`: name its source, or say that it is your own"
    for name in _TEXTS:
        if not isinstance(text := getattr(measure, name), str):
            yield f"has `{name}` {text!r}, which is not text"
    if not isinstance(measure.order, int | float):
        yield f"has `order` {measure.order!r}, which is not a number"
    if counts_alone and not callable(counts := getattr(measure, "counts", object)):
        yield f"has `counts` {counts!r}, which is not a class"
    yield from _list_figure_flaws(measure)
    for name, kinds in (("panels", "Panel, TablePanel or Sentence, or a function"), ("compares", "Compared")):
        if not isinstance(given := getattr(measure, name), tuple | list | None):
            yield f"has `{name}` that are not a tuple: {shorten(repr(given), 80)}; each is a {kinds}"
            return
    if wrong := [one for one in measure.compares or () if not isinstance(one, Compared)]:
        yield f"has {wrong[0]!r} among its `compares`, which is not a Compared"
    flaws = [*_list_aggregate_flaws(measure, counts_alone=counts_alone)]
    yield from flaws or _list_panel_flaws(measure)


def _list_figure_flaws(measure: Any) -> Iterator[str]:
    figures: Any = measure.figures
    if not isinstance(figures, Mapping):
        yield f"has `figures` that are not a mapping: {figures!r}; write figure_kinds(…)"
        return
    for name, kind in figures.items():
        if kind not in get_args(Kind):
            yield f"has {kind!r} for {name!r} in `figures`; the kinds are {', '.join(get_args(Kind))}"


def _list_aggregate_flaws(measure: Any, *, counts_alone: bool) -> Iterator[str]:
    if not isinstance(measure.aggregates, tuple | list):
        yield f"has `aggregates` that are not a tuple: {measure.aggregates!r}"
        return
    each = [*measure.aggregates]
    if wrong := next((one for one in each if not isinstance(one, Aggregate)), None):
        yield f"has {wrong!r} among its `aggregates`, which is not an aggregate such as edgen.plugin.Share"
        return
    for listed in (each, *(one.each for one in each if isinstance(one, ByKey))):
        names = [one.name for one in listed]
        for one in listed:
            if one.name and not one.name.isidentifier():
                yield f"has an aggregate named {one.name!r}; name it with letters, digits and _"
            if names.count(one.name) > 1:
                column = f"`column={one.name!r}`"
                yield f"has two aggregates named {one.name!r}; rename one of them, and give it {column}"
            yield from _list_wording_flaws(one, None if counts_alone else names)


def _list_wording_flaws(one: Aggregate, names: Sequence[str] | None) -> Iterator[str]:
    """Yield flaws of an aggregate's texts: unknown names in braces. `names`: of the figures; None: the value
    may have others."""
    texts = {"label": ["key"], "title": ["key"]}
    if names is not None:
        texts |= {text: ["it", "key", *names] for text in ("says", "note", "drawn")}
    for text, known in texts.items():
        try:
            found = [field for _, field, _, _ in Formatter().parse(getattr(one, text)) if field is not None]
        except (ValueError, TypeError) as error:
            yield f"has the `{text}` {getattr(one, text)!r} for {one.name!r}: {error}"
            continue
        for field in found:
            if (name := field.partition(".")[0].partition("[")[0]) not in known:
                listed = join_list([f"{{{each}}}" for each in known])
                yield f"has {{{name}}} in the `{text}` of {one.name!r}; there it may have {listed}"


def _list_panel_flaws(measure: Any) -> Iterator[str]:
    by_name = {one.name: one for one in measure.aggregates}
    for panel in measure.panels or ():
        match panel:
            case Panel(figures=str()):
                yield f"has a Panel with `figures` {panel.figures!r}, a text; write ({panel.figures!r},)"
                return
            case Panel():
                named = [*panel.figures]
                if not named:
                    yield f"has the Panel {panel.name!r} without figures"
            case TablePanel():
                named = [panel.figure]
                if len(panel.heads) != len(panel.cells):
                    yield f"has the TablePanel {panel.title!r} with more or fewer `cells` than `heads`"
            case Sentence():
                named = [panel.figure]
            case _ if callable(panel):
                continue
            case _:
                yield f"has {panel!r} among its `panels`; each is a Panel, TablePanel, Sentence or function"
                return
        found = [by_name.get(name.partition(".")[0]) for name in named]
        if None in found:
            wrong, listed = named[found.index(None)], join_list(map(repr, by_name))
            yield f"has {describe_type(panel)} of {wrong!r}, which is not an aggregate of it (it has {listed})"
