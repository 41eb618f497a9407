"""Figures of a layer of labels: frequency and order of labels, agreement of annotators.

Labels by the majority of annotators are counted; ties are counted apart, and have no label. Memory: for each
of at most 500 clusters of scenarios (`edgen.stats.clusters`), some numbers for every two labels, and for
every label of every two annotators.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Sequence

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from edgen.config.label_set import LabelSet, find_majority, make_inline_set
from edgen.core.text import join_list
from edgen.reading.answers.unit_labels import Labels
from edgen.stats.annotators import AgreementCounts, AnnotatorAgreement
from edgen.stats.clusters import ClusterSums
from edgen.stats.confusion import Confusion, ConfusionCounts
from edgen.stats.intervals import Estimate, average, share
from edgen.stats.label_figures import LabelCounts, LabelFigures
from edgen.stats.resampling import Floats
from edgen.store.layers import UnitLabels

THIRDS = ("first", "middle", "last")


class Shares(msgspec.Struct, frozen=True, kw_only=True):
    """Frequency of labels among the units that have labels."""

    units: int  # units with labels, without ties
    ties: int  # units where no labels have a majority
    counts: dict[str, int]  # units with each label
    shares: dict[str, Estimate]  # share of the units, by label
    mean: Estimate | None = None  # mean of labels that are numbers on a scale
    thirds: dict[str, Shares] = {}
    """The same figures in each third of the conversations' turns, if turns are labelled."""


class LayerFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of a layer."""

    units: int  # units with labels
    ties: int  # units where no labels have a majority
    several: bool  # whether any unit has more than one label
    annotators: dict[str, int]  # labelled units by annotator's name
    overall: Shares  # shares over all units
    roles: dict[str, Shares]  # shares by speaker, if turns are labelled
    transitions: tuple[tuple[str, str, int], ...]  # label, label of the next labelled turn, count
    agreement: AnnotatorAgreement  # between annotators
    confusion: tuple[Confusion, ...]  # by pair of annotators
    against_rest: dict[str, LabelFigures]  # annotators against the others' majority, without ties
    identical: tuple[tuple[str, ...], ...] | UnsetType = UNSET
    """Groups of annotators that send identical requests; only one of each group counts for agreement."""
    not_available: str | UnsetType = UNSET  # why agreement is missing

    @property
    def independent(self) -> int:
        """The number of annotators with different requests."""
        groups = () if self.identical is UNSET else self.identical
        return len(self.annotators) - sum(len(group) - 1 for group in groups)

    @property
    def labels(self) -> list[str]:
        """Every label, in the label set's order if it is known."""
        return [*self.overall.counts]


