"""A measure's figures as pictures and tables of a report, from its aggregates and panels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from edgen.core.text import number, percent, readable_name
from edgen.evaluation.aggregates import (
    Aggregate,
    ByKey,
    Crossed,
    Histogram,
    Mean,
    Share,
    Tally,
    Total,
    find_figure,
    is_empty,
)
from edgen.evaluation.drawings import (
    SHARES,
    WHOLE_NUMBERS,
    Axis,
    Bar,
    Block,
    HistogramBars,
    Interval,
    Picture,
    Table,
    draw_bars,
    draw_histograms,
    draw_intervals,
    format_mean,
    interval_of,
    label_with_arm,
    sentence_of_arm,
    series_colour,
    share_of,
)
from edgen.evaluation.terminal import join_shares
from edgen.evaluation.wording import fill_in

V = TypeVar("V")
_MOST_BARS = 24
_CAPTIONS = {  # captions of panels that declare none
    Share: "Shares with their 95% intervals.",
    Mean: "Means with their 95% intervals.",
    Tally: "How often each of these occurs, the most frequent first.",
}


class ArmResult(NamedTuple, Generic[V]):
    """A measure's value for a run, or for one arm of it."""

    arm: str
    """The arm's name, "" without arms."""
    name: str  # name of the arm or the run
    value: V  # value of the measure
    job: Mapping[str, Any]  # the resolved job
    guide: Any = None
    """See `RolesAndSettings.guide`; None without one."""
    family: Any = None
    """The family of its conversations; None if unknown."""
    roles: tuple[str, ...] = ()
    """The names of the roles that may speak; empty if unknown."""


class Panel(msgspec.Struct, frozen=True):
    """A picture of figures of one kind, with arms side by side: shares and means as dots with intervals,
    distributions as histograms, counts of texts and plain numbers as bars, a crossed table as a table."""

    name: str  # unique in the report
    title: str  # above the picture
    figures: tuple[str, ...]
    """Names of aggregates of one class; `outer.inner` for an aggregate in the `each` of a ByKey."""
    caption: str | Callable[[Sequence[ArmResult[Any]]], str] = ""
    """The point to look for; may be a function of the arms' results."""
    axis: Axis | None = None
    """The x axis; None: the usual one of the aggregate's class."""
    of: str = ""
    """For counts: the figure that bars are shares of; "" for the sum of the counts."""
    colour_keys: bool = False
    """Whether each key has a colour, instead of each arm."""
    reference: float | None = None
    """For shares and means: the value of a reference line; None for no line."""
    most: int | None = None
    """For shares and means: the maximum drawn, furthest from the reference (without one, from 0) first; None
    for all."""
    folded: str = ""
    """Words under which it is folded away, together with pictures of the same words; "" if it is not."""
    told: str = ""
    """Words before the values of a folded share or mean of shares, which the page always shows; "" if it
    shows none."""


class TablePanel(msgspec.Struct, frozen=True):
    """A table with a row for each part of a figure, a mapping or a sequence. Left out if it has no rows."""

    title: str
    figure: str
    """The name of an aggregate, as in `Panel.figures`."""
    heads: tuple[str, ...]
    cells: tuple[str, ...]
    """The cells of a row, with figures in braces as in `Aggregate.says`; `{it}` is the part."""
    style: str = "plain"
    """See `Table.style`."""


class Sentence(msgspec.Struct, frozen=True):
    """A sentence about a figure in each arm."""

    figure: str
    """The name of an aggregate."""
    says: str
    """The sentence, with figures in braces as in `Aggregate.says`."""
    otherwise: str = ""
    """The sentence if the figure has no data; "" for none."""


OwnPicture = Callable[[Sequence[ArmResult[Any]]], Iterator[Block]]
"""A function that draws pictures, given the arms' results."""
AnyPanel = Panel | TablePanel | Sentence | OwnPicture


class _Part(NamedTuple):
    """A figure of a value, or one part of a figure by key."""

    key: str  # "" without keys
    words: str  # display name of the key
    place: int  # place of the outermost key
    figure: Any
    value: Any  # the value that has the figure

    def say(self, text: str) -> str:
        """Fill in a text about the figure."""
        return fill_in(text, self.value, self.figure, self.key, self.words)


def draw_panels(
    panels: Sequence[AnyPanel], aggregates: Sequence[Aggregate], found: Sequence[ArmResult[Any]]
) -> Iterator[Block]:
    """Yield the pictures, tables and sentences of these panels."""
    by_name = {one.name: one for one in aggregates}
    for panel in panels:
        match panel:
            case Sentence():
                yield from _render_sentences(panel, found)
            case TablePanel():
                yield from _tabulate_rows(panel, by_name, found)
            case Panel():
                if panel.told and (said := _describe_shares(panel.figures[0], found)):
                    yield f"{panel.told}: {said}."
                for block in _draw(panel, by_name, found):
                    yield (
                        msgspec.structs.replace(block, folded=panel.folded)
                        if isinstance(block, Picture)
                        else block
                    )
            case _:
                yield from panel(found)


