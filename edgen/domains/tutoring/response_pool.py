"""The responses of tutors in earlier rounds, found by a student's action and keywords.

Memory is bounded. Of more than `most` responses, those with the smallest digests are kept, an
order-independent sample. Each list of the index holds at most 64 of them. A pool depends only on
conversations.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from edgen.domains.tutoring.exercises.model import split_words
from edgen.domains.tutoring.pool_config import PoolSettings
from edgen.domains.tutoring.served_turns import Origin, find_origin, list_responses
from edgen.plugin import Recorded, Space, Turn

_LISTED = 64  # responses in a list of the index
_MOST_CHARACTERS = 2_000  # characters of a kept response
_WORDS = 12  # words of a student's turn that are keywords
_WORD = re.compile(r"\w{3,40}")


class ValueFinder:
    """A search for the values of a space in a text: by the value itself, or by a text that only its entry
    has, such as its word in another language."""

    def __init__(self, space: Space, concepts: Iterable[str]) -> None:
        named: defaultdict[str, set[str]] = defaultdict(set)
        for name in concepts:
            for entry in space[name].entries:
                for said in (entry.value, *entry.fields.values()):
                    if isinstance(said, str) and len(said) > 2:
                        named[_join_words(said)].add(make_keyword(name, entry.value))
        self._values = {term: min(several) for term, several in named.items() if len(several) == 1}

    def find_values(self, text: str) -> frozenset[str]:
        """Return the values that a text names, as keywords."""
        said = _join_words(text)
        return frozenset(value for term, value in self._values.items() if term in said)


def make_keyword(dimension: str, value: str) -> str:
    """Return the keyword of a value."""
    return f"{dimension}={value}"


def _join_words(text: str) -> str:
    """Return the words of a text, with blanks around them."""
    return f" {' '.join(split_words(text, accents=False))} "


class PoolQuery(NamedTuple):
    """A student's turn as a query for responses: its actions, whether it solves the exercise, and its
    keywords."""

    actions: tuple[str, ...]
    solved: bool
    keywords: frozenset[str]

    @classmethod
    def of(cls, turn: Turn, concepts: Mapping[str, str]) -> PoolQuery:
        """Return the query of a turn about an exercise with these values."""
        words = [word.casefold() for word in _WORD.findall(turn.text[:_MOST_CHARACTERS])]
        values = [make_keyword(name, value) for name, value in concepts.items()]
        return cls(turn.labels, turn.data.get("solved") is True, frozenset((*values, *words[:_WORDS])))


class Response(msgspec.Struct, frozen=True):
    """A tutor's text, its actions, and the turn that it responds to."""

    text: str  # text of the tutor
    actions: tuple[str, ...]  # in the order of the tutor's answer
    to: PoolQuery  # the turn that it responds to
    about: frozenset[str]  # keywords of its exercise's values that its text names: required in a query
    origin: Origin  # its conversation, turn and place among the responses
    digest: bytes  # of everything but the origin