class LayerCount:
    """The count of one layer. `labels`: its label set; None if unknown. `identical`: groups of annotators
    that send identical requests."""

    def __init__(self, labels: LabelSet | None = None, identical: tuple[tuple[str, ...], ...] = ()) -> None:
        self._set = labels
        self._identical = identical
        self._several = False
        self._sums = ClusterSums()
        self._roles: Counter[str] = Counter()
        self._labels: Counter[str] = Counter()
        self._annotators: Counter[str] = Counter()
        self._transitions: Counter[tuple[str, str]] = Counter()
        self._agreement = AgreementCounts()
        self._confusion = ConfusionCounts()
        self._rest: defaultdict[str, LabelCounts] = defaultdict(LabelCounts)

    def see(self, cluster: int, turns: int, units: Sequence[UnitLabels]) -> None:
        """Add the units of a conversation with `turns` turns, in order. `cluster`: the scenario's cluster."""
        before: Labels = ()
        for unit in units:
            self._annotators.update([*unit.annotators])
            self._several |= any(len(labels) > 1 for labels in unit.annotators.values())
            independent = self._drop_identical(unit.annotators)
            self._agreement.add(independent, cluster)
            self._confusion.add(independent)
            self._add_against_rest(cluster, independent)
            place = (unit.role or "", None if unit.turn is None else min(2, 3 * unit.turn // max(turns, 1)))
            self._roles[place[0]] += 1
            self._sums.add(cluster, (place, "units" if unit.labels else "ties"))
            for label in unit.labels:
                self._sums.add(cluster, (place, "label", label))
            self._labels.update(unit.labels)
            self._transitions.update(itertools.product(before, unit.labels))
            before = unit.labels

    def _drop_identical(self, said: dict[str, Labels]) -> dict[str, Labels]:
        """Return the labels of a unit; of annotators with identical requests, only the first one's."""
        if not self._identical:
            return said
        twins = {name for group in self._identical for name in [one for one in group if one in said][1:]}
        return {name: labels for name, labels in said.items() if name not in twins}

    def _add_against_rest(self, cluster: int, said: dict[str, Labels]) -> None:
        for name, own in said.items():
            others = [labels for other, labels in said.items() if other != name]
            if others:
                most, tie = find_majority(others, self._set or _set_of(others))
                if not tie:
                    self._rest[name].add(cluster, most, own)

    def result(self) -> LayerFigures:
        listed = () if self._set is None else self._set.names
        order = [*listed, *sorted({*self._labels} - {*listed}, key=lambda one: (-self._labels[one], one))]
        roles = [role for role, _ in self._roles.most_common() if role]
        overall = self._compute_shares(["", *roles], order)
        found = tuple(tuple(name for name in group if name in self._annotators) for group in self._identical)
        identical = tuple(group for group in found if len(group) > 1)
        return LayerFigures(
            identical=identical or UNSET,
            not_available=explain_unavailable(identical) if identical else UNSET,
            units=overall.units + overall.ties,
            ties=overall.ties,
            several=self._several,
            annotators=dict(sorted(self._annotators.items())),
            overall=overall,
            roles={role: self._compute_shares([role], order) for role in roles},
            transitions=tuple(
                (*pair, count)
                for pair, count in sorted(self._transitions.items(), key=lambda one: (-one[1], one[0]))
            ),
            agreement=self._agreement.result(),
            confusion=self._confusion.result(order),
            against_rest={name: counts.figures() for name, counts in sorted(self._rest.items())},
        )

    def _compute_shares(self, roles: Sequence[str], order: Sequence[str]) -> Shares:
        whole = self._compute_shares_at([(role, third) for role in roles for third in (None, 0, 1, 2)], order)
        thirds = {
            name: self._compute_shares_at([(role, place) for role in roles], order)
            for place, name in enumerate(THIRDS)
        }
        by_turn = any(one.units + one.ties for one in thirds.values())
        return msgspec.structs.replace(whole, thirds=thirds) if by_turn else whole

    def _compute_shares_at(self, places: Sequence[tuple[str, int | None]], order: Sequence[str]) -> Shares:
        def find_total(*key: str) -> Floats:
            found: Floats = np.sum([self._sums.find_column((place, *key)) for place in places], axis=0)
            return found

        units = find_total("units")
        there = np.flatnonzero(units)
        columns = {label: find_total("label", label) for label in order}
        scale = None if self._several else find_scale(order)
        points = sum((columns[label] * value for label, value in (scale or {}).items()), np.zeros_like(units))
        return Shares(
            units=int(units.sum()),
            ties=int(find_total("ties").sum()),
            counts={label: int(column.sum()) for label, column in columns.items()},
            shares={
                label: estimate
                for label, column in columns.items()
                if (estimate := share(column[there], there, units[there])) is not None
            },
            mean=average(points[there], there, units[there]) if scale else None,
        )


def _set_of(given: Sequence[Labels]) -> LabelSet:
    """Return a label set of the labels that annotators gave a unit."""
    names = sorted({label for labels in given for label in labels})
    several = any(len(labels) > 1 for labels in given)
    return make_inline_set("found", dict.fromkeys(names, "as found"), several=several)


def find_scale(labels: Sequence[str]) -> dict[str, float] | None:
    """Return the labels as numbers on a scale; None if a label is no number."""
    try:
        found = {label: float(label) for label in labels if label.isascii()}
    except ValueError:
        return None
    return found if len(found) == len(labels) and all(map(math.isfinite, found.values())) else None


def explain_unavailable(groups: Sequence[Sequence[str]]) -> str:
    """Return the sentence on why agreement is not available."""
    said = "; ".join(join_list(group) for group in groups)
    return (
        f"not available for {said}: these annotators send identical requests (the same model and template, "
        "no seeds), so their agreement is that of one model with itself. Give each annotator another model "
        "or template, or use a service that takes a seed (`seed: auto`)."
    )
