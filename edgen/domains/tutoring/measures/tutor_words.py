"""Length of tutors' responses and students' turns, in words separated by blanks, and the number of a
response's words that are not among the space's concepts.

Words are split at blanks, as in CIMA; all responses to a turn count. A student's turn counts once, even if
several contexts begin with it. Memory: 13 bytes per student's turn.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from edgen.domains.tutoring.exercises.model import find_exercises
from edgen.domains.tutoring.served_turns import list_responses
from edgen.plugin import Histogram, Measure, NeedsDataSet, Sample, Space, Words
from edgen.plugin.measures import Panel, Shared
from edgen.plugin.texts import DigestTable

_WORD = re.compile(r"\w+")
_DIGEST = (1 << 64) - 1


class TutorWordsMeasure(NeedsDataSet, Measure[Any]):
    name = "tutor_words"
    definition = (
        "Words (separated by blanks) of each tutor response and of each different student turn; and the "
        "words of a response that are no value of the space's concepts, in any language of the space. As "
        "in CIMA (Stasaski, Kao and Hearst 2020, section 4), which does not define words of the domain."
    )
    order = 14
    section = "shape"
    nothing = "No turn carries actions."
    aggregates = (
        Histogram("responses", label="words a response", required=True),
        Histogram("other_words", label="  not the exercise's"),
        Histogram("student", label="words a student's turn"),
    )
    panels = (
        Panel("tutor-words", "Words of a response", ("responses",), "Look for a long tail: a tutor who "
        "lectures."),
    )  # fmt: skip
    compares = ()

    def column_reader(self, shared: Shared) -> Callable[[Sample, Words], Mapping[str, Any]]:
        """Return a reader that counts a student's turn once in the whole data set: contexts may share
        turns."""
        return _Reader(shared.data.space)


class _Reader:
    def __init__(self, space: Space | None) -> None:
        self._seen = DigestTable(numbered=False)
        self._domain = frozenset() if space is None else _list_words_of_space(space)

    def __call__(self, sample: Sample, words: Words) -> Mapping[str, Any]:
        domain = self._domain or _list_words(sample.scenario.values.values(), sample.scenario.fields.values())
        responses, others, student = [], [], []
        history = 0
        for turn in sample.turns:
            history = hash((history, turn.role, turn.text))
            if turn.role != "Tutor":
                if self._seen.setdefault(history & _DIGEST) is None:
                    student.append(len(turn.text.split()))
            elif turn.labels:
                for said in list_responses(turn):
                    responses.append(len(said.text.split()))
                    others.append(sum(word not in domain for word in _cut(said.text)))
        return {"responses": responses, "other_words": others, "student": student}


def _cut(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _list_words_of_space(space: Space) -> frozenset[str]:
    """Return the words of the concepts of a space's exercises, and of their fields."""
    exercises = find_exercises(space)
    if exercises is None:
        return frozenset()
    names = {name for tier in exercises.tiers.values() for name in tier.concepts}
    entries = [entry for name in names for entry in space[name].entries]
    return _list_words([entry.value for entry in entries], [entry.fields for entry in entries])


def _list_words(values: Iterable[str], fields: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    texts = [*values, *(said for one in fields for said in one.values() if isinstance(said, str))]
    return frozenset(word for text in texts for word in _cut(text))


MEASURE = TutorWordsMeasure()
