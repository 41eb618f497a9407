"""The table of participants that describes MSDialog: turns, participants and words of its dialogs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from edgen.plugin import Histogram, Measure, Sample, Space, Total, Words, figure_kinds
from edgen.plugin.measures import Panel


class ParticipantsMeasure(Measure[Any]):
    name = "participants"
    definition = (
        "Of dialogs whose turns name their author (`user_id`): turns, participants, words of the dialog "
        "and of each utterance, with minimum, maximum, mean and median, as for MSDialog (Qu, Yang, Croft, "
        "Trippas, Zhang and Qiu, SIGIR 2018). Words are separated by blanks."
    )
    order = 2
    section = "task"
    nothing = "No turn names its author."
    figures = figure_kinds("participants")
    aggregates = (
        Total("dialogs", label="dialogs", says="{it:,}"),
        Total("utterances", label="utterances", says="{it:,}"),
        Histogram("turns", label="turns a dialog"),
        Histogram("participants", label="participants a dialog"),
        Histogram("words", label="words a dialog"),
        Histogram("words_per_utterance", label="words an utterance"),
    )
    panels = (
        Panel(
            "participants", "Participants a dialog", ("participants",),
            "MSDialog has 2 to 4 in its labelled part. Look for dialogs in which nobody answers.",
        ),
    )  # fmt: skip
    compares = ()

    def of_one(self, sample: Sample, words: Words, space: Space | None) -> Mapping[str, Any]:
        """Count a dialog's participants, turns and words; return nothing if no turn has a `user_id`."""
        people = {str(turn.data["user_id"]) for turn in sample.turns if turn.data.get("user_id") is not None}
        if not people:
            return {}
        sizes = [len(turn.text.split()) for turn in sample.turns]
        return {
            "dialogs": 1,
            "utterances": len(sizes),
            "turns": len(sizes),
            "participants": len(people),
            "words": sum(sizes),
            "words_per_utterance": sizes,
        }


MEASURE = ParticipantsMeasure()
