"""How long tutors' responses and students' turns are, in words between blanks, and how many of a response's words are none
of the exercise's own.

Words are cut at blanks, as CIMA's are; all responses to a turn count. A student's turn counts once, however many contexts
begin with it. Memory: 8 bytes a student's turn.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from edgen.evaluation.figures import WHOLE_NUMBERS, Block, histograms_picture
from edgen.evaluation.measure import ArmResult, Measure, Shared, histograms_of
from edgen.evaluation.sample import Sample, Words
from edgen.evaluation.terminal import SUMMARY_HEAD, summary
from edgen.families.tutoring.served import responses_to
from edgen.space.model import Space
from edgen.stats.distributions import Distribution, summarize_counts

_WORD = re.compile(r"\w+")


class TutorWords(msgspec.Struct, frozen=True, kw_only=True):
    """Words of a tutor's response, of them those that are none of the exercise's, and words of a student's turn."""

    responses: Distribution
    other_words: Distribution
    student: Distribution


class TutorWordsMeasure(Measure[TutorWords]):
    name = "tutor_words"
    definition = (
        "Words between blanks of each response of a tutor and of each different turn of a student; and of a response, the "
        "words that are no value of the space's concepts, in any language that the space has. As in CIMA (Stasaski, Kao "
        "and Hearst 2020, section 4), which does not say how words of the domain were told from others."
    )
    order = 14
    section = "shape"
    nothing = "No turn carries actions."

    def start(self, shared: Shared) -> TutorWordsCount:
        return TutorWordsCount(shared.data.space)

    def lines(self, value: TutorWords) -> Iterator[str]:
        if value.responses.n:
            yield SUMMARY_HEAD
            yield summary("words a response", value.responses)
            yield summary("  not the exercise's", value.other_words)
            yield summary("words a student's turn", value.student)

    def blocks(self, found: Sequence[ArmResult[TutorWords]]) -> Iterator[Block]:
        rows = histograms_of(found, lambda value: value.responses)
        yield from histograms_picture(
            "tutor-words", "Words of a response", rows, WHOLE_NUMBERS,
            "Look for a long tail: a tutor who lectures.",
        )  # fmt: skip


class TutorWordsCount:
    def __init__(self, space: Space | None) -> None:
        self._responses: Counter[int] = Counter()
        self._others: Counter[int] = Counter()
        self._student: Counter[int] = Counter()
        self._seen: set[int] = set()
        self._domain = frozenset() if space is None else _words_of_space(space)

    def see(self, sample: Sample, words: Words) -> None:  # noqa: ARG002
        domain = self._domain or _words_of(sample.scenario.values.values(), sample.scenario.fields.values())
        history = 0
        for turn in sample.turns:
            history = hash((history, turn.role, turn.text))
            if turn.role != "Tutor":
                if history not in self._seen:
                    self._seen.add(history)
                    self._student[len(turn.text.split())] += 1
            elif turn.labels:
                for said in responses_to(turn):
                    self._responses[len(said.text.split())] += 1
                    self._others[sum(word not in domain for word in _cut(said.text))] += 1

    def result(self) -> TutorWords:
        return TutorWords(
            responses=summarize_counts(self._responses),
            other_words=summarize_counts(self._others),
            student=summarize_counts(self._student),
        )


def _cut(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _words_of_space(space: Space) -> frozenset[str]:
    """The words of the concepts of a space's exercises, and of their fields."""
    if space.exercises is None:
        return frozenset()
    names = {name for tier in space.exercises.tiers.values() for name in tier.concepts}
    entries = [entry for name in names for entry in space[name].entries]
    return _words_of([entry.value for entry in entries], [entry.fields for entry in entries])


def _words_of(values: Iterable[str], fields: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    texts = [*values, *(said for one in fields for said in one.values() if isinstance(said, str))]
    return frozenset(word for text in texts for word in _cut(text))


MEASURE = TutorWordsMeasure()
