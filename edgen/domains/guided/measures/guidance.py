"""Choices of the guided role: offered utterances, fixed replies, free text, and hints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from edgen.domains.guided.events import GuidedEvents
from edgen.plugin import Mean, Measure, Sample, Share, Space, Total, Words, figure_kinds
from edgen.plugin.measures import Compared, Panel

_FIGURES = ("offered", "fixed", "typed", "hinted", "followed")


class GuidanceMeasure(Measure[Any]):
    name = "guidance"
    definition = (
        "Utterances of the guided role by origin: offered by the machine, fixed replies, or typed freely "
        "(CRWIZ's typed share: Chiyah Garcia, Lopes, Liu and Hastie, LREC 2020); how many utterances were "
        "offered; and of the choices with a hint, those that followed it. The last is edgen's own."
    )
    order = 17
    section = "task"
    nothing = "No conversation was guided."
    figures = figure_kinds("choices", "fixed", "free", "hinted", "followed")
    aggregates = (
        Total("choices", label="guided", says="{it:utterance}"),
        Share("offered", "state", "choices", label="  offered", says="{it}", title="Takes what is offered"),
        Share("fixed", "fixed", "choices", label="  fixed replies", says="{it}", title="Takes a fixed reply"),
        Share("typed", "free", "choices", label="  typed freely", says="{it}", title="Types freely"),
        Mean("options", label="  offered each time", says="{it:.1f} utterances"),
        Share("hinted", "hinted", "choices", label="  with a hint", says="{it}", title="Has a hint"),
        Share(
            "followed", "followed", "hinted", label="  hints followed", says="{it}", title="Follows the hint"
        ),
    )
    panels = (
        Panel(
            "guidance", "Use of the machine's offers", _FIGURES,
            "Look for much free text: the machine lacks the needed utterances. Hints that are always "
            "followed leave no choice.",
        ),
    )  # fmt: skip
    compares = (
        Compared(
            name="typed", title="typed freely", kind="share", top="free", bottom="choices",
            over="utterances of the guided role", definition="Utterances of the guided role that it typed "
            "freely.",
        ),
        Compared(
            name="fixed_replies", title="fixed replies", kind="share", top="fixed", bottom="choices",
            over="utterances of the guided role", definition="Utterances of the guided role that were a "
            "fixed reply.",
        ),
        Compared(
            name="hints_followed", title="hints followed", kind="share", top="followed", bottom="hinted",
            over="choices with a hint", definition="Choices that followed the hint, of those with a hint.",
        ),
    )  # fmt: skip

    def of_one(self, sample: Sample, words: Words, space: Space | None) -> Mapping[str, Any]:
        """Count the utterances of the guided role by their source, and the options that it had to choose
        from."""
        events = GuidedEvents(sample.events, len(sample.turns))
        choices = events.choices
        if not choices:
            return {}
        followed = [one.followed for one in choices if one.followed is not None]
        offers = [len(names) for _, names in events.offered]
        by = [one.by for one in choices]
        return {
            "choices": len(choices),
            "state": by.count("state"),
            "fixed": by.count("fixed"),
            "free": by.count("free"),
            "options": sum(offers) / len(offers) if offers else None,
            "hinted": len(followed),
            "followed": sum(followed),
        }


MEASURE = GuidanceMeasure()
