"""What of the test side was to be seen in train: topics, personas, both together.

A persona is the four texts of preferences and reactions, as `split: {by: persona}` has it. Groups are told
apart by `splits.group_hash`, so that the measure and the split mean the same by a group.
"""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray

from edgen.quality.model import Sample, Words
from edgen.quality.results import Leakage, Shared
from edgen.splits import group_hash

_SIDES = ("train", "test")

Groups = NDArray[np.intp]


class LeakageMeasure:
    """Keeps 17 bytes a conversation."""

    def __init__(self) -> None:
        self._topics, self._personas, self._tested = array("Q"), array("Q"), array("b")

    def add(self, sample: Sample, words: Words) -> None:  # noqa: ARG002 - as every measure
        if sample.split is None:
            return
        self._tested.append(_SIDES.index(sample.split))
        self._topics.append(group_hash("topic", 0, sample.scenario))
        self._personas.append(group_hash("persona", 0, sample.scenario))

    def result(self, near_duplicates: int | None = None) -> Leakage:
        """`near_duplicates`: test conversations with a near-duplicate in train, as `duplicates` counts them."""
        tested = np.array(self._tested, dtype=bool)
        if tested.all() or not tested.any():
            return Leakage(topic=None, persona=None, topic_and_persona=None, near_duplicates=None)
        topic, persona = _numbered(np.array(self._topics)), _numbered(np.array(self._personas))
        both = _numbered(topic * (int(persona.max()) + 1) + persona)
        return Leakage(
            topic=_shared(topic, tested),
            persona=_shared(persona, tested),
            topic_and_persona=_shared(both, tested),
            near_duplicates=near_duplicates,
        )


def _numbered(groups: NDArray[np.uint64] | Groups) -> Groups:
    """The group of each conversation, numbered from 0."""
    found: Groups = np.unique(groups, return_inverse=True)[1]
    return found


def _shared(groups: Groups, tested: NDArray[np.bool_]) -> Shared:
    """`groups`: that of each conversation. There are some on both sides."""
    test = np.bincount(groups, weights=tested).astype(np.int64)
    train = np.bincount(groups) - test
    conversations, both = int(test.sum()), int(test[train > 0].sum())
    return Shared(
        test_groups=int(np.count_nonzero(test)),
        shared_groups=int(np.count_nonzero((test > 0) & (train > 0))),
        test_conversations=conversations,
        shared_conversations=both,
        share=both / conversations,
    )
