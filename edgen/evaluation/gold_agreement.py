"""Agreement of a layer's annotators and their majority with gold labels. Memory: counts by cluster of
scenarios."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from edgen.core.text import quantity
from edgen.evaluation.terminal import row, rows, share_with_interval, shorten_line
from edgen.reading.answers.unit_labels import Labels
from edgen.stats.label_figures import LabelCounts, LabelFigures
from edgen.store.layers import UnitLabels


class GoldFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The majority and each annotator against gold: precision, recall, F1 and Jaccard by label, micro and
    macro; and the bias by label: how much more often than gold the label is given."""

    gold: str  # name of the gold file or layer
    units: int  # units with labels in both
    ties: int  # units without a majority, which count as wrong for the majority
    unlabelled: int  # units with labels only in gold
    majority: LabelFigures  # the majority against gold
    annotators: dict[str, LabelFigures]  # each against gold, by name


class GoldCount:
    """The counts of a layer against gold labels; `gold` is their name."""

    def __init__(self, gold: str) -> None:
        self._gold = gold
        self._units = self._ties = self._unlabelled = 0
        self._most = LabelCounts()
        self._annotators: defaultdict[str, LabelCounts] = defaultdict(LabelCounts)

    def see(self, cluster: int, units: Sequence[UnitLabels], gold: Mapping[int | None, Labels]) -> None:
        """Add the units of a conversation, and its gold labels by turn. `cluster`: the scenario's cluster."""
        found = [unit for unit in units if unit.turn in gold]
        self._unlabelled += len(gold) - len(found)
        self._units += len(found)
        for unit in found:
            true = gold[unit.turn]
            self._ties += unit.tie
            self._most.add(cluster, true, unit.labels)
            for name, labels in unit.annotators.items():
                self._annotators[name].add(cluster, true, labels)

    def result(self) -> GoldFigures:
        return GoldFigures(
            gold=self._gold,
            units=self._units,
            ties=self._ties,
            unlabelled=self._unlabelled,
            majority=self._most.figures(),
            annotators={name: counts.figures() for name, counts in sorted(self._annotators.items())},
        )


def describe_gold(found: GoldFigures) -> Iterator[str]:
    """Yield lines for the terminal: each annotator over all labels, and the biases that exclude chance."""
    missing = f", {found.unlabelled:,} more have no labels in the layer" if found.unlabelled else ""
    ties = f", {quantity(found.ties, 'tie')}" if found.ties else ""
    yield from rows("against gold", f"{quantity(found.units, 'unit')} of {found.gold}{ties}{missing}")
    if not found.units:
        return
    everybody = found.annotators if len(found.annotators) < 2 else {"": found.majority, **found.annotators}
    for name, figures in everybody.items():
        yield row(
            f"  {shorten_line(name or 'most of them', 24)}",
            f"exact {share_with_interval(figures.exact)} of {figures.units:,}",
        )
        for title, scores in (("micro", figures.micro), ("macro", figures.macro)):
            told = (("P", scores.precision), ("R", scores.recall), ("J", scores.jaccard))
            values = [f"{short} {'-' if one is None else f'{one.value:.2f}'}" for short, one in told]
            yield row(f"    {title}", f"F1 {share_with_interval(scores.f1)} {' '.join(values)}")
        biased = [
            f"{shorten_line(label, 20)} {one.bias.value:+.1%} [{one.bias.low:+.1%}, {one.bias.high:+.1%}]"
            for label, one in figures.labels.items()
            if one.bias is not None
            and one.bias.low is not None
            and one.bias.high is not None
            and (one.bias.low > 0 or one.bias.high < 0)
        ]
        for place, words in enumerate(biased):
            yield row("" if place else "    more or less often", words)
