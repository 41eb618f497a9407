"""The sub-tasks of guided conversations: the share that reaches each, its seconds and turns.

Memory: some bytes a conversation and sub-task.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict

import msgspec
import numpy as np

from edgen.domains.guided.events import GuidedEvents
from edgen.plugin import Histogram, Measure, OwnCount, Sample, Share, Words
from edgen.plugin.measures import MOST_NUMBER, ByKey, Panel
from edgen.plugin.statistics import Distribution, Estimate, share, summarize_counts

MOST = 100  # sub-tasks in the report


class Subtask(msgspec.Struct, frozen=True, kw_only=True):
    """One sub-task. `reached`: the share of conversations that reached it. In these: the total `seconds` in
    it, and the turns in it by role."""

    reached: Estimate | None
    seconds: Distribution
    turns: dict[str, Distribution]


class SubtasksCount:
    def __init__(self) -> None:
        self._scenarios = array("q")
        self._reached: dict[str, set[int]] = {}  # numbers of the conversations
        self._seconds: defaultdict[str, Counter[int]] = defaultdict(Counter)
        self._turns: defaultdict[str, defaultdict[str, Counter[int]]] = defaultdict(
            lambda: defaultdict(Counter)
        )
        self._roles: dict[str, None] = {}

    def see(self, sample: Sample, words: Words) -> None:
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
            spent[span.name] += min(span.end, MOST_NUMBER) - min(span.start, MOST_NUMBER)
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


class SubtasksMeasure(OwnCount, Measure[dict[str, Subtask]]):
    name = "subtasks"
    definition = (
        "For each sub-task of guided conversations: the share that reached it, and of those the seconds "
        "of the conversation's clock and the turns by role in it, over all its parts; the utterance that "
        "begins it belongs to it (CRWIZ's times and turns of a sub-task: Chiyah Garcia, Lopes, Liu and "
        "Hastie, LREC 2020)."
    )
    order = 16
    counts = SubtasksCount
    section = "task"
    nothing = "No conversation has sub-tasks."
    aggregates = (
        ByKey(
            "",
            each=(
                Share("reached", label="{key}", says="reached by {it}", title="{key}"),
                Histogram("seconds", label="  seconds", title="{key}"),
                Histogram("turns", label="  turns of {key}", by_key=True),
            ),
        ),
    )
    panels = (
        Panel(
            "subtasks-reached", "Conversations that reach a sub-task", (".reached",),
            "Look for the sub-task at which conversations are lost.",
        ),
        Panel(
            "subtask-seconds", "Seconds in each sub-task", (".seconds",),
            "Of the conversations that reached it.",
        ),
    )  # fmt: skip


MEASURE = SubtasksMeasure()
