"""A measure's figures as pictures and tables of a report, from what its aggregates and panels declare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
    parts_of,
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
    bars_picture,
    histograms_picture,
    interval_of,
    intervals_picture,
    label_with_arm,
    mean_of,
    series_colour,
    share_of,
)
from edgen.evaluation.terminal import join_shares
from edgen.stats.intervals import Estimate

V = TypeVar("V")
_MOST_BARS = 24
_CAPTIONS = {  # of a panel without its own
    Share: "Shares with their 95% intervals.",
    Mean: "Means with their 95% intervals.",
    Tally: "How often each of these occurs, the most frequent first.",
}


class ArmResult(NamedTuple, Generic[V]):
    """A measure's value for a run, or for one arm of it. `arm` is "" without arms, `name` the arm's or the
    run's; `job` is as resolved, `guide`: see `JobSettings.guide`."""

    arm: str
    name: str
    value: V
    job: Mapping[str, Any]
    guide: Any = None


class Panel(msgspec.Struct, frozen=True):
    """A picture of figures of one kind, every arm side by side: shares and means as dots on their intervals,
    distributions as histograms, counts of texts as bars, a crossed table as a table."""

    name: str  # unique in the report
    title: str  # above the picture
    figures: tuple[str, ...]
    """Names of aggregates of one class."""
    caption: str = ""  # the point to look for
    axis: Axis | None = None
    """None: the usual one of the class."""
    of: str = ""
    """Of counts: the figure that bars are shares of."""
    colour_keys: bool = False
    """Whether each key of a figure by key has a colour, in place of each arm."""
    folded: str = ""
    """As of a picture: what it is folded away under, with others of the same words."""
    told: str = ""
    """Of a folded share, or a mean of shares: what the page says of it all the same, before its values."""


def draw_panels(
    panels: Sequence[Panel], aggregates: Sequence[Aggregate], found: Sequence[ArmResult[Any]]
) -> Iterator[Block]:
    """Yield the pictures and tables of these panels."""
    by_name = {one.name: one for one in aggregates}
    for one in aggregates:
        if isinstance(one, ByKey):
            by_name |= {f"{one.name}.{inner.name}": inner for inner in one.each}
    for panel in panels:
        shown = [(by_name[name], name) for name in panel.figures]
        if panel.told and (said := _describe_shares(panel.figures[0], found)):
            yield f"{panel.told}: {said}."
        for block in _draw(panel, shown, found):
            yield msgspec.structs.replace(block, folded=panel.folded) if isinstance(block, Picture) else block


def _describe_shares(figure: str, found: Sequence[ArmResult[Any]]) -> str:
    """Return the value of a share in each arm that has it."""
    estimates = [(one.arm, getattr(one.value, figure)) for one in found]
    return ", ".join(
        f"{arm} {percent(estimate.value)}".strip() for arm, estimate in estimates if estimate is not None
    )


def _figure(value: Any, path: str) -> Any:
    """Return the figure of a name; of `name.inner`, the inner figures by key, those that are by key
    themselves under both."""
    outer, _, inner = path.partition(".")
    figure = getattr(value, outer)
    if not inner:
        return figure
    parts = {key: getattr(part, inner) for key, part in figure.items()}
    if not any(isinstance(part, Mapping) for part in parts.values()):
        return parts
    return {f"{key}: {own}": one for key, part in parts.items() for own, one in part.items()}


def list_usual_panels(measure: str, aggregates: Sequence[Aggregate]) -> Iterator[Panel]:
    """Yield a picture of all shares, and one of each other figure, for a measure that declares none."""
    shares = tuple(one.name for one in aggregates if isinstance(one, Share))
    words, total = readable_name(measure).capitalize(), ""
    if shares:
        yield Panel(measure, words, shares)
    for one in aggregates:
        total = one.name if isinstance(one, Total) else total
        if isinstance(one, Mean | Histogram | Tally | Crossed):
            titled = f"{words}: {_words_of(one)}" if len(aggregates) > 1 else words
            yield Panel(f"{measure}-{one.name}", titled, (one.name,), of=total)


def _words_of(one: Aggregate) -> str:
    return readable_name(one.name) if "{key}" in one.label else one.label.strip() or readable_name(one.name)


