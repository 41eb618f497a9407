"""The choice of pairs to compare among a scenario's candidates, and the turn at which the two of a pair
part."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from edgen.config.job_parts import PairSettings
from edgen.core.errors import UsageError
from edgen.core.pair import Candidate, turns_left
from edgen.core.values import Turn
from edgen.preferences.tournament import draw_matches
from edgen.protocols.oracle import count_shared_turns
from edgen.store.run_reader import RunReader
from edgen.store.several_runs import SeveralRuns, pair_between_arms


class Divergence(NamedTuple):
    """Two candidates of a scenario, and the number of turns that they share from the start (`prefix`)."""

    a: Candidate
    b: Candidate
    prefix: int

    @classmethod
    def of(cls, a: Candidate, b: Candidate) -> Divergence:
        return cls(a, b, count_shared_turns(a, b))

    @property
    def responses(self) -> tuple[Turn, Turn] | None:
        """The first turns that differ; None if one conversation ends there, or their roles differ."""
        if min(len(self.a.turns), len(self.b.turns)) <= self.prefix:
            return None
        one, other = self.a.turns[self.prefix], self.b.turns[self.prefix]
        return (one, other) if one.role == other.role else None

    def is_near_end(self, least: int | None) -> bool:
        """Return whether fewer turns than `least` follow the shared ones in the shorter conversation."""
        return least is not None and turns_left(self.a, self.b, self.prefix) < least


MOST_PAIRS = 2_000_000  # of one scenario, held in memory at once: the pairs of 2,000 conversations


class PairChoice:
    """The chosen pairs of each scenario: those of its tournament, or `every` pair."""

    def __init__(self, reader: RunReader, wanted: PairSettings, *, every: bool = False) -> None:
        self.reader = reader
        self.wanted = wanted
        self.every = every

    def list_names(self, index: int, names: Sequence[str]) -> list[tuple[str, str]]:
        """Return the names of both candidates of each pair, including pairs that part near their end."""
        if isinstance(self.reader, SeveralRuns):
            return pair_between_arms(names, self.wanted.matches)
        if self.every:
            if (count := math.comb(len(names), 2)) > MOST_PAIRS:
                raise UsageError(
                    f"{self.reader.rundir.path}: scenario {index} has {len(names):,} conversations, which "
                    f"make {count:,} pairs, "
                    f"and at most {MOST_PAIRS:,} of a scenario are made. Make a smaller run with `edgen "
                    "select` and --draw N first."
                )
            return [*itertools.combinations(names, 2)]
        return draw_matches(names, self.wanted.matches, self.reader.job.seed, index)

    def iterate_divergences(self, index: int, names: Sequence[str]) -> Iterator[tuple[str, str, Divergence]]:
        """Yield the pairs with their candidates' names, without pairs that part near their end."""
        pairs = self.list_names(index, names)
        candidates = {
            name: self.reader.candidate(index, name)
            for name in dict.fromkeys(itertools.chain.from_iterable(pairs))
        }
        for a, b in pairs:
            divergence = Divergence.of(candidates[a], candidates[b])
            if not divergence.is_near_end(self.wanted.min_turns_left):
                yield a, b, divergence

    def list_pairs_to_judge(self, index: int, names: Sequence[str]) -> list[tuple[str, str]]:
        """Return the names of the pairs, without pairs that part near their end. Without `min_turns_left`, no
        turn is read."""
        if self.wanted.min_turns_left is None:
            return self.list_names(index, names)
        return [(a, b) for a, b, _ in self.iterate_divergences(index, names)]

    def candidate(self, index: int, name: str) -> Candidate:
        """Return one side of a pair."""
        return self.reader.candidate(index, name)
