"""Figures of a run's layers, which hold labels added after generation."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import UNSET

from edgen.config.label_set import LabelSet
from edgen.evaluation.layer_figures import LayerCount, LayerFigures, Shares, find_scale
from edgen.evaluation.layer_pictures import render_layer
from edgen.plugin import Measure, OwnCount, OwnTexts, Sample, Space, Words
from edgen.plugin.measures import (
    ArmResult,
    Block,
    Compared,
    OwnComparisons,
    Shared,
    row,
    rows,
    share_with_interval,
    shorten_line,
    with_interval,
)
from edgen.plugin.texts import BRACKETS, format_interval, percent, quantity
from edgen.stats.clusters import Clusters

Found = dict[str, LayerFigures]
_MOST = 15  # maximum labels, and pairs of annotators, on the terminal


def _draw_layers(found: Sequence[ArmResult[Found]]) -> Iterator[Block]:
    for name in dict.fromkeys(name for one in found for name in one.value):
        layers = [(one.arm, one.value[name]) for one in found if name in one.value]
        yield from render_layer(name, layers)


class LabelsMeasure(OwnCount, OwnTexts, OwnComparisons, Measure[Found]):
    name = "labels"
    definition = (
        "For each layer of a run: the share of units with each majority label (ties have none), by role "
        "and by third of a conversation's turns; transitions from one labelled turn to the next; Cohen's "
        "kappa of every two annotators (Cohen 1960), Fleiss' kappa over units that all label (Fleiss "
        "1971), Krippendorff's alpha (Krippendorff 2011), nominal and with the MASI distance of sets "
        "(Passonneau 2006); and precision, recall, F1 and Jaccard of each annotator against the majority "
        "of the others. Shares have Wilson's interval, the other figures a bootstrap's over scenarios; "
        "beyond 500, scenarios are drawn in 500 groups."
    )
    order = 13
    section = "labels"
    nothing = "This run has no layer of labels; `edgen annotate` makes one."
    panels = (_draw_layers,)

    def start(self, shared: Shared) -> LabelsCount:
        return LabelsCount(shared.data.label_sets, shared.data.identical)

    def lines(self, value: Found) -> Iterator[str]:
        for name, layer in value.items():
            yield from describe_layer(name, layer)

    def sums(self, sample: Sample, space: Space | None) -> Iterator[tuple[str, float]]:  # noqa: ARG002
        """Yield the sums by layer and role: units with labels, units with each label, and the numbers of
        numeric labels."""
        for layer, units in sample.labels.items():
            for unit in units:
                place = f"{layer}\t{unit.role or ''}"
                if unit.labels:
                    yield f"units\t{place}", 1
                yield from ((f"label\t{place}\t{label}", 1) for label in unit.labels)
                scale = find_scale(unit.labels)
                if scale and len(scale) == 1:
                    yield f"points\t{place}", sum(scale.values())
                elif unit.labels:
                    yield f"no number\t{place}", 1

    def compared(self, sums: Collection[str]) -> Iterator[Compared]:
        """Yield comparisons by layer and role: the share of each label among labelled units, and the mean if
        all labels are numbers."""
        for column in sums:
            kind, _, rest = column.partition("\t")
            layer, _, rest = rest.partition("\t")
            role, _, label = rest.partition("\t")
            place, whose = f"{layer}\t{role}", f"{layer}, {role}" if role else layer
            over = f"labelled turns of the {role.lower()}" if role else "labelled conversations"
            name = ".".join(["labels", layer, *([role] if role else [])])
            told = f"in the layer {layer}, by majority; units without a majority label do not count"
            if kind == "label":
                called, what = label, f"The {over} with the label {label} {told}."
            elif kind == "points" and f"no number\t{place}" not in sums:
                called, what = "mean", f"The mean of the labels of {over} {told}."
            else:
                continue
            yield Compared(
                name=f"{name}.{called}", title=f"{whose}: {called}", kind="share" if kind == "label" else "number",
                top=column, bottom=f"units\t{place}", over=over, definition=what,
            )  # fmt: skip


class LabelsCount:
    def __init__(
        self, label_sets: Mapping[str, LabelSet], identical: Mapping[str, tuple[tuple[str, ...], ...]]
    ) -> None:
        self._sets, self._identical = label_sets, identical
        self._clusters = Clusters()
        self._layers: dict[str, LayerCount] = {}

    def see(self, sample: Sample, words: Words) -> None:  # noqa: ARG002
        for name, units in sample.labels.items():
            if name not in self._layers:
                self._layers[name] = LayerCount(self._sets.get(name), self._identical.get(name, ()))
            cluster = self._clusters.of(sample.scenario.index)
            self._layers[name].see(cluster, len(sample.turns), units)

    def result(self) -> Found:
        return {name: count.result() for name, count in sorted(self._layers.items())}


def describe_layer(name: str, layer: LayerFigures) -> Iterator[str]:
    """Yield the terminal's lines on a layer: labels by majority, and the agreement of annotators."""
    units = "turn" if layer.roles else "conversation"
    ties = f", {quantity(layer.ties, 'tie')}" if layer.ties else ""
    by = quantity(len(layer.annotators), "annotator")
    yield row(shorten_line(name, 26), f"{quantity(layer.units, units)} by {by}{ties}")
    for role, shares in (layer.roles or {"": layer.overall}).items():
        if len(layer.roles) > 1:
            yield row(f"  {shorten_line(role, 24)}", quantity(shares.units, "labelled turn"))
        yield from _describe_shares(shares)
    yield from _describe_agreement(layer)
    if layer.transitions:
        told = [f"{a} → {b} {count:,}" for a, b, count in layer.transitions[:3]]
        yield from rows("  most often next", ", ".join(told))


