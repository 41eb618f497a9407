"""Overlap of the test side with train: by value of each dimension, and by all values together.

For Education Dialogue: by topic, by persona (the four texts of preferences and reactions, as in `split: {by:
persona}`), and by both together.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgen.plugin import Measure, OwnCount, ReportWords, Sample, Total, Words, part_of
from edgen.plugin.families import KindDefaults
from edgen.plugin.measures import Aggregate, ArmResult, ByKey, Panel, Shared
from edgen.plugin.texts import readable_name

_SIDES = ("train", "test")
_NAMED = ("topic", "persona", "topic and persona")  # groups with their own fields in `Leakage`
_OVERLAP = "{shared_groups} of test's {test_groups} in train: {share:.1%} of test"
_DRAWN = "{it:.1%} ({shared_conversations:,} of {test_conversations:,})"
_PLURALS = {"topic": "topics", "persona": "personas"}

Groups = NDArray[np.intp]


class SplitOverlap(msgspec.Struct, frozen=True, kw_only=True):
    """Groups (such as topics) of the test side: how many are also in train, and their test conversations."""

    test_groups: int
    shared_groups: int
    test_conversations: int
    shared_conversations: int
    share: float  # share of test conversations


class Leakage(msgspec.Struct, frozen=True, kw_only=True):
    """Overlap of the test side with train, by kind of group; None without a split. `groups`: the overlaps of
    other families than Education Dialogue's."""

    topic: SplitOverlap | None = None
    persona: SplitOverlap | None = None
    topic_and_persona: SplitOverlap | None = None
    near_duplicates: int | None = None
    groups: dict[str, SplitOverlap] | msgspec.UnsetType = msgspec.UNSET

    @property
    def by_group(self) -> dict[str, SplitOverlap]:
        """Every overlap, by name of the kind of group."""
        if self.groups is not msgspec.UNSET:
            return self.groups
        known = zip(_NAMED, (self.topic, self.persona, self.topic_and_persona), strict=True)
        return {name: overlap for name, overlap in known if overlap is not None}

    @property
    def tested(self) -> int:
        """The number of test conversations."""
        return max((overlap.test_conversations for overlap in self.by_group.values()), default=0)

    @property
    def near_share(self) -> float | None:
        """The share of test conversations with a near-duplicate in train; None if unknown."""
        return (
            self.near_duplicates / self.tested if self.near_duplicates is not None and self.tested else None
        )


def _write_caption(found: Sequence[ArmResult[Any]]) -> str:
    """Return the picture's caption, with the family's words for groups."""
    groups = " or ".join(f"{word}s" for word in part_of(found[0].family, ReportWords).group_words)
    return (
        "Which of these matters depends on what a model has to generalise to; split.by in the job keeps "
        f"{groups} apart. A near-duplicate on both sides is bad for any use."
    )


class LeakageMeasure(OwnCount, Measure[Leakage]):
    name = "leakage"
    definition = (
        "Test conversations whose topic, whose persona (both sides' preferences and reactions), or whose "
        "topic and persona together are in train, too, and those with a near-duplicate there; in other "
        "spaces, those whose value of a dimension is in train, or all their values together. edgen's own "
        "definition."
    )
    order = 6
    section = "duplicates"
    aggregates = (
        ByKey(
            "by_group",
            each=(
                Aggregate("share", label="{key}", says=_OVERLAP, title="{key} also in train", drawn=_DRAWN),
            ),
            names=lambda name: _PLURALS.get(name) or readable_name(name),
            required=True,
        ),
        Total("near_duplicates", label="near-duplicates", says="{it:,} conversations of test"),
        Aggregate(
            "near_share",
            title="near-duplicate in train",
            drawn="{it:.1%} ({near_duplicates:,} of {tested:,})",
        ),
        Aggregate(
            "persona",
            if_any=True,
            note="A persona is both sides' preferences and reactions. A split by topic or persona makes that "
            "row 0.",
        ),
    )
    panels = (
        Panel(
            "leakage", "Overlap of test with train", ("by_group.share", "near_share"), _write_caption,
        ),
    )  # fmt: skip
    nothing = "The records name no train and test sides, so nothing can leak."

    compares_all = True

    def start(self, shared: Shared) -> LeakageCount:
        shared.start(["duplicates"])
        return LeakageCount(shared)


class LeakageCount:
    """The running count. It keeps one byte per conversation, and eight more per dimension."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._groups = part_of(shared.data.family, KindDefaults).groups
        self._values: dict[str, array[int]] = {}
        self._tested = array("b")

    def see(self, sample: Sample, words: Words) -> None:  # noqa: ARG002
        if sample.split is None:
            return
        values = sample.scenario.values
        for name in values:
            if name not in self._values:
                self._values[name] = array("q", bytes(8 * len(self._tested)))
        for name, column in self._values.items():
            column.append(hash(values.get(name)))  # values are only compared for equality
        self._tested.append(_SIDES.index(sample.split))

    def result(self) -> Leakage:
        tested = np.array(self._tested, dtype=bool)
        if tested.all() or not tested.any():
            return Leakage()
        numbers = {name: _number_groups(np.array(column)) for name, column in self._values.items()}
        near = self._shared.result("duplicates").across
        groups = {
            name: _compute_overlap(_combine([numbers[one] for one in dimensions]), tested)
            for name, dimensions in self._groups([*numbers]).items()
            if dimensions  # records of other programs may have no scenario
        }
        if (*groups,) != _NAMED:
            return Leakage(near_duplicates=near, groups=groups)
        topic, persona, both = (groups[name] for name in _NAMED)
        return Leakage(topic=topic, persona=persona, topic_and_persona=both, near_duplicates=near)


def _combine(numbers: Sequence[Groups]) -> Groups:
    """Return each conversation's group by all of these groupings together, shape (conversations,)."""
    found = numbers[0]
    for other in numbers[1:]:
        found = _number_groups(found * (int(np.max(other)) + 1) + other)
    return found


def _number_groups(groups: NDArray[np.int64] | Groups) -> Groups:
    """Return each conversation's group as a number from 0, shape (conversations,)."""
    found: Groups = np.unique(groups, return_inverse=True)[1]
    return found


def _compute_overlap(groups: Groups, tested: NDArray[np.bool_]) -> SplitOverlap:
    """Return the overlap of the test side with train. `groups`, `tested`: shape (conversations,); both sides
    have conversations."""
    test = np.bincount(groups, weights=tested).astype(np.int64)
    train = np.bincount(groups) - test
    conversations, both = int(test.sum()), int(test[train > 0].sum())
    return SplitOverlap(
        test_groups=int(np.count_nonzero(test)),
        shared_groups=int(np.count_nonzero((test > 0) & (train > 0))),
        test_conversations=conversations,
        shared_conversations=both,
        share=both / conversations,
    )


MEASURE = LeakageMeasure()