class ResponsePool:
    """The responses that may be served to students in one round. `naming` finds the values of the space in a
    text; `number` is the round's, from 0."""

    def __init__(
        self,
        settings: PoolSettings,
        naming: ValueFinder,
        number: int = 0,
        responses: Sequence[Response] = (),
        exposures: Mapping[Origin, int] | None = None,
    ) -> None:
        self.settings = settings
        self._naming = naming
        self.number = number
        self._responses = responses
        self._exposures = exposures or {}
        self._index: defaultdict[tuple[bool, str, str], list[int]] = defaultdict(list)
        for place, response in enumerate(responses):
            for action in response.to.actions:
                for word in response.about or response.to.keywords:
                    listed = self._index[response.to.solved, action, word]
                    if len(listed) < _LISTED:
                        listed.append(place)

    def __len__(self) -> int:
        return len(self._responses)

    def count_exposure(self, response: Response) -> int:
        """Return how often a response was served in earlier rounds."""
        return self._exposures.get(response.origin, 0)

    def find(self, moment: PoolQuery, shown: Collection[str], rng: random.Random) -> Response | None:
        """Return the best response that was not shown: with the most shared keywords, then the same actions,
        then the fewest exposures. Of several, one is drawn; None if no response fits."""
        listed = {
            place
            for action in moment.actions
            for word in moment.keywords
            for place in self._index.get((moment.solved, action, word), ())
        }
        most, fitting = self.settings.shared, list[Response]()
        for place in sorted(listed):
            response = self._responses[place]
            shared = len(response.to.keywords & moment.keywords)
            if shared < most or response.text in shown or not response.about <= moment.keywords:
                continue
            fitting = [*fitting, response] if shared == most else [response]
            most = shared
        fits = {
            id(one): ({*one.to.actions} != {*moment.actions}, self.count_exposure(one)) for one in fitting
        }
        best = min(fits.values(), default=None)
        found = [one for one in fitting if fits[id(one)] == best]
        return rng.choice(found) if found else None

    def grow(self, made: Iterable[Recorded]) -> ResponsePool:
        """Return the pool of the next round: with the responses of these conversations, and without those
        that a student called nonsense."""
        kept = {response.digest: response for response in self._responses}
        exposures, nonsense = Counter(self._exposures), set[Origin]()
        for recorded in made:
            for turn in recorded.conversation.turns:
                if (origin := find_origin(turn)) is not None:
                    exposures[origin] += 1
                    if turn.data.get("nonsense"):
                        nonsense.add(origin)
            for response in self._iterate_responses(recorded):
                kept.setdefault(response.digest, response)
            if len(kept) > 2 * self.settings.most:
                kept = _choose_smallest(kept, self.settings.most)
        kept = {digest: one for digest, one in kept.items() if one.origin not in nonsense}
        responses = [*_choose_smallest(kept, self.settings.most).values()]
        known = {response.origin for response in responses}
        counted = {origin: count for origin, count in exposures.items() if origin in known}
        return ResponsePool(self.settings, self._naming, self.number + 1, responses, counted)

    def _iterate_responses(self, recorded: Recorded) -> Iterator[Response]:
        """Yield the tutors' responses to the student's turns of a conversation. If a student calls a turn
        nonsense, its exercise and everything after it are skipped."""
        exercises = (recorded.conversation.outcome or {}).get("exercises")
        if not isinstance(exercises, list):
            return
        found: list[Response] = []
        concepts: Mapping[str, str] = {}
        before: Turn | None = None
        for number, turn in enumerate(recorded.conversation.turns):
            if "exercise" in turn.data:
                yield from found
                found, concepts = [], _find_concepts(exercises, turn.data["exercise"])
            elif turn.role.lower() == "tutor" and before is not None:
                moment = PoolQuery.of(before, concepts)
                for place, said in enumerate(list_responses(turn)):
                    if len(said.text) <= _MOST_CHARACTERS:
                        found.append(self._make_response(said, moment, (recorded.id, number, place)))
            if turn.data.get("nonsense"):
                return
            before = turn if turn.role.lower() != "tutor" else None
        yield from found

    def _make_response(self, turn: Turn, moment: PoolQuery, origin: Origin) -> Response:
        facts = (turn.text, turn.labels, moment.actions, moment.solved, sorted(moment.keywords))
        digest = hashlib.blake2b(msgspec.json.encode(facts), digest_size=16).digest()
        # A value of another exercise is an ordinary word in a text, such as `behind` in a rule.
        about = self._naming.find_values(turn.text) & moment.keywords
        return Response(turn.text, turn.labels, moment, about, origin, digest)


def _choose_smallest(kept: Mapping[bytes, Response], most: int) -> dict[bytes, Response]:
    return {digest: kept[digest] for digest in sorted(kept)[:most]}


def _find_concepts(exercises: Sequence[Any], number: Any) -> Mapping[str, str]:
    if (
        not isinstance(number, int)
        or not 0 <= number < len(exercises)
        or not isinstance(exercises[number], dict)
    ):
        return {}
    concepts = exercises[number].get("concepts")
    return concepts if isinstance(concepts, dict) else {}
