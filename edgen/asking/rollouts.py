"""Rollouts: from each response at which a pair parts, the run's own agents play on several times.

A task plays on once from one response, with a request for each turn. Its record is the whole conversation.
Each arm has an asker and a ledger.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections.abc import AsyncIterator, Generator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from edgen.asking.answering import AskerBackends, open_answering
from edgen.asking.asker import RunAsker
from edgen.asking.call_estimates import NeededCalls, count_needs
from edgen.asking.ledger_paths import AskerFolder
from edgen.asking.options import PairOptions
from edgen.asking.runner import Opened, Start
from edgen.config import find_backend_name
from edgen.core.digest import compute_fingerprint
from edgen.core.errors import DamagedError, RunError, UsageError
from edgen.core.pair import Candidate, Source, read_candidate_name
from edgen.core.values import Conversation, Rejection, Reply, Request, Role, Turn
from edgen.planning.allowed_files import AllowedFiles
from edgen.planning.load import load_plan
from edgen.planning.plan import Plan
from edgen.preferences.choice import PairChoice
from edgen.preferences.rollouts import (
    DivergingTurn,
    RolloutRecord,
    digest_given,
    list_diverging_responses,
    read_rollout,
)
from edgen.protocols.parts import Spent
from edgen.protocols.stage import Stage, play_on
from edgen.protocols.suggestions import find_probability_setting, list_playable
from edgen.runtime.backends import list_configs
from edgen.runtime.control import Control

_LOOKED_AT = 50  # conversations searched for a probability


class GivenTurns(NamedTuple):
    """The turns from which a rollout plays on. `ended_by` is the role that ended the conversation with the
    last turn."""

    scenario: int
    task: str
    turns: tuple[Turn, ...]
    ended_by: Role | None


class RolloutAsker(RunAsker[GivenTurns, Conversation]):
    """The rollouts of one arm."""

    outcomes = ("played", "rejected")

    def __init__(self, choice: PairChoice, arm: str, plan: Plan, identities: Mapping[str, Any]) -> None:
        agents = {role: dict(identity) for role, identity in identities.items()}
        settings = msgspec.to_builtins(plan.settings)
        facts = {"arm": arm, "backends": agents, plan.job.protocol: settings}
        name = compute_fingerprint((arm, agents, plan.template_sha256, settings))
        super().__init__(choice.reader, plan.job, name, facts, "rollouts")
        self.roles, self.part = tuple(plan.roles), arm
        self._choice, self._plan = choice, plan
        self.responses = 0
        digest = hashlib.blake2b(digest_size=8)
        for index, responses in self._responses():
            digest.update(
                "{} {}\n".format(index, " ".join(one.render_for_digest() for one in responses)).encode()
            )
            self.responses += len(responses)
            self.scenarios = index + 1
        self.k = choice.wanted.rollouts or 0
        self.planned = self.responses * self.k
        self.shaping |= {"k": self.k, "units": digest.hexdigest()}

    def _responses(self) -> Iterator[tuple[int, list[DivergingTurn]]]:
        """Yield the responses of each scenario from which rollouts play on."""
        for index, names in self.reader.scenarios():
            both = list_diverging_responses(self._choice, index, names) if len(names) > 1 else ()
            found = {one for pair in both for one in pair if read_candidate_name(one.name)[0] == self.part}
            if found:
                yield index, sorted(found)

    def list_units(self) -> Iterator[tuple[int, str]]:
        """Yield (scenario, task) of every rollout."""
        for index, responses in self._responses():
            yield from (
                (index, task)
                for task in sorted(one.name_rollout(number) for one in responses for number in range(self.k))
            )

    def count_calls(self, index: int, task: str) -> tuple[int, int]:
        """Return the expected and the maximum number of turns, with the closing questions. As many turns are
        expected as followed the response in its own conversation."""
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

    def list_sibling_tasks(self, index: int, name: str) -> Iterable[str]:  # noqa: ARG002
        """Return the other rollouts of the same response."""
        response, own = read_rollout(name)
        return (response.name_rollout(number) for number in range(self.k) if number != own)

    def read_unit(self, index: int, task: str) -> GivenTurns:
        """Return the turns from which a rollout plays on."""
        response, _ = read_rollout(task)
        candidate = self.reader.candidate(index, response.name)
        return GivenTurns(index, task, candidate.turns[: response.turns], _find_ender(candidate, response))

    def ask(self, unit: GivenTurns) -> Generator[Request, Reply, Conversation | Rejection]:
        """Play on to the end of the conversation."""
        return play_on(self._stage(unit.scenario), unit.task, unit.turns, unit.ended_by)

    def keep(self, answer: Conversation, unit: GivenTurns, spent: Spent) -> RolloutRecord:
        """Return the whole conversation with a digest of the given turns."""
        return RolloutRecord(
            given=digest_given(unit.turns),
            turns=answer.turns,
            probability=answer.probability,
            ended_by=answer.ended_by,
            simulated=spent.simulated,
        )


def _find_ender(candidate: Candidate, response: DivergingTurn) -> Role | None:
    """Return the role that ended the conversation with the response itself; None if it continues."""
    last = len(candidate.turns) == response.turns
    ended = last and candidate.ended_by == candidate.turns[-1].role
    return candidate.ended_by if ended else None


class RolloutStart(Start[RolloutAsker]):
    """A start of the rollouts of one arm."""

    def __init__(self, choice: PairChoice, arm: str, options: PairOptions, control: Control) -> None:
        self._reader = choice.reader
        self.plan = self._load_plan(arm, options)
        place = AskerFolder(self._reader.rundir.rollouts, self._reader.rundir)
        super().__init__(self.plan.job, place, control, options.mode)
        self._choice, self._arm = choice, arm

    @contextlib.asynccontextmanager
    async def open(self, *, send: bool) -> AsyncIterator[Opened]:
        """Open the arm's agents."""
        plan, control = self.plan, self.control
        async with open_answering(
            plan.job,
            list_configs(plan),
            control,
            self.mode,
            send=send,
            functions=control.functions,
            run=self._reader.rundir.path,
            arm=self._arm,
            together=[role for role in plan.speaking if plan.rules.by_people(role)],
        ) as answering:
            yield {self._arm: answering}

    def askers(self, opened: Opened) -> list[tuple[RolloutAsker, AskerBackends]]:
        """Return the asker."""
        plan, answering = self.plan, opened[self._arm]
        backends = answering.backends
        identities = {role: backends[find_backend_name(plan.job, role)].identity for role in plan.roles}
        return [(RolloutAsker(self._choice, self._arm, plan, identities), answering)]

    def _load_plan(self, arm: str, options: PairOptions) -> Plan:
        """Load the plan of an arm's conversations. Raises DamagedError if the templates have changed."""
        path = self._reader.rundir.arm(arm).job
        own = [one for one in options.overrides if not one.lstrip().startswith("pairs")]
        plan = load_plan(path, own, AllowedFiles.of(path, own, outside=options.allow_outside))
        noted = plan.job.resolved
        # Runs of older versions of edgen have only this digest of all their templates together.
        if (
            noted
            and noted.template_sha256 != plan.template_sha256
            and not any("prompt" in one for one in own)
        ):
            raise DamagedError(
                f"{path.parent / 'inputs'}: the templates have changed since the conversations "
                "were made, so their rollouts would be requested again. Restore them from a "
                "copy, or `edgen generate` the run's job again, which writes them."
            )
        return plan


