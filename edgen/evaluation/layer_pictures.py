"""Pictures of a layer of labels in the report, every arm side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec import UNSET

from edgen.core.text import NONE, format_interval, number, percent, quantity
from edgen.evaluation.drawings import (
    Axis,
    Block,
    Cells,
    Interval,
    Picture,
    Table,
    draw_intervals,
    interval_of,
    label_with_arm,
    series_colour,
    shade_of,
    share_of,
)
from edgen.evaluation.layer_figures import LayerFigures, Shares
from edgen.stats.confusion import Confusion
from edgen.stats.label_figures import LabelFigures

_DRAWN = 15  # maximum labels in a heat map
_NAMED = 20  # characters of a label that fit a row of the heat map
_PAIRS = 6  # maximum pairs of annotators with a picture
_KAPPA = Axis(tick=lambda value: f"{value:g}", low=0, high=1)

Layers = Sequence[tuple[str, LayerFigures]]  # (arm, figures)


def render_layer(name: str, layers: Layers) -> Iterator[Block]:
    """Yield everything about one layer: pictures of frequencies, transitions, agreement and confusion, with
    their numbers."""
    yield from _draw_frequencies(name, layers)
    for place, (arm, layer) in enumerate(layers):
        yield from _draw_transitions(f"labels-{name}-next-{place}", label_with_arm(name, arm), layer)
    yield from _render_agreement(name, layers)
    for place, (arm, layer) in enumerate(layers):
        for pair, one in enumerate(layer.confusion[:_PAIRS]):
            yield _draw_confusion(
                f"labels-{name}-confusion-{place}-{pair}", label_with_arm(name, arm), one, layer
            )
    yield from _tabulate_thirds(name, layers)
    yield from _list_rest_tables(name, layers)
    yield from _list_two_by_two(name, layers)


def _draw_frequencies(name: str, layers: Layers) -> Iterator[Picture]:
    """Yield a picture for each role, or for whole conversations; its caption names labels that no arm
    uses."""
    for role in dict.fromkeys(role for _, layer in layers for role in (layer.roles or ("",))):
        parts = [(place, arm, _of_role(layer, role)) for place, (arm, layer) in enumerate(layers)]
        labels = dict.fromkeys(label for _, _, shares in parts for label in shares.counts)
        used = [label for label in labels if any(shares.counts.get(label) for _, _, shares in parts)]
        drawn = [
            interval_of(label_with_arm(label, arm), one, share_of(one), series_colour(place))
            for label in used[: 2 * _DRAWN]
            for place, arm, shares in parts
            if (one := shares.shares.get(label)) is not None
        ]
        never = [label for label in labels if label not in used]
        caption = "Majority labels; ties have no label."
        caption += f" Never: {', '.join(never[:20])}." if never else " Every label is used."
        means = "; ".join(
            f"{label_with_arm('mean', arm)} {shares.mean.value:.2f}"
            for _, arm, shares in parts
            if shares.mean
        )
        caption += f" {means[0].upper()}{means[1:]}." if means else ""
        words = f"{name}: {role}" if role else name
        yield from draw_intervals(f"labels-{name}-{role or 'all'}", words, drawn, caption)


def _of_role(layer: LayerFigures, role: str) -> Shares:
    empty = Shares(units=0, ties=0, counts={}, shares={})
    return layer.roles.get(role, empty) if layer.roles else layer.overall


def _draw_transitions(name: str, about: str, layer: LayerFigures) -> Iterator[Picture]:
    counts = {(a, b): count for a, b, count in layer.transitions}
    if counts:
        yield _draw_heat_map(
            name, f"Transitions between labels: {about}", layer, counts,
            "Rows: the label of a turn; columns: that of the next labelled turn; percent of the row. Look "
            "for rows that lead "
            "to themselves, and for columns that everything leads to.", ("label", "times followed by"),
        )  # fmt: skip


def _draw_confusion(name: str, about: str, one: Confusion, layer: LayerFigures) -> Picture:
    first, second = one.annotators
    counts = {(a, b): count for a, b, count in one.pairs}
    what = "also carried" if layer.several else "for the same units"
    return _draw_heat_map(
        name, f"{first} and {second}: {about}", layer, counts,
        f"Rows: labels by {first}; columns: labels by {second} {what}; percent of the row. Look for values "
        "off the diagonal.",
        (f"{first}'s", f"{second}'s"),
    )  # fmt: skip


def _draw_heat_map(
    name: str, title: str, layer: LayerFigures, counts: Mapping[tuple[str, str], int], caption: str,
    heads: tuple[str, str],
) -> Picture:  # fmt: skip
    """Return counts of label pairs as a heat map, in percent of rows: the most frequent labels, in the set's
    order."""
    totals = Counter[str]()
    often = Counter[str]()
    for (a, b), count in counts.items():
        totals[a] += count
        often[a] += count
        often[b] += count
    used = [label for label in layer.labels if often[label]]
    used += [label for label in often if label not in used]
    top = {label for label, _ in often.most_common(_DRAWN)}
    drawn = [label for label in used if label in top]
    cells = [[_compute_percent(counts.get((a, b), 0), totals[a]) for b in drawn] for a in drawn]
    if len(used) > len(drawn):
        caption += f" The {len(drawn)} most frequent of {len(used)} labels; the table has all."
    columns = used if len(used) <= 2 * _DRAWN else []
    if columns:
        head = (f"{heads[0]} / {heads[1]}", *columns, "all")
        rows = tuple((a, *(number(counts.get((a, b), 0)) for b in columns), number(totals[a])) for a in used)
        table = Table(head, rows, style="wide")
    else:
        listed = sorted(counts.items(), key=lambda one: -one[1])
        table = Table((*heads, "n"), tuple((a, b, number(count)) for (a, b), count in listed), style="plain")
    most = max((cell for row in cells for cell in row), default=0)
    said = "; ".join(
        f"{a}: {', '.join(f'{b} {cell}%' for b, cell in zip(drawn, row, strict=True) if cell)}"
        for a, row in zip(drawn, cells, strict=True)
    )
    return Picture(
        name=name,
        title=title,
        chart=Cells(drawn, len(drawn), [[0] * len(drawn)] * len(drawn), cells),
        caption=caption,
        alternative=f"Heat map: {title}. {said}.",
        tables=(table,),
        legend=tuple((f"level-{shade_of(one, most)}", f"{one}%") for one in dict.fromkeys((0, most // 2, most))),
        key=(("Labels, rows and columns", tuple(drawn)),) if max(map(len, drawn)) > _NAMED else (),
    )  # fmt: skip


def _compute_percent(count: int, of: int) -> int:
    """Return a count as percent; a count above 0 is never 0%."""
    return max(1, round(100 * count / of)) if count else 0


def _render_agreement(name: str, layers: Layers) -> Iterator[Block]:
    """Yield pictures of alphas and kappas, and of each annotator against the others; a table of all pairs."""
    rows, pairs = [], []
    for place, (arm, layer) in enumerate(layers):
        found = layer.agreement
        values = [("alpha", found.alpha, found.alpha_interval)]
        if layer.several:
            values.append(("alpha by MASI", found.alpha_masi, found.alpha_masi_interval))
        if layer.not_available is not UNSET:
            yield label_with_arm(f"Agreement of annotators ({name}) is {layer.not_available}", arm)
        if layer.independent > 2:
            values.append(("Fleiss' kappa", found.fleiss, found.fleiss_interval))
        for one in found.between:
            both = " and ".join(one.annotators)
            if len(found.between) <= 2 * _PAIRS:
                values.append((f"kappa: {both}", one.kappa, one.kappa_interval))
            kappa = NONE if one.kappa is None else _with(one.kappa, one.kappa_interval)
            pairs.append((label_with_arm(both, arm), kappa, percent(one.observed), number(one.n)))
        rows += [
            _make_interval(label_with_arm(words, arm), value, span, series_colour(place))
            for words, value, span in values
            if value is not None
        ]  # fmt: skip
    order = {words.partition(" · ")[0]: place for place, words in enumerate(row.label for row in rows)}
    rows.sort(key=lambda row: order[row.label.partition(" · ")[0]])
    yield from draw_intervals(
        f"labels-{name}-agreement", f"Agreement of annotators: {name}", rows,
        "Agreement beyond chance: 0 is the level of chance, 1 is full agreement. There is no value if all "
        "annotators always give the same label.",
        _KAPPA,
    )  # fmt: skip
    against = [
        interval_of(
            label_with_arm(who, arm), f1, f"{share_of(f1)} of {figures.units:,}", series_colour(place)
        )
        for place, (arm, layer) in enumerate(layers)
        if layer.independent > 2
        for who, figures in layer.against_rest.items()
        if (f1 := figures.micro.f1) is not None
    ]
    yield from draw_intervals(
        f"labels-{name}-rest", f"Each annotator against the others: {name}", against[: 4 * _PAIRS],
        "Micro F1 against the majority label of the other annotators, without ties. Look for an annotator "
        "who stands apart.",
    )  # fmt: skip
    if pairs:
        yield Table(
            ("annotators", "kappa", "alike", "units"),
            tuple(pairs),
            f"Agreement of each pair of annotators: {name}",
        )


def _make_interval(label: str, value: float, span: tuple[float, float] | None, colour: str) -> Interval:
    low, high = span or (None, None)
    return Interval(label, value, low, high, _with(value, span), colour)


def _with(value: float, span: tuple[float, float] | None) -> str:
    low, high = span or (None, None)
    return f"{value:.2f}" + format_interval(low, high, "{:.2f}".format)


def _tabulate_thirds(name: str, layers: Layers) -> Iterator[Table]:
    """Yield tables of shares by third of the conversations."""
    for role in dict.fromkeys(role for _, layer in layers for role in layer.roles):
        rows = []
        for arm, layer in layers:
            shares = _of_role(layer, role)
            if shares.mean is not None:
                rows.append(
                    (label_with_arm("mean", arm), *(_format_mean(third) for third in shares.thirds.values()))
                )
            rows += [
                (label_with_arm(label, arm),
                *(share_of(third.shares.get(label)) for third in shares.thirds.values()))
                for label, count in shares.counts.items()
                if count
            ]  # fmt: skip
        head = ("label", "first third", "middle third", "last third")
        yield Table(head, tuple(rows), f"{name}, {role}: by third of a conversation's turns")


def _format_mean(shares: Shares) -> str:
    return NONE if shares.mean is None else f"{shares.mean.value:.2f}"


def _list_rest_tables(name: str, layers: Layers) -> Iterator[Table]:
    rows = tuple(
        row
        for arm, layer in layers
        for who, figures in layer.against_rest.items()
        for row in list_score_rows(label_with_arm(who, arm), figures)
    )
    if rows:
        yield Table(
            ("annotator, label", *SCORES),
            rows,
            f"Each annotator against the others, by label: {name}",
            "wide",
        )


SCORES = ("units", "precision", "recall", "F1", "Jaccard", "bias")


def list_score_rows(who: str, figures: LabelFigures) -> Iterator[tuple[str, ...]]:
    """Yield rows of a table with the heads SCORES: micro and macro over all labels, then by label."""
    for title, scores in (("micro", figures.micro), ("macro", figures.macro)):
        told = (share_of(one) for one in (scores.precision, scores.recall, scores.f1, scores.jaccard))
        yield (f"{who}: {title}", number(figures.units), *told, "")
    for label, one in figures.labels.items():
        told = (share_of(score) for score in (one.precision, one.recall, one.f1, one.jaccard, one.bias))
        yield (f"{who}: {label}", number(one.gold), *told)


def _list_two_by_two(name: str, layers: Layers) -> Iterator[Table]:
    """Yield a table of each label on its own, by every two annotators, for units with several labels."""
    rows = tuple(
        (label_with_arm(f"{label}: {first}, {second}", arm),
        *map(number, (cell.both, cell.first, cell.second, cell.neither)))
        for arm, layer in layers
        if layer.several
        for one in layer.confusion
        for first, second in [one.annotators]
        for label, cell in one.labels.items()
    )  # fmt: skip
    if rows:
        head = ("label: annotators", "both", "first alone", "second alone", "neither")
        yield Table(head, rows, f"Labels that two annotators share, {quantity(len(rows), 'row')}: {name}")
