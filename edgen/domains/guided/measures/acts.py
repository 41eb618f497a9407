"""Dialogue acts of guided conversations, by CRWIZ's four types: acts of each role, and acts per
conversation."""

from __future__ import annotations

from collections import Counter, defaultdict

import msgspec

from edgen.domains.guided.events import ACTS, GuidedEvents, acts_of
from edgen.plugin import Histogram, Measure, OwnCount, Sample, Tally, Total, Words
from edgen.plugin.measures import ByKey, Panel
from edgen.plugin.statistics import Distribution, summarize_counts


class RoleActs(msgspec.Struct, frozen=True, kw_only=True):
    """A role's turns: their number, those with an act, and those of each type of act."""

    turns: int
    labelled: int
    counts: dict[str, int]


class Acts(msgspec.Struct, frozen=True, kw_only=True):
    """Acts by role, and the number of acts of each type in a conversation."""

    roles: dict[str, RoleActs]
    a_conversation: dict[str, Distribution]


class ActsCount:
    def __init__(self) -> None:
        self._turns: Counter[str] = Counter()
        self._labelled: Counter[str] = Counter()
        self._counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._a_conversation: dict[str, Counter[int]] = {act: Counter() for act in ACTS}

    def see(self, sample: Sample, words: Words) -> None:
        if not GuidedEvents(sample.events, len(sample.turns)):
            return
        found: Counter[str] = Counter()
        for turn in sample.turns:
            self._turns[turn.role] += 1
            if acts := acts_of(turn.labels):
                self._labelled[turn.role] += 1
                self._counts[turn.role].update(acts)
                found.update(acts)
        for act, counts in self._a_conversation.items():
            counts[found[act]] += 1

    def result(self) -> Acts:
        return Acts(
            roles={
                role: RoleActs(
                    turns=self._turns[role],
                    labelled=self._labelled[role],
                    counts={act: counts[act] for act in ACTS if counts[act]},
                )
                for role, counts in sorted(self._counts.items(), key=lambda one: (-one[1].total(), one[0]))
            },
            a_conversation={
                act: summarize_counts(counts) if self._labelled else Distribution(n=0)
                for act, counts in self._a_conversation.items()
            },
        )


class ActsMeasure(OwnCount, Measure[Acts]):
    name = "acts"
    definition = (
        "Turns of guided conversations by the type of their dialogue act, from their labels: Request, "
        "Interaction, Action, Update (Chiyah Garcia, Lopes, Liu and Hastie, LREC 2020). The machine names "
        "the act of each offered utterance; free text and other roles' turns have one only if they were "
        "labelled."
    )
    order = 18
    counts = ActsCount
    section = "task"
    nothing = "No turn of a guided conversation has an act of the four types."
    aggregates = (
        ByKey(
            "roles",
            each=(
                Total("turns", label="{key}", says="{it:turn}, {labelled} of them with an act"),
                Tally("counts", label="  {key}", says="{it:/labelled}"),
            ),
        ),
        Histogram("a_conversation", label="{key} acts", by_key=True),
    )
    panels = (
        Panel(
            "acts", "Dialogue acts by type", ("roles.counts",),
            "Of the turns that have an act. Look for a guide who only informs and never asks.", of="labelled",
        ),
    )  # fmt: skip


MEASURE = ActsMeasure()
