"""Pairs of a run that people vote on: the choice of pairs, the shown texts, and their sides.

People see the pairs of pairs.jsonl. Without that file, or if it holds the pairs that people have voted on so
far, they see the pairs of conversations that a judge would compare, or, in a run without such pairs, all
pairs of responses to one turn. Pairs of equal texts are left out.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec import UNSET

from edgen.core.digest import hash64
from edgen.core.errors import RunError
from edgen.core.pair import Candidate, ResponsePlace, SideName, cut_at_response, digest_texts
from edgen.core.values import Turn
from edgen.preferences.choice import Divergence, PairChoice
from edgen.preferences.response_pairs import list_response_places
from edgen.store.pairs_file import find_label_source, read_pairs
from edgen.store.run_folder import RunFolder
from edgen.store.run_reader import RunReader
from edgen.store.votes import make_vote_unit


class VotePair(NamedTuple):
    """A pair to vote on: two ids, in the order of the run, and the digest of the texts. `responses`: the
    numbers of the two compared responses, if both are of one conversation."""

    a: str
    b: str
    texts: str
    scenario: int
    responses: tuple[ResponsePlace, ResponsePlace] | None = None

    @property
    def unit(self) -> str:
        """The pair's name in the task "vote"."""
        return make_vote_unit(self.a, self.b, self.texts)

    @property
    def key(self) -> str:
        """A name of the pair that hides its conversations."""
        return make_key(self.unit)


class VoteTexts(NamedTuple):
    """The texts of a pair as shown to a person: the shared turns, and how each conversation continues."""

    before: tuple[Turn, ...]
    a: tuple[Turn, ...]
    b: tuple[Turn, ...]


def make_key(unit: str) -> str:
    """Return a name of a unit that hides its ids and that no spreadsheet takes for a number."""
    return f"u-{hashlib.blake2b(unit.encode(), digest_size=10).hexdigest()}"


def draw_number(*parts: str) -> int:
    """Return a pseudo-random number that depends only on these texts."""
    return hash64("\0".join(parts))


def choose_first_side(unit: str, person: str) -> SideName:
    """Return which side of a pair a person sees first."""
    return "a" if draw_number("side", unit, person) % 2 == 0 else "b"


def list_vote_pairs(reader: RunReader, most: int | None = None) -> Iterator[VotePair]:
    """Yield the pairs that people vote on, in the order of the run, without repeated pairs of equal texts.
    `most` as in `has_vote_pairs`. Raises RunError."""
    scenario, seen = -1, set[str]()
    for pair in _list_all_pairs(reader, most):
        if pair.scenario != scenario:
            scenario, seen = pair.scenario, set()
        if pair.unit not in seen:
            seen.add(pair.unit)
            yield pair


def _list_all_pairs(reader: RunReader, most: int | None) -> Iterator[VotePair]:
    if not reader.rundir.pairs.exists() or _has_only_votes(reader.rundir):
        chosen = _list_chosen_pairs(reader)
        first = next(chosen, None)
        yield from _of_responses(reader, most) if first is None else itertools.chain((first,), chosen)
        return
    for pair in read_pairs(reader.rundir):
        if pair.left_out != "identical":
            one, other = pair.a.response, pair.b.response
            responses = None if one is UNSET or other is UNSET else (one, other)
            yield VotePair(pair.a.id, pair.b.id, pair.texts, pair.scenario, responses)


def _has_only_votes(run: RunFolder) -> bool:
    """Return whether people's votes are the only source of the run's pairs."""
    if (source := find_label_source(run)) is not None:
        return source == "human"
    return all(pair.signals.human is not None and not pair.signals.oracle for pair in read_pairs(run))


def _list_chosen_pairs(reader: RunReader) -> Iterator[VotePair]:
    if reader.origin == "replicates" and reader.job.replicates == 1:
        return  # a run of single conversations has no pairs
    choice = PairChoice(reader, reader.job.pairs)
    for index, names in reader.scenarios():
        if len(names) > 1:
            for _, _, divergence in choice.iterate_divergences(index, names):
                if divergence.a.turns != divergence.b.turns:
                    texts = digest_texts(divergence.a, divergence.b)
                    yield VotePair(divergence.a.id, divergence.b.id, texts, index)


def _of_responses(reader: RunReader, most: int | None) -> Iterator[VotePair]:
    for candidate in itertools.islice(reader.candidates(), most):
        for places in list_response_places(candidate):
            a, b = (cut_at_response(candidate, place) for place in places)
            if a.turns[-1].text.strip() != b.turns[-1].text.strip():
                yield VotePair(candidate.id, candidate.id, digest_texts(a, b), candidate.scenario, places)


def has_vote_pairs(reader: RunReader, most: int | None = None) -> bool:
    """Return whether there is a pair to vote on. `most`: the number of conversations in which to look for
    several responses to a turn; None: all."""
    return any(True for _ in list_vote_pairs(reader, most))


def read_texts(reader: RunReader, pair: VotePair) -> VoteTexts | None:
    """Return the shown texts of a pair; None if the texts of the run have changed."""
    try:
        a, b = _read_sides(reader, pair)
    except (RunError, IndexError):
        return None
    if digest_texts(a, b) != pair.texts:
        return None
    prefix = Divergence.of(a, b).prefix
    return VoteTexts(
        _strip_turn_facts(a.turns[:prefix]),
        _strip_turn_facts(a.turns[prefix:]),
        _strip_turn_facts(b.turns[prefix:]),
    )


def _read_sides(reader: RunReader, pair: VotePair) -> tuple[Candidate, Candidate]:
    """Return the two sides of a pair. Raises RunError or IndexError if the run no longer has them."""
    a, b = reader.named(pair.a), reader.named(pair.b)
    if pair.responses is None:
        return a, b
    return cut_at_response(a, pair.responses[0]), cut_at_response(b, pair.responses[1])


def _strip_turn_facts(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """Return turns without labels and other facts that could reveal their author."""
    return tuple(Turn(role=turn.role, text=turn.text) for turn in turns)
