"""Ends of guided conversations: whether the task was done, why they ended, and after how long."""

from __future__ import annotations

from typing import Any

from edgen.families.event_log import GuidedEvents
from edgen.plugin import (
    Columns,
    Compared,
    Histogram,
    Measure,
    Panel,
    Sample,
    Share,
    Space,
    Tally,
    Total,
    Words,
    figure_kinds,
)


class EndingsMeasure(Measure[Any]):
    name = "endings"
    definition = (
        "Conversations whose end is told (`protocol: guided` and `forum`) by why they ended, as their machine or the protocol "
        "calls it, the share in which the task was done or the question answered, and the seconds of the conversation's clock until then: the outcomes of CRWIZ (Chiyah "
        "Garcia, Lopes, Liu and Hastie, LREC 2020)."
    )
    order = 15
    section = "task"
    nothing = "No record tells how a guided conversation ended."
    figures = figure_kinds("seconds", truths=("done",), texts=("reason",))
    aggregates = (
        Total("conversations", "ended"),
        Share("success", "done", label="task done", says="{it}, where the end says", title="Task done"),
        Tally(
            "reasons", "reason", label="  {key}", says="{it:conversation}", most=12, rest="  other reasons"
        ),
        Histogram("duration", "seconds", label="seconds"),
    )
    panels = (
        Panel("task-done", "Task done", ("success",), "Of the conversations whose end says whether it was."),
        Panel(
            "end-reasons", "Why conversations ended", ("reasons",),
            "Look for ends that are nobody's success or failure: nothing left to say, too many turns.", of="conversations",
        ),
        Panel("duration", "Seconds until the end", ("duration",), "Look for a pile at the time limit."),
    )  # fmt: skip
    compares = (
        Compared(
            name="task_done", title="task done", kind="share", top="done",
            over="guided conversations whose end says", definition="Guided conversations in which the task was done.",
        ),
        Compared(
            name="duration", title="seconds until the end", kind="number", top="seconds",
            over="guided conversations", definition="Seconds of the conversation's clock until it ended.",
        ),
        Compared(
            name="ended_{key}", title="ended: {key}", kind="share", top="reason",
            over="guided conversations", definition="Guided conversations that ended for this reason: {key}.",
        ),
    )  # fmt: skip

    def of_one(self, sample: Sample, words: Words, space: Space | None) -> Columns:  # noqa: ARG002
        """Return why and after how long it ended, and whether the task was done, if known."""
        events = GuidedEvents(sample.events, len(sample.turns))
        if events.end is None:
            return {}
        return {
            "ended": 1,
            "reason": events.end.reason,
            "done": events.end.success,
            "seconds": events.duration,
        }


MEASURE = EndingsMeasure()