def _draw(
    panel: Panel, shown: Sequence[tuple[Aggregate, str]], found: Sequence[ArmResult[Any]]
) -> Iterator[Block]:
    first, path = shown[0]
    caption = panel.caption or _CAPTIONS.get(type(first), "")
    if isinstance(first, Share | Mean):
        said = share_of if isinstance(first, Share) else mean_of
        axis = panel.axis or (SHARES if isinstance(first, Share) else Axis())
        dots = [
            interval_of(label, estimate, said(estimate), colour)
            for label, estimate, colour in _intervals(shown, found)
        ]
        yield from intervals_picture(panel.name, panel.title, dots, caption, axis)
    elif isinstance(first, Histogram):
        axis = panel.axis or (SHARES if first.shares else WHOLE_NUMBERS)
        drawn = [*_histograms(panel, shown, found)]
        yield from histograms_picture(panel.name, panel.title, drawn, axis, caption)
    elif isinstance(first, Crossed):
        yield from _table(panel, first, found)
    else:
        counted = [(one.arm, *_parts(one.value, path, panel.of)) for one in found]
        yield from bars_of_counts(panel.name, panel.title, caption, counted)


def _intervals(
    shown: Sequence[tuple[Aggregate, str]], found: Sequence[ArmResult[Any]]
) -> Iterator[tuple[str, Estimate, str]]:
    """(label, estimate, colour) of each figure and key in each arm that has it."""
    for one, path in shown:
        figures = [dict(parts_of(_figure(arm.value, path))) for arm in found]
        title = one.title or ("{key}" if "{key}" in one.label else "")
        if not title and len(shown) > 1:
            title = _words_of(one)
        for key in dict.fromkeys(key for by_key in figures for key in by_key):
            for place, (arm, by_key) in enumerate(zip(found, figures, strict=True)):
                words = label_with_arm(title.format(key=key), arm.arm) if title else arm.name
                if (estimate := by_key.get(key)) is not None:
                    yield words, estimate, series_colour(place)


def _parts(value: Any, path: str, of: str) -> tuple[dict[str, tuple[int, int]], int]:
    """Counts by key, each with the number of things that it is of: the figure `of`, else the sum of the
    counts; and how many things there are."""
    outer, _, inner = path.partition(".")
    if inner:
        found: dict[str, tuple[int, int]] = {}
        things = 0
        for key, part in getattr(value, outer).items():
            counts, total = _parts(part, inner, of)
            found |= {f"{key}: {own}": one for own, one in counts.items()}
            things += total
        return found, things
    counts = getattr(value, outer)
    total = getattr(value, of) if of else sum(counts.values())
    return {key: (count, total) for key, count in counts.items()}, total


def _histograms(
    panel: Panel, shown: Sequence[tuple[Aggregate, str]], found: Sequence[ArmResult[Any]]
) -> Iterator[HistogramBars]:
    for place, arm in enumerate(found):
        for one, path in shown:
            for number_of, (key, each) in enumerate(parts_of(_figure(arm.value, path))):
                title = one.title.format(key=key) if one.title else key
                words = label_with_arm(title, arm.arm) if title else arm.name
                yield HistogramBars(words, each, series_colour(number_of if panel.colour_keys else place))


def _table(panel: Panel, one: Crossed, found: Sequence[ArmResult[Any]]) -> Iterator[Table]:
    cells = tuple(
        (label_with_arm(f"{row} ({count:,})", arm.arm), join_shares(shares))
        for arm in found
        for row, (count, shares) in getattr(arm.value, one.name).items()
    )
    if cells:
        yield Table(one.heads, cells, panel.title, "plain")


def bars_of_counts(
    name: str, title: str, caption: str, counted: Sequence[tuple[str, Mapping[str, tuple[int, int]], int]]
) -> Iterator[Picture]:
    """Yield counts of each arm, as (arm, (count, total) by kind, total of all), as bars of shares: the
    largest first, every arm side by side."""
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
    # whole kinds, so that no arm is missing next to the others
    most = max(_MOST_BARS // max(len(drawn), 1), 3)
    yield from bars_picture(name, title, bars, caption, most * len(drawn))


def share_intervals(found: Sequence[ArmResult[V]], shares: Sequence[tuple[str, Any]]) -> list[Interval]:
    """Return each share, as (name, function of a value), of each arm that has one."""
    return [
        interval_of(label_with_arm(words, one.arm), estimate, share_of(estimate), series_colour(place))
        for words, get in shares
        for place, one in enumerate(found)
        if (estimate := get(one.value)) is not None
    ]
