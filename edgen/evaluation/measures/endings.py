"""Ends of conversations whose record has an event `end`: reason, seconds, and whether the task was done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from edgen.plugin import Histogram, Measure, Sample, Share, Space, Tally, Total, Words, figure_kinds
from edgen.plugin.measures import Compared, Panel


class EndingsMeasure(Measure[Any]):
    name = "endings"
    definition = (
        "Of conversations whose record has an outcome: the reason of the end, the share in which the task "
        "was done or the question answered, and the seconds of the conversation's clock until then "
        "(outcomes as in Chiyah Garcia, Lopes, Liu and Hastie, LREC 2020)."
    )
    order = 15
    section = "task"
    reads_space = False
    nothing = "No record states how its conversation ended."
    figures = figure_kinds("seconds", truths=("done",), texts=("reason",))
    aggregates = (
        Total("conversations", "ended"),
        Share(
            "success", "done", label="task done", says="{it} of those with a known outcome", title="Task done"
        ),
        Tally(
            "reasons", "reason", label="  {key}", says="{it:conversation}", most=12, rest="  other reasons"
        ),
        Histogram("duration", "seconds", label="seconds"),
    )
    panels = (
        Panel("task-done", "Task done", ("success",), "Of the conversations with a known outcome."),
        Panel(
            "end-reasons", "Why conversations ended", ("reasons",),
            "Look for ends that are neither success nor failure: nothing left to say, too many turns.",
            of="conversations",
        ),
        Panel("duration", "Seconds until the end", ("duration",), "Look for a pile at the time limit."),
    )  # fmt: skip
    compares = (
        Compared(
            name="task_done", title="task done", kind="share", top="done",
            over="conversations with a known outcome", definition="Conversations in which the task was done.",
        ),
        Compared(
            name="duration", title="seconds until the end", kind="number", top="seconds",
            over="conversations with a recorded end", definition="Seconds of the conversation's clock until "
            "it ended.",
        ),
        Compared(
            name="ended_{key}", title="ended: {key}", kind="share", top="reason",
            over="conversations with a recorded end", definition="Conversations that ended for this reason: "
            "{key}.",
        ),
    )  # fmt: skip

    def of_one(self, sample: Sample, words: Words, space: Space | None) -> Mapping[str, Any]:  # noqa: ARG002
        """Return the reason of the end, its time in seconds, and whether the task was done, if known."""
        end: dict[str, Any] = next((one for one in reversed(sample.events) if one.get("event") == "end"), {})
        reason, success = end.get("reason"), end.get("success")
        seconds: Any = end.get("time")
        if not reason or not isinstance(reason, str):  # records may have any origin
            return {}
        return {
            "ended": 1,
            "reason": reason,
            "done": success if isinstance(success, bool) else None,
            "seconds": float(seconds) if type(seconds) in (int, float) and seconds >= 0 else 0.0,
        }


MEASURE = EndingsMeasure()
