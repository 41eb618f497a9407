"""Secret leaks: a side says word for word what only the other side's description holds.

What a side cannot know are the other's preference and reaction, unless its own description or the topic
holds the same words. A phrase of several parts (`class discussions/asking questions`) leaks with any of
them, and a reaction without what joins it to its sentence (`and`, `otherwise`). It is no leak if an
earlier turn had the words. Two words and eight characters are the least that counts, as in self-play
(`transcript.detect.leaked`, which decides); where one prompt plays both sides (`protocol: oneshot`) the
writer knows it all, and leaks are its slips. A leak of a common phrase may be chance. The definition is
this project's.

The share's interval is that of `pairing.intervals`, clustered by scenario. Memory: nine bytes a
conversation.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from edgen.model import Role, Scenario, Turn
from edgen.pairing.intervals import share
from edgen.quality import results, ways
from edgen.quality.cues import MOST
from edgen.quality.model import Sample, Words
from edgen.quality.words import words as cut_words
from edgen.transcript.detect import folded, leaked

EXAMPLES = 10
_FIELDS: dict[Role, tuple[str, str]] = {
    "Teacher": ("teacher_preference", "teacher_reaction"),
    "Student": ("student_preference", "student_reaction"),
}
_LEADING = re.compile(r"(?:(?:and|but|or|then|who|might|may|he|she|they|will)\s+){1,5}", re.IGNORECASE)
_TRAILING = re.compile(r"\s+otherwise\W{0,5}\Z", re.IGNORECASE)


class Secret(NamedTuple):
    """A phrase, folded, and its words; `role` is who cannot know it."""

    role: Role
    field: str
    phrase: str
    words: str


class LeaksMeasure:
    """Leaks over a stream of conversations."""

    def __init__(self) -> None:
        self._leaks, self._scenarios = array("b"), array("q")
        self._by: Counter[str] = Counter({field: 0 for fields in _FIELDS.values() for field in fields})
        self._examples: list[str] = []

    def add(self, sample: Sample, words: Words) -> None:
        """Count one conversation."""
        fields = _leaked_fields(sample, words)
        self._leaks.append(bool(fields))
        self._scenarios.append(sample.scenario.index)
        self._by.update(fields)
        if fields and len(self._examples) < EXAMPLES:
            self._examples.append(sample.id)

    def result(self) -> results.Leaks:
        """What was counted."""
        return results.Leaks(
            conversations=sum(self._leaks),
            share=share(self._leaks, self._scenarios),
            by=dict(self._by),
            examples=tuple(self._examples),
        )


def _leaked_fields(sample: Sample, words: Words) -> set[str]:
    """The fields of the scenario that somebody says who cannot know them."""
    said = [" ".join(turn) for turn in words]
    whole = " ".join(said)
    return {
        secret.field
        for secret in _stated(sample.scenario)
        # Few conversations hold any of them, and one look at all words together tells.
        if secret.words in whole
        and secret.phrase not in folded(sample.scenario.topic[:MOST])
        and _first_to_say(secret, sample.turns, said) == secret.role
    }


def _first_to_say(secret: Secret, turns: Sequence[Turn], said: Sequence[str]) -> Role | None:
    for turn, words in zip(turns, said, strict=True):
        if secret.words in words and leaked(turn.text, [secret.phrase], ()) is not None:
            return turn.role
    return None


def _stated(scenario: Scenario) -> tuple[Secret, ...]:
    return _secrets(
        scenario.teacher_preference[:MOST],
        scenario.teacher_reaction[:MOST],
        scenario.student_preference[:MOST],
        scenario.student_reaction[:MOST],
    )


@lru_cache(maxsize=4096)
def _secrets(teaching: str, teacher: str, learning: str, student: str) -> tuple[Secret, ...]:
    """All that could leak, whatever the topic."""
    described: dict[Role, tuple[str, str]] = {"Teacher": (teaching, teacher), "Student": (learning, student)}
    secrets: list[Secret] = []
    pairs: tuple[tuple[Role, Role], ...] = (("Student", "Teacher"), ("Teacher", "Student"))
    for role, other in pairs:
        known = folded("\n".join(described[role]))
        for field, phrase in zip(_FIELDS[other], described[other], strict=True):
            pieces = ways.parts(phrase) if field.endswith("preference") else (_bare(phrase),)
            unique = dict.fromkeys(folded(piece) for piece in pieces)
            secrets += [
                Secret(role, field, piece, " ".join(cut_words(piece)))
                for piece in unique
                if piece and piece not in known
            ]
    return tuple(secrets)


def _bare(reaction: str) -> str:
    """`and gets rude otherwise` as what somebody may say of it: `gets rude`."""
    stripped = reaction.strip()
    begins = _LEADING.match(stripped)
    return _TRAILING.sub("", stripped[begins.end() :] if begins else stripped)
