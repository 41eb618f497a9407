"""Rollouts: a run's own agents play on from each response at which a pair parts, several times.

A task plays on from one response once; its record is the whole conversation. Each arm has an asker, and a
ledger.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from edgen.asking.asker import RunAsker
from edgen.core.digest import fingerprint
from edgen.core.pair import Candidate, read_candidate_name
from edgen.core.values import Conversation, Role
from edgen.planning.plan import Plan
from edgen.preferences.choice import PairChoice
from edgen.preferences.rollouts import (
    PartingTurn,
    PlayedOn,
    digest_given,
    list_parted_responses,
    read_rollout,
)
from edgen.protocols.stage import Stage, play_on
from edgen.protocols.task import Spent, Task


class Rollouts(RunAsker):
    """The rollouts of one arm, whose conversations `plan` makes."""

    outcomes = ("played", "rejected")

    def __init__(self, choice: PairChoice, arm: str, plan: Plan, identities: Mapping[str, Any]) -> None:
        agents = {role: dict(identity) for role, identity in identities.items()}
        settings = msgspec.to_builtins(plan.settings)
        facts = {"arm": arm, "backends": agents, plan.job.protocol: settings}
        name = fingerprint((arm, agents, plan.template_sha256, settings))
        super().__init__(choice.reader, plan.job, name, facts, "rollouts")
        self.roles, self.part = tuple(plan.roles), arm
        self._choice, self._plan = choice, plan
        self.responses = 0
        digest = hashlib.blake2b(digest_size=8)
        for index, responses in self._responses():
            digest.update("{} {}\n".format(index, " ".join(map(str, responses))).encode())
            self.responses += len(responses)
            self.scenarios = index + 1
        self.k = choice.wanted.rollouts or 0
        self.planned = self.responses * self.k
        self.shaping = {"k": self.k, "units": digest.hexdigest()}

    def _responses(self) -> Iterator[tuple[int, list[PartingTurn]]]:
        """Yield the responses of each scenario that are played on from."""
        for index, names in self.reader.scenarios():
            both = list_parted_responses(self._choice, index, names) if len(names) > 1 else ()
            found = {one for pair in both for one in pair if read_candidate_name(one.name)[0] == self.part}
            if found:
                yield index, sorted(found)

    def units(self) -> Iterator[tuple[int, str]]:
        """Yield (scenario, task) of every rollout."""
        for index, responses in self._responses():
            yield from (
                (index, task)
                for task in sorted(one.rollout(number) for one in responses for number in range(self.k))
            )

    def calls(self, index: int, task: str) -> tuple[int, int]:
        """Return the turns that followed the response in its own conversation, and the most that there can
        be; both with the closing questions."""
        response, _ = read_rollout(task)
        candidate, stage = self.reader.candidate(index, response.name), self._stage(index)
        closing = int(stage.settings.closing is not None)
        if _find_ender(candidate, response) is not None:
            return closing, closing
        turns, most = len(candidate.turns) - response.turns, stage.settings.max_turns - response.turns
        return turns + closing, most + closing

    def _stage(self, index: int) -> Stage:
        stage = self._plan.stage(self.reader.scenario(index))
        assert stage is not None, "a protocol without a stage was refused"
        return stage

    def twins(self, index: int, name: str) -> Iterable[str]:  # noqa: ARG002
        """Return the other rollouts of the same response."""
        response, own = read_rollout(name)
        return (response.rollout(number) for number in range(self.k) if number != own)

    def task(self, index: int, name: str) -> Task:
        """Return the work on one rollout."""
        response, _ = read_rollout(name)
        candidate = self.reader.candidate(index, response.name)
        given = candidate.turns[: response.turns]
        protocol = play_on(self._stage(index), name, given, _find_ender(candidate, response))

        def record(result: Conversation, spent: Spent) -> PlayedOn:
            return PlayedOn(
                given=digest_given(given),
                turns=result.turns,
                probability=result.probability,
                ended_by=result.ended_by,
                simulated=spent.simulated,
            )

        return self.work(index, protocol, record)


def _find_ender(candidate: Candidate, response: PartingTurn) -> Role | None:
    """Return who ended the conversation with the response itself; None where it goes on."""
    last = len(candidate.turns) == response.turns
    ended = last and candidate.ended_by == candidate.turns[-1].role
    return candidate.ended_by if ended else None
