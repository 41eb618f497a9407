"""Rollouts of a run: from each response at which a pair parts, the conversation continues several times.

A task continues one response once, with the run's own agents. Its name has the candidate, the number of given
turns and its own number, as in "r1@7.2". The result is in a separate ledger for each arm. The original
conversations are not among the rollouts: the parting turn was drawn with knowledge of their length, so they
would bias the mean.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from edgen.core.errors import RunError
from edgen.core.pair import Candidate
from edgen.core.values import Role, Status, Turn
from edgen.preferences.choice import PairChoice
from edgen.store.ledger import LedgerReader

_encode = msgspec.json.Encoder().encode


class DivergingTurn(NamedTuple):
    """A response at which a pair parts: the last of the first `turns` turns of the candidate `name`."""

    name: str
    turns: int

    def name_rollout(self, number: int) -> str:
        """Return the name of the `number`-th rollout of this response."""
        return f"{self.name}@{self.turns}.{number}"

    def render_for_digest(self) -> str:
        """Return the response as text for the digest of the rollouts' units. Stored digests hold this form,
        with an earlier name of the class."""
        return f"PartingTurn(name={self.name!r}, turns={self.turns!r})"


def read_rollout(task: str) -> tuple[DivergingTurn, int]:
    """Split the name of a rollout into the response and the number."""
    name, _, rest = task.partition("@")
    turns, _, number = rest.partition(".")
    return DivergingTurn(name, int(turns)), int(number)


class RolloutRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A rollout in a ledger: the whole conversation. `given` is a digest of the turns that it continues. If
    they have changed since, the rollout does not count."""

    given: str
    turns: tuple[Turn, ...]
    probability: float | None
    ended_by: Role | None
    simulated: bool


_decode = msgspec.json.Decoder(RolloutRecord).decode


def list_diverging_responses(
    choice: PairChoice, index: int, names: Sequence[str]
) -> Iterator[tuple[DivergingTurn, DivergingTurn]]:
    """Yield both responses of every pair of a scenario that parts in two responses of the same role."""
    for a, b, divergence in choice.iterate_divergences(index, names):
        if divergence.responses is not None:
            yield DivergingTurn(a, divergence.prefix + 1), DivergingTurn(b, divergence.prefix + 1)


def digest_given(turns: Sequence[Turn]) -> str:
    """Return the digest of the turns that a rollout continues."""
    return hashlib.blake2b(_encode(turns), digest_size=8).hexdigest()


class PlayedRollouts(contextlib.AbstractContextManager["PlayedRollouts"]):
    """The rollouts in the ledgers, by arm. Without ledgers, all planned rollouts count as played. Use as a
    context manager."""

    def __init__(self, choice: PairChoice, ledgers: Mapping[str, Path] | None) -> None:
        self.choice = choice
        self.reader = choice.reader
        self._planned = ledgers is None
        # Cache of one scenario, since tasks come scenario by scenario.
        self._read: tuple[int, dict[str, Candidate]] = (-1, {})
        with contextlib.ExitStack() as stack:
            self._views = [stack.enter_context(LedgerReader(path)) for path in (ledgers or {}).values()]
            self._stack = stack.pop_all()

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def k(self) -> int:
        """The number of rollouts of each response."""
        return self.choice.wanted.rollouts or 0

    def list_pairs_to_judge(self, index: int, names: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Yield the names of the rollouts that a judge compares: rollouts of the same number, of both
        responses of a pair."""
        known = None if self._planned else self._of_scenario(index)
        for a, b in list_diverging_responses(self.choice, index, names):
            for number in range(self.k):
                one, other = a.name_rollout(number), b.name_rollout(number)
                if known is None or (one in known and other in known):
                    yield one, other

    def of(self, index: int, response: DivergingTurn) -> list[Candidate | None]:
        """Return all k rollouts of a response, with None for those that failed or are missing."""
        known = self._of_scenario(index)
        return [known.get(response.name_rollout(number)) for number in range(self.k)]

    def candidate(self, index: int, name: str) -> Candidate:
        """Return one rollout, which must exist."""
        return self._of_scenario(index)[name]

    def _of_scenario(self, index: int) -> dict[str, Candidate]:
        if self._read[0] != index:
            found = {}
            for view in self._views:
                for task, (status, _, record) in view.read_outcomes(index).items():
                    played = self._make_candidate(index, task, record) if status == Status.ACCEPTED else None
                    if played is not None:
                        found[task] = played
            self._read = (index, found)
        return self._read[1]

    def _make_candidate(self, index: int, task: str, record: bytes | None) -> Candidate | None:
        """Return a rollout as a candidate; None if the turns that it continues have changed."""
        if record is None:
            return None
        try:
            played, (response, _) = _decode(record), read_rollout(task)
            candidate = self.reader.candidate(index, response.name)
        except (ValueError, msgspec.MsgspecError) as problem:
            raise RunError(
                f"a ledger of rollouts holds an invalid rollout ({problem}); it is damaged. "
                f"Restore it from a copy, or remove {self.reader.rundir.rollouts} to have them made again."
            ) from None
        except RunError:  # the conversation is missing now
            return None
        if played.given != digest_given(candidate.turns[: response.turns]):
            return None
        return msgspec.structs.replace(
            candidate,
            id=f"{candidate.id}@{response.turns}",
            turns=played.turns,
            probability=played.probability,
            ended_by=played.ended_by,
            simulated=played.simulated,
        )
