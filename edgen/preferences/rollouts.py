"""Rollouts of a run: from each response at which a pair parts, the conversation is played on several times.

A task plays on from one response once, by the run's own agents; it is named by candidate, turns that are given and
number, as in "r1@7.2". What comes of it is kept in a ledger of its own, one for each arm. The conversations themselves
are none of the rollouts: which turn they were left at was drawn with their length at hand, so they would tilt the mean.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from edgen.config import Job
from edgen.core.digest import fingerprint
from edgen.core.errors import RunError
from edgen.core.pair import Candidate, read_candidate_name
from edgen.core.values import Conversation, Rejection, Role, Status, Turn
from edgen.planning.plan import Plan
from edgen.preferences.choice import PairChoice
from edgen.preferences.comparisons import Comparisons, name_comparison
from edgen.preferences.judge import Judge
from edgen.preferences.run_tasks import RunTasks
from edgen.protocols.continuation import play_on
from edgen.protocols.stage import Stage
from edgen.protocols.task import Settled, Spent, Task
from edgen.store.ledger import LedgerReader

_encode = msgspec.json.Encoder().encode


class Response(NamedTuple):
    """A turn at which a pair parts: the last of the first `turns` of the candidate `name`."""

    name: str
    turns: int

    def rollout(self, number: int) -> str:
        """The task that plays on from it for the `number`-th time."""
        return f"{self.name}@{self.turns}.{number}"


def read_rollout(task: str) -> tuple[Response, int]:
    """The response and the number in a task's name."""
    name, _, rest = task.partition("@")
    turns, _, number = rest.partition(".")
    return Response(name, int(turns)), int(number)


class PlayedOn(msgspec.Struct, frozen=True, kw_only=True):
    """What a ledger keeps of a rollout: the whole conversation. `given` is a digest of the turns that it was played on
    from: where the run was made anew since, it does not count any more."""

    given: str
    turns: tuple[Turn, ...]
    probability: float | None
    ended_by: Role | None
    simulated: bool


_decode = msgspec.json.Decoder(PlayedOn).decode


def parted_responses(
    choice: PairChoice, index: int, names: Sequence[str]
) -> Iterator[tuple[Response, Response]]:
    """Both responses of every pair of a scenario that parts in two of the same role."""
    for a, b, parting in choice.partings(index, names):
        if parting.responses is not None:
            yield Response(a, parting.prefix + 1), Response(b, parting.prefix + 1)


def planned_comparisons(choice: PairChoice, index: int, names: Sequence[str]) -> Iterator[str]:
    """The comparisons of a scenario's rollouts, if all of them come to something."""
    for a, b in parted_responses(choice, index, names):
        for number in range(choice.wanted.rollouts or 0):
            yield name_comparison(a.rollout(number), b.rollout(number))


class Rollouts(RunTasks):
    """The rollouts of one arm, whose conversations `plan` makes, as the scheduler's tasks."""

    def __init__(self, choice: PairChoice, arm: str, plan: Plan, identities: Mapping[str, Any]) -> None:
        self._choice, self._plan, self._arm = choice, plan, arm
        agents = {role: dict(identity) for role, identity in identities.items()}
        settings = msgspec.to_builtins(plan.settings)
        super().__init__(choice.reader, plan.job, fingerprint((arm, agents, plan.template_sha256, settings)))
        self.facts = {"arm": arm, "backends": agents, plan.job.protocol: settings}
        self.responses = 0
        digest = hashlib.blake2b(digest_size=8)
        for index, responses in self._responses():
            digest.update("{} {}\n".format(index, " ".join(map(str, responses))).encode())
            self.responses += len(responses)
            self.scenarios = index + 1
        self.k = choice.wanted.rollouts or 0
        self.planned = self.responses * self.k
        self.shaping = {"k": self.k, "units": digest.hexdigest()}

    def _responses(self) -> Iterator[tuple[int, list[Response]]]:
        """What is played on from, by scenario."""
        for index, names in self.reader.scenarios():
            both = parted_responses(self._choice, index, names) if len(names) > 1 else ()
            found = {one for pair in both for one in pair if read_candidate_name(one.name)[0] == self._arm}
            if found:
                yield index, sorted(found)

    def units(self) -> Iterator[tuple[int, str]]:
        """(scenario, task) of every rollout."""
        for index, responses in self._responses():
            yield from (
                (index, task)
                for task in sorted(one.rollout(number) for one in responses for number in range(self.k))
            )

    def turns_to_come(self, index: int, response: Response) -> tuple[int, int, int]:
        """What a rollout of a response asks for, each once: turns, as many as followed it in its own conversation; the
        most turns that there can be; closing questions."""
        candidate, stage = self.reader.candidate(index, response.name), self._stage(index)
        closing = int(stage.settings.closing is not None)
        if _ended_by(candidate, response) is not None:
            return 0, 0, closing
        return len(candidate.turns) - response.turns, stage.settings.max_turns - response.turns, closing

    def _stage(self, index: int) -> Stage:
        stage = self._plan.stage(self.reader.scenario(index))
        assert stage is not None, "a protocol without a stage was refused"
        return stage

    def twins(self, index: int, name: str) -> Iterable[str]:  # noqa: ARG002
        """The other rollouts of the same response."""
        response, own = read_rollout(name)
        return (response.rollout(number) for number in range(self.k) if number != own)

    def task(self, index: int, name: str) -> Task:
        """The work on one rollout."""
        response, _ = read_rollout(name)
        candidate = self.reader.candidate(index, response.name)
        given = candidate.turns[: response.turns]
        protocol = play_on(self._stage(index), name, given, _ended_by(candidate, response))
        return Task(protocol, self.group(index), lambda result, spent: _settle(given, result, spent))


