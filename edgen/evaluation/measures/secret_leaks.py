"""Secret leaks: a role says word for word what it cannot know, before anybody who can.

What a role cannot know are the values of the dimensions outside its view (`roles:` of the space), unless its view
holds the same words. A preference of several parts (`class discussions/asking questions`) leaks with any of them, a
reaction without what joins it to its sentence (`and`, `otherwise`). Two words and eight characters are the least that
counts, as in self-play (`reading.detect.find_leak`). A leak of a common phrase may be chance.

The share's interval is that of `stats.intervals`, clustered by scenario. Memory: 16 bytes a conversation.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec

from edgen.core.registry import find
from edgen.core.text import readable_name
from edgen.core.values import Role, Turn
from edgen.evaluation.figures import Block, intervals_picture
from edgen.evaluation.measure import ArmResult, Measure, Shared, figure_kinds, share_intervals
from edgen.evaluation.sample import Sample, Words
from edgen.evaluation.terminal import join_counts, row, rows, share_with_interval, wrap
from edgen.expressions.language import Value
from edgen.families.education import ways
from edgen.families.education.cues import MOST
from edgen.reading.detect import find_leak, fold, is_secret
from edgen.reading.detect import words as cut_words
from edgen.space import Space, SpaceRole
from edgen.space.education import ROLES
from edgen.stats.intervals import Estimate, ShareCount

EXAMPLES = 10
_LEADING = re.compile(r"(?:(?:and|but|or|then|who|might|may|he|she|they|will)\s+){1,5}", re.IGNORECASE)
_TRAILING = re.compile(r"\s+otherwise\W{0,5}\Z", re.IGNORECASE)


class Secret(NamedTuple):
    """A phrase that may leak, folded, and its words."""

    phrase: str
    words: str


class Leaks(msgspec.Struct, frozen=True, kw_only=True):
    """Conversations in which a role says word for word what is outside its view, before anybody else said it."""

    conversations: int
    share: Estimate | None
    by: dict[str, int]  # the dimension -> conversations
    examples: tuple[str, ...]  # ids


class LeaksMeasure(Measure[Leaks]):
    name = "leaks"
    definition = (
        "Conversations in which a role says word for word a value of a dimension that it may not know (of Education "
        "Dialogue: the other side's preference or reaction), before anybody else said it. edgen's own definition. Where "
        "one prompt plays all roles (`protocol: oneshot`) the one writer knows everything, and these are its slips; only "
        "where each role has its own (`protocol: selfplay`) could nobody know, and there self-play asks again."
    )
    order = 9
    section = "behaviour"
    figures = figure_kinds("", lists=("dimensions",))

    def start(self, shared: Shared) -> LeaksCount:
        return LeaksCount(shared.data.roles)

    def of_one(self, sample: Sample, words: Words, space: Space) -> Mapping[str, Value]:
        """The dimensions that somebody gives away, and how many these are."""
        found = _counter(space.roles).leaked(sample, words)
        return {"": len(found), "dimensions": sorted(found)}

    def lines(self, value: Leaks) -> Iterator[str]:
        yield from wrap(
            "A role says word for word what it may not know. Under `protocol: oneshot` one writer plays all roles and "
            "knows everything, and these are its slips; only under selfplay nobody could know."
        )
        yield row("conversations", f"{value.conversations:,} = {share_with_interval(value.share)}")
        if value.conversations:
            fields = {readable_name(field): n for field, n in value.by.items()}
            yield from rows("what it may not know", join_counts(fields))
            yield from rows("for example", ", ".join(value.examples[:3]))

    def blocks(self, found: Sequence[ArmResult[Leaks]]) -> Iterator[Block]:
        protocols = sorted({one.job["protocol"] for one in found})
        about = " ".join(filter(None, (find("protocol", name).about_leaks for name in protocols)))
        rows = share_intervals(found, [("Says what only others know", lambda value: value.share)])
        yield from intervals_picture("leaks", "Leaks", rows, about)

    def examples(self, value: Leaks) -> Iterator[tuple[str, str]]:
        for name in value.examples:
            yield name, "a role says word for word what it may not know"


class LeaksCount:
    """`roles` say who knows which dimension."""

    def __init__(self, roles: Sequence[SpaceRole] = ROLES) -> None:
        self._roles = tuple(roles)
        everybody = [name for role in self._roles for name in role.sees]
        self._common = tuple(dict.fromkeys(n for n in everybody if everybody.count(n) == len(self._roles)))
        # what somebody knows and somebody else does not, in the order of the roles that do
        self._private = tuple(dict.fromkeys(n for n in everybody if n not in self._common))
        self._leaks = ShareCount()
        self._by: Counter[str] = Counter(dict.fromkeys(self._private, 0))
        self._examples: list[str] = []

    def see(self, sample: Sample, words: Words) -> None:
        fields = self.leaked(sample, words)
        self._leaks.add(sample.scenario.index, bool(fields))
        self._by.update(fields)
        if fields and len(self._examples) < EXAMPLES:
            self._examples.append(sample.id)

    def result(self) -> Leaks:
        return Leaks(
            conversations=self._leaks.hits,
            share=self._leaks.result(),
            by=dict(self._by),
            examples=tuple(self._examples),
        )

    def leaked(self, sample: Sample, words: Words) -> set[str]:
        """The dimensions of which somebody says a value who may not know it."""
        scenario = sample.scenario.values
        whole = "".join(words.spoken)
        found: dict[str, list[Secret]] = {}
        for name in self._private:
            # Few conversations hold any of them, and one look at all words together tells.
            if held := [one for one in _secrets(name, scenario.get(name, "")[:MOST]) if one.words in whole]:
                found[name] = held
        if not found:
            return set()
        return {
            name
            for role in self._roles
            for name, secrets in found.items()
            if name not in role.sees
            for secret in secrets
            if secret.phrase not in self._known(scenario, role)
            and _first_to_say(secret, sample.turns, words.spoken) == role.name
        }

    def _known(self, scenario: Mapping[str, str], role: SpaceRole) -> str:
        """What the role may say, folded: its own values, and below what all know."""
        own = [name for name in self._private if name in role.sees]
        return "\n".join(
            _fold("\n".join(scenario.get(name, "")[:MOST] for name in names)) for names in (own, self._common)
        )


@lru_cache(maxsize=16)
def _counter(roles: tuple[SpaceRole, ...]) -> LeaksCount:
    return LeaksCount(roles)


def _first_to_say(secret: Secret, turns: Sequence[Turn], said: Sequence[str]) -> Role | None:
    for turn, words in zip(turns, said, strict=True):
        if secret.words in words and find_leak(turn.text, [secret.phrase], ()) is not None:
            return turn.role
    return None


_fold = lru_cache(maxsize=4096)(fold)


@lru_cache(maxsize=4096)
def _secrets(dimension: str, value: str) -> tuple[Secret, ...]:
    """All that could leak of a dimension's value."""
    pieces = dict.fromkeys(fold(piece) for piece in _pieces(dimension, value))
    return tuple(Secret(piece, " ".join(cut_words(piece))) for piece in pieces if is_secret(piece))


def _pieces(dimension: str, value: str) -> tuple[str, ...]:
    """What somebody may say of a value: of a preference each of its parts, of a reaction what it comes to."""
    if dimension.endswith("preference"):
        return tuple(ways.parts(value))
    return (_bare(value) if dimension.endswith("reaction") else value,)


def _bare(reaction: str) -> str:
    """`and gets rude otherwise` as what somebody may say of it: `gets rude`."""
    stripped = reaction.strip()
    begins = _LEADING.match(stripped)
    return _TRAILING.sub("", stripped[begins.end() :] if begins else stripped)


MEASURE = LeaksMeasure()