class RolloutMaking:
    """The rollouts that the pairs of `choice` need, in every arm that has such pairs."""

    def __init__(self, choice: PairChoice, options: PairOptions, control: Control) -> None:
        self._choice, self._reader = choice, choice.reader
        self._starts = {arm: RolloutStart(choice, arm, options, control) for arm in self._reader.views}

    def check(self, by: Source) -> None:
        """Raise UsageError if the protocol cannot continue conversations, or the rollouts would have no
        probability."""
        path = self._reader.rundir.path
        index = next((index for index, _ in self._reader.scenarios()), 0)
        for plan in (start.plan for start in self._starts.values()):
            if plan.stage(self._reader.scenario(index)) is None:
                able = " or ".join(list_playable())
                raise UsageError(
                    f"{path}: the protocol {plan.job.protocol} cannot continue a conversation from a turn. "
                    f"{f'Generate with {able}, or use' if able else 'Use'} --credit whole or --credit response."
                )
        if by == "probability" and not any(one is not None for one in self._iterate_probabilities()):
            plan = next(iter(self._starts.values())).plan
            setting = find_probability_setting(plan.job, plan.space.roles)
            raise UsageError(
                f"{path}: the conversations have no probability, so their rollouts would have none. "
                f"{f'Generate with `{setting}`, or have' if setting else 'Have'} a judge compare the rollouts "
                "with --signal oracle."
            )

    def _iterate_probabilities(self) -> Iterator[float | None]:
        """Yield the probabilities of the first conversations."""
        left = _LOOKED_AT
        for index, names in self._reader.scenarios():
            for name in names[:left]:
                left -= 1
                yield self._reader.candidate(index, name).probability
            if left <= 0:
                return

    async def make_askers(self) -> dict[str, RolloutAsker]:
        """Return the asker of each arm with rollouts. Raises RunError if no arm has any."""
        some: dict[str, RolloutAsker] = {}
        for arm, start in self._starts.items():
            async with start.open(send=False) as opened:
                ((asker, _),) = start.askers(opened)
            if asker.planned:
                some[arm] = asker
        if not some:
            least = self._choice.wanted.min_turns_left
            near = f" that at least {least} turns follow" if least else ""
            raise RunError(
                f"{self._reader.rundir.path}: no pair of this run parts at a turn of one role{near}, so no "
                "response can be continued. Generate with `replicates: 4` and `branch: {at: sampled}`."
            )
        return some

    async def estimate(self) -> tuple[list[RolloutAsker], NeededCalls]:
        """Return the askers and the calls that `play` would make."""
        askers = await self.make_askers()
        needs = (count_needs(one, self._starts[arm].place.find_ledger(one)) for arm, one in askers.items())
        return [*askers.values()], functools.reduce(NeededCalls.plus, needs)

    async def play(self) -> dict[str, Path]:
        """Play the rollouts that the ledgers lack. Return the ledger of each arm. Raises the error that
        stopped it."""
        ledgers = {}
        for arm in await self.make_askers():
            asked = await self._starts[arm].ask()
            if asked.ended is not None:
                raise asked.ended
            (ledgers[arm],) = asked.ledgers
        return ledgers
