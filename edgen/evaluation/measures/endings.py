"""How guided conversations end: whether the task was done, why they ended, and after how long.

Memory: some bytes a conversation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from edgen.core.text import quantity, shorten
from edgen.evaluation.figures import (
    WHOLE_NUMBERS,
    Bar,
    Block,
    bars_picture,
    histograms_picture,
    intervals_picture,
    label_with_arm,
    series_colour,
)
from edgen.evaluation.measure import (
    ArmResult,
    Compared,
    Measure,
    figure_kinds,
    histograms_of,
    share_intervals,
)
from edgen.evaluation.sample import Sample, Words
from edgen.evaluation.terminal import SUMMARY_HEAD, row, share_with_interval, summary
from edgen.expressions.language import Value
from edgen.families.guided import GuidedEvents
from edgen.space import Space
from edgen.stats.distributions import Distribution, summarize_counts
from edgen.stats.intervals import Estimate, ShareCount

MOST_SECONDS = 10**9  # of a file that anybody may have written
_SHOWN = 12  # reasons on a terminal


class Endings(msgspec.Struct, frozen=True, kw_only=True):
    """Guided `conversations` whose end is told; `success`: the share in which the task was done, of those that say;
    `reasons`: conversations by why they ended; `duration` in whole seconds of the conversation's clock."""

    conversations: int
    success: Estimate | None
    reasons: dict[str, int]
    duration: Distribution


class EndingsCount:
    def __init__(self) -> None:
        self._reasons: Counter[str] = Counter()
        self._seconds: Counter[int] = Counter()
        self._done = ShareCount()

    def see(self, sample: Sample, words: Words) -> None:  # noqa: ARG002
        events = GuidedEvents(sample.events, len(sample.turns))
        if events.end is None:
            return
        self._reasons[events.end.reason] += 1
        self._seconds[round(min(events.duration, MOST_SECONDS))] += 1
        if events.end.success is not None:
            self._done.add(sample.scenario.index, events.end.success)

    def result(self) -> Endings:
        return Endings(
            conversations=self._reasons.total(),
            success=self._done.result(),
            reasons=dict(sorted(self._reasons.items(), key=lambda one: (-one[1], one[0]))),
            duration=summarize_counts(self._seconds),
        )


class EndingsMeasure(Measure[Endings]):
    name = "endings"
    definition = (
        "Conversations whose end is told (`protocol: guided` and `forum`) by why they ended, as their machine or the protocol "
        "calls it, the share in which the task was done or the question answered, and the seconds of the conversation's clock until then: the outcomes of CRWIZ (Chiyah "
        "Garcia, Lopes, Liu and Hastie, LREC 2020)."
    )
    order = 15
    counts = EndingsCount
    section = "task"
    figures = figure_kinds("seconds", truths=("done",), texts=("reason",))
    nothing = "No record tells how a guided conversation ended."

    def sums(self, sample: Sample, space: Space) -> Iterator[tuple[str, float]]:  # noqa: ARG002
        """The end, and whether the task was done where it says."""
        events = GuidedEvents(sample.events, len(sample.turns))
        if events.end is None:
            return
        yield from (("ended", 1), ("seconds", events.duration), (f"reason {events.end.reason}", 1))
        if events.end.success is not None:
            yield from (("said", 1), ("done", events.end.success))

    def of_one(self, sample: Sample, words: Words, space: Space) -> Mapping[str, Value]:  # noqa: ARG002
        """Why and after how long it ended, and whether the task was done."""
        events = GuidedEvents(sample.events, len(sample.turns))
        if events.end is None:
            return {}
        return {"reason": events.end.reason, "done": events.end.success, "seconds": events.duration}

    def compared(self, columns: Collection[str]) -> Iterator[Compared]:
        """Success, time, and each reason."""
        yield Compared(
            name="task_done", title="task done", kind="share", top="done", bottom="said",
            over="guided conversations whose end says", definition="Guided conversations in which the task was done.",
        )  # fmt: skip
        yield Compared(
            name="duration", title="seconds until the end", kind="number", top="seconds", bottom="ended",
            over="guided conversations", definition="Seconds of the conversation's clock until it ended.",
        )  # fmt: skip
        for column in columns:
            kind, _, reason = column.partition(" ")
            if kind == "reason":
                yield Compared(
                    name=f"ended_{reason}", title=f"ended: {reason}", kind="share", top=column, bottom="ended",
                    over="guided conversations", definition=f"Guided conversations that ended for this reason: {reason}.",
                )  # fmt: skip

    def lines(self, value: Endings) -> Iterator[str]:
        if not value.conversations:
            return
        yield row("task done", f"{share_with_interval(value.success)}, where the end says")
        for reason, count in [*value.reasons.items()][:_SHOWN]:
            yield row(f"  {shorten(reason, 24)}", quantity(count, "conversation"))
        if len(value.reasons) > _SHOWN:
            yield row("  other reasons", quantity(sum([*value.reasons.values()][_SHOWN:]), "conversation"))
        yield SUMMARY_HEAD
        yield summary("seconds", value.duration)

    def blocks(self, found: Sequence[ArmResult[Endings]]) -> Iterator[Block]:
        shares = [("Task done", lambda value: value.success)]
        yield from intervals_picture(
            "task-done", "Task done", share_intervals(found, shares),
            "Of the conversations whose end says whether it was.",
        )  # fmt: skip
        bars = [
            Bar(
                label_with_arm(reason, one.arm),
                count / one.value.conversations,
                f"{count:,} of {one.value.conversations:,}",
                series_colour(place),
            )
            for place, one in enumerate(found)
            for reason, count in one.value.reasons.items()
        ]
        yield from bars_picture(
            "end-reasons", "Why conversations ended", bars,
            "Look for ends that are nobody's success or failure: nothing left to say, too many turns.", most=24,
        )  # fmt: skip
        durations = histograms_of(found, lambda value: value.duration)
        yield from histograms_picture(
            "duration", "Seconds until the end", durations, WHOLE_NUMBERS,
            "Look for a pile at the time limit.",
        )  # fmt: skip


MEASURE = EndingsMeasure()
