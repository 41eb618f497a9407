"""Similarity in words of the independent responses to one turn: each against the best of the others.

At most 2,000 turns are scored, a sample of all. Memory: their texts.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

from edgen.domains.tutoring.measures.best_of_others import SEED, ReferenceOverlap, reference_overlap
from edgen.domains.tutoring.served_turns import list_responses
from edgen.plugin import Mean, Measure, OwnCount, OwnTexts, Sample, Total, Words
from edgen.plugin.files import find_missing_modules
from edgen.plugin.formats import install_command
from edgen.plugin.measures import Aggregate, Panel, render_rows, wrap

MOST_TURNS = 2000
VARIABLE = "EDGEN_BERTSCORE_MODEL"  # environment variable that names the model; without it, no BERTScore


class ReferenceOverlapCount:
    """A sample of turns, each equally likely (algorithm R of Vitter 1985, ACM TOMS 11), with a fixed seed."""

    def __init__(self) -> None:
        self._random = random.Random(SEED)  # noqa: S311 - a sample, no secret
        self._seen = 0
        self._kept: list[tuple[int, list[str]]] = []

    def see(self, sample: Sample, words: Words) -> None:
        for turn in sample.turns:
            if turn.alternatives and len(responses := list_responses(turn)) > 1:
                self._see(sample.scenario.index, [one.text for one in responses])

    def _see(self, scenario: int, responses: list[str]) -> None:
        self._seen += 1
        at = len(self._kept) if len(self._kept) < MOST_TURNS else self._random.randrange(self._seen)
        if at < MOST_TURNS:
            self._kept[at : at + 1] = [(scenario, responses)]

    def result(self) -> ReferenceOverlap | None:
        if not self._kept or find_missing_modules("bleu"):
            return None
        scored = (
            (response, [*responses[:place], *responses[place + 1 :]], scenario)
            for scenario, responses in self._kept
            for place, response in enumerate(responses)
        )
        model = os.environ.get(VARIABLE) or None
        return reference_overlap(scored, None if find_missing_modules("bertscore") else model)


class ReferenceOverlapMeasure(OwnCount, OwnTexts, Measure[ReferenceOverlap | None]):
    name = "reference_overlap"
    definition = (
        "Of turns with several independent responses: the best BLEU (sacrebleu's of a sentence, 0 to 100; "
        "Papineni et al. 2002, Post 2018) of each response against each of the others alone, and the mean "
        f"over responses, of a sample of at most {MOST_TURNS:,} turns. Where the extra bertscore is "
        f"installed and the environment variable {VARIABLE} names a model, BERTScore's F1 (Zhang et al. "
        "2020) likewise. CIMA (Stasaski, Kao and Hearst 2020, section 5) scores a model's responses by the "
        "best of several references; `edgen.domains.tutoring.measures.best_of_others` does that. The "
        "interval is by the bootstrap over scenarios."
    )
    order = 15
    counts = ReferenceOverlapCount
    section = "behaviour"
    nothing = "No turn has several responses."
    aggregates = (
        Mean("bleu", label="best BLEU of the others", says="{it:.1f} of 100", required=True),
        Mean("bertscore", label="best BERTScore F1", says="{it:.3f}"),
        Total("responses", label="  of", says="{it:response}"),
        Aggregate("scored_by", label="  scored by", if_any=True),
    )
    panels = (
        Panel(
            "reference-overlap", "Independent responses in the same words: best BLEU of the others",
            ("bleu",),
            "Near 100: the tutors say the same, so several responses to a turn add nothing to one.",
        ),
    )  # fmt: skip

    def lines(self, value: ReferenceOverlap | None) -> Iterator[str]:
        if value is None and (missing := find_missing_modules("bleu")):
            yield from wrap(f"This needs {missing[0]}, of the extra 'bleu': {install_command('bleu')}", 76)
        yield from render_rows(self.aggregates, value)


MEASURE = ReferenceOverlapMeasure()