def _describe_shares(figure: str, found: Sequence[ArmResult[Any]]) -> str:
    """Return the values of a share in the arms that have it, as text."""
    estimates = [(one.arm, find_figure(one.value, figure)) for one in found]
    return ", ".join(
        f"{arm} {percent(estimate.value)}".strip() for arm, estimate in estimates if estimate is not None
    )


def _find_aggregate(by_name: Mapping[str, Aggregate], path: str) -> Aggregate:
    outer, _, inner = path.partition(".")
    if not inner:
        return by_name[path]
    around = by_name[outer]
    assert isinstance(around, ByKey), f"{outer!r} has no figures of its own"
    return next(one for one in around.each if one.name == inner)


def _iterate_parts(value: Any, by_name: Mapping[str, Aggregate], path: str) -> Iterator[_Part]:
    """Yield the parts of a figure. For `outer.inner`: the inner figure of each part, or its parts under both
    keys if it is by key itself."""
    outer, _, inner = path.partition(".")
    around, one, figure = by_name[outer], _find_aggregate(by_name, path), find_figure(value, outer)
    if isinstance(around, ByKey):
        for place, (key, part) in enumerate(around.list_parts(figure)):
            words, own = around.rename(key), find_figure(part, inner)
            if not inner or not isinstance(own, Mapping):
                yield _Part(key, words, place, own, part)
                continue
            for name, each in own.items():
                yield _Part(f"{key}: {name}", f"{words}: {one.rename(name)}", place, each, part)
    elif isinstance(figure, Mapping):
        for place, (key, part) in enumerate(figure.items()):
            yield _Part(key, one.rename(key), place, part, value)
    else:
        for part in figure if isinstance(figure, list | tuple) else [figure]:
            yield _Part("", "", 0, part, value)


def _render_sentences(panel: Sentence, found: Sequence[ArmResult[Any]]) -> Iterator[str]:
    for one in found:
        figure = find_figure(one.value, panel.figure)
        says = panel.otherwise if is_empty(figure) else panel.says
        if says:
            yield sentence_of_arm(fill_in(says, one.value, figure), one.arm)


def _tabulate_rows(
    panel: TablePanel, by_name: Mapping[str, Aggregate], found: Sequence[ArmResult[Any]]
) -> Iterator[Table]:
    rows = []
    for arm in found:
        for part in _iterate_parts(arm.value, by_name, panel.figure):
            first, *others = map(part.say, panel.cells)
            rows.append((label_with_arm(first, arm.arm), *others))
    if rows:
        yield Table(panel.heads, tuple(rows), panel.title, panel.style)


def list_usual_panels(measure: str, aggregates: Sequence[Aggregate]) -> Iterator[Panel]:
    """Yield one panel of all shares, and one for each other figure, for a measure without panels."""
    shares = tuple(one.name for one in aggregates if isinstance(one, Share))
    words, total = readable_name(measure).capitalize(), ""
    if shares:
        yield Panel(measure, words, shares)
    for one in aggregates:
        total = one.name if isinstance(one, Total) else total
        if isinstance(one, Mean | Histogram | Tally | Crossed):
            titled = f"{words}: {_find_words(one)}" if len(aggregates) > 1 else words
            yield Panel(f"{measure}-{one.name}", titled, (one.name,), of=total)


def _find_words(one: Aggregate) -> str:
    return readable_name(one.name) if "{key}" in one.label else one.label.strip() or readable_name(one.name)


def _draw(panel: Panel, by_name: Mapping[str, Aggregate], found: Sequence[ArmResult[Any]]) -> Iterator[Block]:
    first = _find_aggregate(by_name, panel.figures[0])
    said = panel.caption if isinstance(panel.caption, str) else panel.caption(found) if found else ""
    caption = said or _CAPTIONS.get(type(first), "")
    if isinstance(first, Share | Mean):
        axis = panel.axis or (SHARES if isinstance(first, Share) else Axis())
        dots = [*_list_intervals(panel, by_name, found)]
        if panel.most is not None and len(dots) > panel.most:
            caption += f" The first {panel.most} of {len(dots)}."
        reference = panel.reference
        yield from draw_intervals(panel.name, panel.title, dots[: panel.most], caption, axis, reference)
    elif isinstance(first, Histogram):
        axis = panel.axis or (SHARES if first.shares else WHOLE_NUMBERS)
        drawn = [*_draw_histograms(panel, by_name, found)]
        yield from draw_histograms(panel.name, panel.title, drawn, axis, caption)
    elif isinstance(first, Crossed):
        yield from _list_crossed_rows(panel, first, found)
    elif isinstance(first, Tally):
        counted = [(one.arm, *_collect_counts(one.value, by_name, panel)) for one in found]
        yield from draw_bars_of_counts(panel.name, panel.title, caption, counted)
    else:
        bars = [
            Bar(words, part.figure, part.say(one.drawn) if one.drawn else percent(part.figure), colour)
            for one, words, part, colour in _list_marks(panel, by_name, found)
        ]
        yield from draw_bars(panel.name, panel.title, bars, caption)


