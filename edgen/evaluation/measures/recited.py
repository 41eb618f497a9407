"""Recited personas: turns that contain, word for word, the brief's description of a role's character or
behaviour.

A person does not say "I am curious, and ask why all the time". A turn recites if it contains a persona's
value of three words or more word for word, or a shorter value after its label (`tone: polite`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from edgen.evaluation.measures.personas import FOLDED, Labels, PersonaMeasure
from edgen.plugin import Sample, Share, Tally, Total, Words, figure_kinds
from edgen.plugin.measures import Examples, Panel
from edgen.plugin.texts import join_words, readable_name
from edgen.plugin.texts import words as cut_words

_FEWEST = 3  # minimum words: shorter values may be names of methods or traits


class RecitedMeasure(PersonaMeasure):
    name = "recited"
    definition = (
        "Conversations in which a turn recites a persona: it contains, word for word, a value of a "
        "dimension that describes how a role behaves (three words or more), or a shorter one after the "
        "dimension's label. edgen's own definition."
    )
    order = 9
    section = "behaviour"
    figures = figure_kinds("recited", lists=("dimensions",))
    aggregates = (
        Total("turns", "recited"),
        Share(
            "share", "reciting", label="conversations", says="{it}, {turns} turns", title="Recites a persona"
        ),
        Tally("by", "dimensions", label="recited", if_any=True, names=readable_name),
        Examples(
            "examples",
            "reciting",
            label="for example",
            if_any=True,
            why="a turn recites how its speaker is described",
        ),
    )
    panels = (
        Panel(
            "recited",
            "A persona is recited",
            ("share",),
            "Conversations in which a turn says word for word how its speaker is described. Look for any.",
            folded=FOLDED,
            told="Conversations in which a turn recites a persona",
        ),
        Panel(
            "recited-by",
            "Which personas are recited",
            ("by",),
            "Conversations by the dimension that is recited in them, with its share of all that are.",
            folded=FOLDED,
        ),
    )
    compares = ()

    def of_personas(self, personas: Labels, sample: Sample, words: Words) -> Mapping[str, Any]:
        """Return the number of reciting turns, and the recited dimensions."""
        values: Mapping[str, str] = sample.scenario.values
        whole = "".join(words.spoken)
        wanted = [
            (name, phrase)
            for name, label in personas.items()
            if (value := values.get(name)) and (phrase := _make_phrase(value, label)) in whole
        ]
        reciting = sum(any(phrase in turn for _, phrase in wanted) for turn in words.spoken)
        return {"recited": reciting, "reciting": bool(reciting), "dimensions": [name for name, _ in wanted]}


@lru_cache(maxsize=4_096)
def _make_phrase(value: str, label: str) -> str:
    """Return the words that recite a value: the value's words, preceded by the label's if they are few."""
    said = cut_words(value[:2_000])
    return join_words(said if len(said) >= _FEWEST else [*cut_words(label), *said])


MEASURE = RecitedMeasure()
