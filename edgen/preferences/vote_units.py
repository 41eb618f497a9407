"""Pairs of a run that people vote on: which ones, what is shown of each, and on which side.

People see the pairs of pairs.jsonl, or, before a judge was asked, those that a judge would be asked about.
Pairs of equal texts, and of several responses to one turn, are left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from msgspec import UNSET

from edgen.core.errors import RunError
from edgen.core.pair import SideName, texts_digest
from edgen.core.values import Turn
from edgen.preferences.choice import PairChoice, Parting
from edgen.store.pairs_file import read_pairs
from edgen.store.run_reader import RunReader
from edgen.store.votes import vote_unit

Choice = Literal["a", "b", "tie"]


class VotePair(NamedTuple):
    """A pair to vote on: two ids, by their places in the run, and the digest of the texts."""

    a: str
    b: str
    texts: str
    scenario: int

    @property
    def unit(self) -> str:
        """The unit of the task "vote"."""
        return vote_unit(self.a, self.b, self.texts)

    @property
    def key(self) -> str:
        """A name of the pair that names none of its conversations."""
        return key_of(self.unit)


class VoteTexts(NamedTuple):
    """The texts of a pair that a person sees: the shared turns, and how each conversation continues."""

    before: tuple[Turn, ...]
    a: tuple[Turn, ...]
    b: tuple[Turn, ...]


def key_of(unit: str) -> str:
    """Return a name of a unit that hides its ids; no spreadsheet takes it for a number."""
    return f"u-{hashlib.blake2b(unit.encode(), digest_size=10).hexdigest()}"


def drawn(*parts: str) -> int:
    """Return a number that is drawn by these texts, the same every time."""
    return int.from_bytes(hashlib.blake2b("\0".join(parts).encode(), digest_size=8).digest())


def first_side(unit: str, person: str) -> SideName:
    """Return the side of a pair that a person sees first."""
    return "a" if drawn("side", unit, person) % 2 == 0 else "b"


def vote_pairs(reader: RunReader) -> Iterator[VotePair]:
    """Yield the pairs that people vote on, in the order of the run. Raises RunError."""
    if not reader.rundir.pairs.exists():
        yield from _chosen(reader)
        return
    for pair in read_pairs(reader.rundir):
        if pair.a.response is UNSET and pair.left_out != "identical":
            yield VotePair(pair.a.id, pair.b.id, pair.texts, pair.scenario)


def _chosen(reader: RunReader) -> Iterator[VotePair]:
    choice = PairChoice(reader, reader.job.pairs)
    for index, names in reader.scenarios():
        if len(names) > 1:
            for _, _, parting in choice.partings(index, names):
                if parting.a.turns != parting.b.turns:
                    texts = texts_digest(parting.a, parting.b)
                    yield VotePair(parting.a.id, parting.b.id, texts, index)


def has_vote_pairs(reader: RunReader) -> bool:
    """Return whether there is a pair to vote on."""
    single = reader.origin == "replicates" and reader.job.replicates == 1
    if single and not reader.rundir.pairs.exists():
        return False  # known without reading
    return any(True for _ in vote_pairs(reader))


def texts_of(reader: RunReader, pair: VotePair) -> VoteTexts | None:
    """Return what is shown of a pair; None if the run has other texts now."""
    try:
        a, b = reader.named(pair.a), reader.named(pair.b)
    except RunError:
        return None
    if texts_digest(a, b) != pair.texts:
        return None
    prefix = Parting.of(a, b).prefix
    return VoteTexts(_plain(a.turns[:prefix]), _plain(a.turns[prefix:]), _plain(b.turns[prefix:]))


def _plain(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """Return turns without labels and other facts that could show who wrote them."""
    return tuple(Turn(role=turn.role, text=turn.text) for turn in turns)
