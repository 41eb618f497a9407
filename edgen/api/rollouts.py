"""Rollouts at work on a run: played by its own agents with the run's job, kept in ledgers in the run's folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from edgen.api.generation import configs_of
from edgen.api.supervision.backends import Via, open_backends, open_scheduler
from edgen.api.supervision.control import Control
from edgen.api.supervision.snapshot import Title
from edgen.api.supervision.supervise import supervise, used_elsewhere
from edgen.config import backend_name
from edgen.core.errors import RunError, UsageError
from edgen.core.pair import Source
from edgen.execution.session import Session
from edgen.planning.allowed_files import Reach
from edgen.planning.load import load_plan
from edgen.planning.plan import Plan
from edgen.preferences.choice import PairChoice
from edgen.preferences.rollouts import Rollouts
from edgen.store.ledger import Ledger

_LOOKED_AT = 50  # conversations in which a probability is looked for


class Asked(NamedTuple):
    """How a person asked for rollouts: overrides as `--set` takes them, and how calls are made."""

    overrides: tuple[str, ...] = ()
    allow_outside: bool = False
    via: Via = "online"


class RolloutMaking:
    """The rollouts that the pairs of `choice` need, of every arm that has some."""

    def __init__(self, choice: PairChoice, asked: Asked, control: Control) -> None:
        self._choice, self._asked, self._control = choice, asked, control
        self._reader = choice.reader
        self._plans = {arm: self._plan(arm) for arm in self._reader.views}

    def _plan(self, arm: str) -> Plan:
        """What the conversations of an arm are made by."""
        path, overrides = self._reader.rundir.arm(arm).job, self._asked.overrides
        own = [one for one in overrides if not one.lstrip().startswith("pairs")]
        return load_plan(path, own, Reach.of(path, own, outside=self._asked.allow_outside))

    def check(self, by: Source) -> None:
        """Raise UsageError where nothing can be played on, or nothing would come of it."""
        path = self._reader.rundir.path
        index = next((index for index, _ in self._reader.scenarios()), 0)
        for plan in self._plans.values():
            if plan.stage(self._reader.scenario(index)) is None:
                raise UsageError(
                    f"{path}: conversations under the protocol {plan.job.protocol} cannot be played on from a turn (under "
                    "oneshot an answer is a whole conversation). Generate under selfplay, or take --credit whole or "
                    "--credit response."
                )
        if by == "probability" and not any(one is not None for one in self._probabilities()):
            raise UsageError(
                f"{path}: the conversations have no probability, so their rollouts would have none either. Generate with "
                "`selfplay: {closing: student}`, or have a judge compare the rollouts with --by oracle."
            )

    def _probabilities(self) -> Iterator[float | None]:
        """Those of the first conversations."""
        left = _LOOKED_AT
        for index, names in self._reader.scenarios():
            for name in names[:left]:
                left -= 1
                yield self._reader.candidate(index, name).probability
            if left <= 0:
                return

    async def tasks(self, arm: str) -> Rollouts:
        """An arm's rollouts. Nothing can be sent by the backends that name them."""
        plan = self._plans[arm]
        functions = self._control.functions
        async with open_backends(configs_of(plan), plan.job.limits, None, functions=functions) as backends:
            identities = {role: backends[backend_name(plan.job, role)].identity for role in plan.roles}
        return Rollouts(self._choice, arm, plan, identities)

    async def all_tasks(self) -> dict[str, Rollouts]:
        """The rollouts of each arm that has some. Raises RunError where there are none at all."""
        every = {arm: await self.tasks(arm) for arm in self._plans}
        some = {arm: tasks for arm, tasks in every.items() if tasks.planned}
        if not some:
            least = self._choice.wanted.min_turns_left
            near = f" with {least} turns or more behind it" if least else ""
            raise RunError(
                f"{self._reader.rundir.path}: no pair of this run parts at a turn of one role{near}, so there is nothing "
                "to play on from. Generate with `replicates: 4` and `branch: {at: sampled}`."
            )
        return some

    async def play(self) -> dict[str, Path]:
        """Play what the ledgers do not hold yet: the ledger of each arm. Raises what stopped it."""
        ledgers = {}
        for arm, tasks in (await self.all_tasks()).items():
            ledgers[arm] = await self._play(arm, tasks)
        return ledgers

    async def _play(self, arm: str, tasks: Rollouts) -> Path:
        plan, control, run = self._plans[arm], self._control, self._reader.rundir
        run.note_judge(tasks.id, tasks.facts, run.rollouts)
        path = rollout_ledger(tasks)
        async with (
            open_backends(
                configs_of(plan), plan.job.limits, control.trust, functions=control.functions
            ) as backends,
            open_scheduler(plan.job, backends, self._asked.via) as scheduler,
            Ledger(path) as ledger,
        ):
            elsewhere = used_elsewhere(run, path)
            session = Session(
                tasks, backends, ledger, roles=plan.roles, elsewhere=elsewhere, scheduler=scheduler
            )
            session.counts.planned = tasks.planned
            title = Title(f"{self._reader.name} rollouts", arm, outcomes=("played", "rejected"))
            await supervise(session, title, control, lambda _monitor: tasks.work_through(session))
        return path


def rollout_ledger(tasks: Rollouts) -> Path:
    return tasks.reader.rundir.rollouts / f"{tasks.id}.db"
