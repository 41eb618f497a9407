"""What the sub-tasks of guided conversations take: who gets to each, in how many seconds and turns.

Memory: some bytes a conversation and sub-task.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from edgen.core.text import shorten
from edgen.evaluation.figures import (
    WHOLE_NUMBERS,
    Block,
    Histogram,
    histograms_picture,
    interval_of,
    intervals_picture,
    label_with_arm,
    series_colour,
    share_of,
)
from edgen.evaluation.measure import ArmResult, Measure
from edgen.evaluation.measures.endings import MOST_SECONDS
from edgen.evaluation.sample import Sample, Words
from edgen.evaluation.terminal import SUMMARY_HEAD, row, share_with_interval, summary
from edgen.families.guided import GuidedEvents
from edgen.stats.distributions import Distribution, summarize_counts
from edgen.stats.intervals import Estimate, share

MOST = 100  # sub-tasks that are told of


class Subtask(msgspec.Struct, frozen=True, kw_only=True):
    """One sub-task: the share of conversations that `reached` it; of those, the whole `seconds` that they were in it, and
    the turns in it by role."""

    reached: Estimate | None
    seconds: Distribution
    turns: dict[str, Distribution]


class SubtasksCount:
    def __init__(self) -> None:
        self._scenarios = array("q")
        self._reached: dict[str, set[int]] = {}  # the conversations, by their places
        self._seconds: defaultdict[str, Counter[int]] = defaultdict(Counter)
        self._turns: defaultdict[str, defaultdict[str, Counter[int]]] = defaultdict(
            lambda: defaultdict(Counter)
        )
        self._roles: dict[str, None] = {}

    def see(self, sample: Sample, words: Words) -> None:  # noqa: ARG002
        events = GuidedEvents(sample.events, len(sample.turns))
        if not events:
            return
        place = len(self._scenarios)
        self._scenarios.append(sample.scenario.index)
        spent: defaultdict[str, float] = defaultdict(float)
        said: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._roles |= dict.fromkeys(turn.role for turn in sample.turns)
        for span in events.subtasks:
            if span.name not in self._reached and len(self._reached) >= MOST:
                continue
            self._reached.setdefault(span.name, set()).add(place)
            spent[span.name] += min(span.end, MOST_SECONDS) - min(span.start, MOST_SECONDS)
            said[span.name].update(turn.role for turn in sample.turns[span.first_turn : span.end_turn])
        for name, took in spent.items():
            self._seconds[name][round(took)] += 1
            for role in dict.fromkeys(turn.role for turn in sample.turns):
                self._turns[name][role][said[name][role]] += 1

    def result(self) -> dict[str, Subtask]:
        scenarios = np.array(self._scenarios)
        found = {}
        for name, places in self._reached.items():
            reached = np.zeros(len(scenarios))
            reached[[*places]] = 1
            found[name] = Subtask(
                reached=share(reached, scenarios),
                seconds=summarize_counts(self._seconds[name]),
                turns={role: summarize_counts(self._turns[name][role]) for role in self._roles},
            )
        return found


class SubtasksMeasure(Measure[dict[str, Subtask]]):
    name = "subtasks"
    definition = (
        "For each sub-task of guided conversations the share of them that reached it, and for those the seconds of the "
        "conversation's clock and the turns by role in it, all its stretches together; the utterance with which it begins is "
        "in it (CRWIZ's times and turns a sub-task: Chiyah Garcia, Lopes, Liu and Hastie, LREC 2020)."
    )
    order = 16
    counts = SubtasksCount
    section = "task"
    nothing = "No conversation has sub-tasks."

    def lines(self, value: dict[str, Subtask]) -> Iterator[str]:
        if not value:
            return
        for name, one in value.items():
            yield row(shorten(name, 26), f"reached by {share_with_interval(one.reached)}")
        yield SUMMARY_HEAD
        for name, one in value.items():
            yield summary(shorten(f"seconds, {name}", 22), one.seconds)
            for role, turns in one.turns.items():
                yield summary(f"  {shorten(f'turns of {role}', 20)}", turns)

    def blocks(self, found: Sequence[ArmResult[dict[str, Subtask]]]) -> Iterator[Block]:
        reached = [
            interval_of(
                label_with_arm(name, one.arm), sub.reached, share_of(sub.reached), series_colour(place)
            )
            for place, one in enumerate(found)
            for name, sub in one.value.items()
            if sub.reached is not None
        ]
        yield from intervals_picture(
            "subtasks-reached", "Conversations that reach a sub-task", reached,
            "Look for the sub-task at which conversations are lost.",
        )  # fmt: skip
        spent = [
            Histogram(label_with_arm(name, one.arm), sub.seconds, series_colour(place))
            for place, one in enumerate(found)
            for name, sub in one.value.items()
        ]
        yield from histograms_picture(
            "subtask-seconds", "Seconds in each sub-task", spent, WHOLE_NUMBERS,
            "Of the conversations that reached it.",
        )  # fmt: skip


MEASURE = SubtasksMeasure()