def _ended_by(candidate: Candidate, response: Response) -> Role | None:
    """Who ended the conversation with the response itself; None where it goes on."""
    last = len(candidate.turns) == response.turns
    ended = last and candidate.ended_by == candidate.turns[-1].role
    return candidate.ended_by if ended else None


def _settle(given: Sequence[Turn], result: Conversation | Rejection, spent: Spent) -> Settled:
    if isinstance(result, Rejection):
        return Settled.rejected(result)
    played = PlayedOn(
        given=_digest(given),
        turns=result.turns,
        probability=result.probability,
        ended_by=result.ended_by,
        simulated=spent.simulated,
    )
    return Settled.accepted(_encode(played))


def _digest(turns: Sequence[Turn]) -> str:
    return hashlib.blake2b(_encode(turns), digest_size=8).hexdigest()


class PlayedRollouts(contextlib.AbstractContextManager["PlayedRollouts"]):
    """The rollouts that ledgers hold, by arm. Use as a context manager."""

    def __init__(self, choice: PairChoice, ledgers: Mapping[str, Path]) -> None:
        self.choice = choice
        self._reader = choice.reader
        # Of one scenario: tasks come scenario by scenario.
        self._read: tuple[int, dict[str, Candidate]] = (-1, {})
        with contextlib.ExitStack() as stack:
            self._views = [stack.enter_context(LedgerReader(path)) for path in ledgers.values()]
            self._stack = stack.pop_all()

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def k(self) -> int:
        """How often it was played on from each response."""
        return self.choice.wanted.rollouts or 0

    def of(self, index: int, response: Response) -> list[Candidate | None]:
        """All k rollouts of a response; None for one that came to nothing or was not made."""
        known = self._of_scenario(index)
        return [known.get(response.rollout(number)) for number in range(self.k)]

    def named(self, index: int, task: str) -> Candidate:
        """One rollout, which is there."""
        return self._of_scenario(index)[task]

    def _of_scenario(self, index: int) -> dict[str, Candidate]:
        if self._read[0] != index:
            found = {}
            for view in self._views:
                for task, (status, _, record) in view.outcomes(index).items():
                    played = self._candidate(index, task, record) if status == Status.ACCEPTED else None
                    if played is not None:
                        found[task] = played
            self._read = (index, found)
        return self._read[1]

    def _candidate(self, index: int, task: str, record: bytes | None) -> Candidate | None:
        """A rollout as a candidate; None where it was played on from other turns than there are now."""
        if record is None:
            return None
        try:
            played, (response, _) = _decode(record), read_rollout(task)
            candidate = self._reader.candidate(index, response.name)
        except (ValueError, msgspec.MsgspecError) as problem:
            raise RunError(
                f"a ledger of rollouts holds a rollout that is none ({problem}); it is damaged. "
                f"Restore it from a copy, or remove {self._reader.rundir.rollouts} to have them made again."
            ) from None
        except RunError:  # a conversation that is not there any more
            return None
        if played.given != _digest(candidate.turns[: response.turns]):
            return None
        return msgspec.structs.replace(
            candidate,
            id=f"{candidate.id}@{response.turns}",
            turns=played.turns,
            probability=played.probability,
            ended_by=played.ended_by,
            simulated=played.simulated,
        )


class RolloutComparisons(Comparisons):
    """What a judge is asked about rollouts: the first of one response against the first of the other, and so on."""

    def __init__(self, played: PlayedRollouts, job: Job, judge: Judge) -> None:
        self._played = played
        super().__init__(played.choice.reader, job, judge)

    def tasks(self, index: int, names: Sequence[str]) -> Iterator[str]:
        """The comparisons of one scenario."""
        for a, b in parted_responses(self._played.choice, index, names):
            both = zip(self._played.of(index, a), self._played.of(index, b), strict=True)
            for number, (one, other) in enumerate(both):
                if one is not None and other is not None:
                    yield name_comparison(a.rollout(number), b.rollout(number))

    def side(self, index: int, name: str) -> Candidate:
        """One side of a comparison."""
        return self._played.named(index, name)