def _describe_shares(shares: Shares) -> Iterator[str]:
    if shares.mean is not None:
        yield row("  mean", with_interval(shares.mean, ".2f"))
    used = [label for label, count in shares.counts.items() if count]
    most = sorted(used, key=lambda label: -shares.counts[label])[:_MOST]
    for label in used:
        if label in most:
            yield row(f"  {shorten_line(label, 24)}", share_with_interval(shares.shares[label]))
    never = [label for label, count in shares.counts.items() if not count]
    if len(used) > len(most):
        yield row("", f"and {len(used) - len(most):,} more labels")
    if never:
        yield from rows("  never", ", ".join([*never[:_MOST], *(["…"] if len(never) > _MOST else [])]))


def _describe_agreement(layer: LayerFigures) -> Iterator[str]:
    found = layer.agreement
    if layer.not_available is not UNSET:
        yield from rows("  agreement", layer.not_available)
    if not found.units:
        return
    yield row("  alpha", format_estimate(found.alpha, found.alpha_interval))
    if layer.several:
        yield row("  alpha by MASI", format_estimate(found.alpha_masi, found.alpha_masi_interval))
    if layer.independent > 2 and found.units_by_all:
        yield row("  Fleiss' kappa", format_estimate(found.fleiss, found.fleiss_interval))
    for one in found.between[:_MOST]:
        yield row(
            "  kappa",
            f"{format_estimate(one.kappa, one.kappa_interval)}, alike {percent(one.observed)} of {one.n:,}",
        )
        yield row("", shorten_line(" and ".join(one.annotators), 48))
    if len(found.between) > _MOST:
        yield row("", f"and {len(found.between) - _MOST:,} more pairs of annotators")
    for name, figures in [*layer.against_rest.items()][:_MOST] if layer.independent > 2 else ():
        label = f"  {shorten_line(name, 12)} against others"
        yield row(label, f"micro F1 {share_with_interval(figures.micro.f1)} of {figures.units:,}")


def format_estimate(value: float | None, span: tuple[float, float] | None) -> str:
    """Format a value with its interval, as in `0.613 [0.580, 0.640]`."""
    if value is None:
        return "nothing tells"
    low, high = span or (None, None)
    return f"{value:.3f}" + format_interval(low, high, "{:.3f}".format, BRACKETS)


MEASURE = LabelsMeasure()
