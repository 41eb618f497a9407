"""What of the test side was to be seen in train: topics, personas, both together.

A persona is the four texts of preferences and reactions, as `split: {by: persona}` has it. Groups are told
apart by `splits.group_hash`, so that the measure and the split mean the same by a group.
"""

from __future__ import annotations

from collections.abc import Hashable

from edgen.quality.model import Sample, Words
from edgen.quality.results import Leakage, Shared
from edgen.splits import group_hash

_SIDES = ("train", "test")


class LeakageMeasure:
    def __init__(self) -> None:
        names = ("topic", "persona", "topic_and_persona")
        # group -> conversations in train, in test
        self._groups: dict[str, dict[Hashable, list[int]]] = {name: {} for name in names}
        self._sides = [0, 0]

    def add(self, sample: Sample, words: Words) -> None:  # noqa: ARG002 - as every measure
        if sample.split is None:
            return
        side = _SIDES.index(sample.split)
        self._sides[side] += 1
        topic, persona = group_hash("topic", 0, sample.scenario), group_hash("persona", 0, sample.scenario)
        for groups, key in zip(self._groups.values(), (topic, persona, (topic, persona)), strict=True):
            groups.setdefault(key, [0, 0])[side] += 1

    def result(self, near_duplicates: int | None = None) -> Leakage:
        """`near_duplicates`: test conversations with a near-duplicate in train, as `duplicates` counts them."""
        if not all(self._sides):
            return Leakage(topic=None, persona=None, topic_and_persona=None, near_duplicates=None)
        shared = {name: _shared(groups) for name, groups in self._groups.items()}
        return Leakage(**shared, near_duplicates=near_duplicates)


def _shared(groups: dict[Hashable, list[int]]) -> Shared:
    tested = [(train, test) for train, test in groups.values() if test]
    both = [test for train, test in tested if train]
    conversations = sum(test for _, test in tested)
    return Shared(
        test_groups=len(tested),
        shared_groups=len(both),
        test_conversations=conversations,
        shared_conversations=sum(both),
        share=sum(both) / conversations if conversations else None,
    )