def _list_marks(
    panel: Panel, by_name: Mapping[str, Aggregate], found: Sequence[ArmResult[Any]]
) -> Iterator[tuple[Aggregate, str, _Part, str]]:
    """Yield (aggregate, words, part, colour) of each figure and key, in each arm that has it."""
    for path in panel.figures:
        one = _find_aggregate(by_name, path)
        by_arm = [{part.key: part for part in _iterate_parts(arm.value, by_name, path)} for arm in found]
        by_key = "{key}" in one.label or (isinstance(one, Share) and one.by_key)
        title = one.title or ("{key}" if by_key else "")
        if not title and len(panel.figures) > 1:
            title = _find_words(one)
        keys = dict.fromkeys(key for parts in by_arm for key in parts)
        for key in keys:
            for place, (arm, parts) in enumerate(zip(found, by_arm, strict=True)):
                if (part := parts.get(key)) is not None and part.figure is not None:
                    words = label_with_arm(title.format(key=part.words), arm.arm) if title else arm.name
                    coloured = part.place if panel.colour_keys and len(keys) > 1 else place
                    yield one, words, part, series_colour(coloured)


def _list_intervals(
    panel: Panel, by_name: Mapping[str, Aggregate], found: Sequence[ArmResult[Any]]
) -> list[Interval]:
    dots = []
    for one, words, part, colour in _list_marks(panel, by_name, found):
        usual = share_of if isinstance(one, Share) else format_mean
        said = part.say(one.drawn) if one.drawn else usual(part.figure)
        dots.append(interval_of(words, part.figure, said, colour))
    if panel.most is not None:
        dots.sort(key=lambda dot: -abs((dot.value or 0) - (panel.reference or 0)))
    return dots


def _collect_counts(
    value: Any, by_name: Mapping[str, Aggregate], panel: Panel
) -> tuple[dict[str, tuple[int, int]], int]:
    """Return (count, total) by key, and the number of all things. A total is the figure `of` or, without one,
    the sum of the counts."""
    path, of = panel.figures[0], panel.of
    outer, _, inner = path.partition(".")
    found: dict[str, tuple[int, int]] = {}
    things = 0
    around = by_name[outer]
    parts = around.list_parts(find_figure(value, outer)) if isinstance(around, ByKey) else [("", value)]
    for key, part in parts:
        counts = find_figure(part, inner or outer)
        total = find_figure(part, of) if of else sum(counts.values())
        found |= {f"{key}: {own}" if key else own: (count, total) for own, count in counts.items()}
        things += total
    return found, things


def _draw_histograms(
    panel: Panel, by_name: Mapping[str, Aggregate], found: Sequence[ArmResult[Any]]
) -> Iterator[HistogramBars]:
    parts = [
        (place, arm, _find_aggregate(by_name, path), part)
        for place, arm in enumerate(found)
        for path in panel.figures
        for part in _iterate_parts(arm.value, by_name, path)
    ]
    several = len({part.key for *_, part in parts}) > 1
    for place, arm, one, part in parts:
        title = one.title.format(key=part.words) if one.title else part.words
        words = label_with_arm(title, arm.arm) if title else arm.name
        coloured = part.place if panel.colour_keys and several else place
        yield HistogramBars(words, part.figure, series_colour(coloured))


def _list_crossed_rows(panel: Panel, one: Crossed, found: Sequence[ArmResult[Any]]) -> Iterator[Table]:
    cells = tuple(
        (label_with_arm(f"{row} ({count:,})", arm.arm), join_shares(shares))
        for arm in found
        for row, (count, shares) in find_figure(arm.value, one.name).items()
    )
    if cells:
        yield Table(one.heads, cells, panel.title, "plain")


def draw_bars_of_counts(
    name: str, title: str, caption: str, counted: Sequence[tuple[str, Mapping[str, tuple[int, int]], int]]
) -> Iterator[Picture]:
    """Yield a picture of counts as bars of shares: the largest first, arms side by side. `counted`: (arm,
    (count, total) by kind, total of all) of each arm."""
    drawn = [(place, *one) for place, one in enumerate(counted) if one[2]]
    largest: dict[str, float] = {}
    for _, _, counts, _ in drawn:
        for kind, (count, total) in counts.items():
            if count:
                largest[kind] = max(largest.get(kind, 0.0), count / total)
    bars = []
    for kind in sorted(largest, key=lambda kind: (-largest[kind], kind)):
        for place, arm, counts, things in drawn:
            count, total = counts.get(kind, (0, things))
            said = f"{number(count)} ({percent(count / total)})"
            bars.append(
                Bar(label_with_arm(readable_name(kind), arm), count / total, said, series_colour(place))
            )
    # a multiple of the arms, so that each kind has all its arms
    most = max(_MOST_BARS // max(len(drawn), 1), 3)
    yield from draw_bars(name, title, bars, caption, most * len(drawn))
