"""Rollouts at work on a run: played by its own agents with the run's job, kept in ledgers in the run's
folder."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NamedTuple

from edgen.asking.answering import open_answering
from edgen.asking.ledger_paths import AskerFolder
from edgen.asking.rollouts import Rollouts
from edgen.asking.task_loop import AtWork, ask
from edgen.config import backend_name
from edgen.core.errors import DamagedError, RunError, UsageError
from edgen.core.options import CallMode
from edgen.core.pair import Source
from edgen.planning.allowed_files import Reach
from edgen.planning.load import load_plan
from edgen.planning.plan import Plan
from edgen.preferences.choice import PairChoice
from edgen.runtime.backends import configs_of
from edgen.runtime.control import Control

_LOOKED_AT = 50  # conversations in which a probability is looked for


class RolloutOptions(NamedTuple):
    """Options of rollouts: overrides in the form of `--set`, and the mode of calls."""

    overrides: tuple[str, ...] = ()
    allow_outside: bool = False
    way: CallMode = CallMode()


class RolloutMaking:
    """The rollouts that the pairs of `choice` need, of every arm that has some."""

    def __init__(self, choice: PairChoice, asked: RolloutOptions, control: Control) -> None:
        self._choice, self._asked, self._control = choice, asked, control
        self._reader = choice.reader
        self.place = AskerFolder(self._reader.rundir.rollouts, self._reader.rundir)
        self._plans = {arm: self._plan(arm) for arm in self._reader.views}

    def _plan(self, arm: str) -> Plan:
        """Return the plan of an arm's conversations."""
        path, overrides = self._reader.rundir.arm(arm).job, self._asked.overrides
        own = [one for one in overrides if not one.lstrip().startswith("pairs")]
        plan = load_plan(path, own, Reach.of(path, own, outside=self._asked.allow_outside))
        noted = plan.job.resolved
        # A run of an older edgen has no digests of its inputs, but for this one of its templates together.
        if (
            noted
            and noted.template_sha256 != plan.template_sha256
            and not any("prompt" in one for one in own)
        ):
            raise DamagedError(
                f"{path.parent / 'inputs'}: the templates are not those that the conversations were made "
                "with, so what was "
                "played on from them would be asked for again. Restore them from a copy, or `edgen "
                "generate` the run's job again, which writes them."
            )
        return plan

    def check(self, by: Source) -> None:
        """Raise UsageError where nothing can be played on, or nothing would come of it."""
        path = self._reader.rundir.path
        index = next((index for index, _ in self._reader.scenarios()), 0)
        for plan in self._plans.values():
            if plan.stage(self._reader.scenario(index)) is None:
                raise UsageError(
                    f"{path}: the protocol {plan.job.protocol} cannot continue a conversation from a turn "
                    "(with oneshot, an "
                    "answer is a whole conversation). Generate with selfplay, or use --credit whole or "
                    "--credit response."
                )
        if by == "probability" and not any(one is not None for one in self._probabilities()):
            raise UsageError(
                f"{path}: the conversations have no probability, so their rollouts would have none. "
                "Generate with "
                f"`selfplay: {{closing: {self._name_closing_role()}}}`, or have a judge compare the rollouts with --signal oracle."
            )

    def _name_closing_role(self) -> str:
        """Return a role that can state the probability: the last one of the space."""
        return next(iter(self._plans.values())).job.speakers[-1].lower()

    def _probabilities(self) -> Iterator[float | None]:
        """Yield the probabilities of the first conversations."""
        left = _LOOKED_AT
        for index, names in self._reader.scenarios():
            for name in names[:left]:
                left -= 1
                yield self._reader.candidate(index, name).probability
            if left <= 0:
                return

    async def askers(self) -> dict[str, Rollouts]:
        """Return the rollouts of each arm that has some. Raises RunError where there are none at all."""
        every: dict[str, Rollouts] = {}
        for arm in self._plans:
            async with self._open(arm, send=False) as one:
                every[arm] = one.asker
        some = {arm: asker for arm, asker in every.items() if asker.planned}
        if not some:
            least = self._choice.wanted.min_turns_left
            near = f" that at least {least} turns follow" if least else ""
            raise RunError(
                f"{self._reader.rundir.path}: no pair of this run parts at a turn of one role{near}, so no "
                "response can be continued. Generate with `replicates: 4` and `branch: {at: sampled}`."
            )
        return some

    async def play(self) -> dict[str, Path]:
        """Play what the ledgers do not hold yet, and return the ledger of each arm. Raises what stopped
        it."""
        ledgers = {}
        for arm in await self.askers():
            async with self._open(arm, send=True) as one:
                await ask([one], self.place, self._control)
                ledgers[arm] = self.place.ledger(one.asker)
        return ledgers

    @contextlib.asynccontextmanager
    async def _open(self, arm: str, *, send: bool) -> AsyncIterator[AtWork[Rollouts]]:
        """Open the agents of an arm, which send nothing unless they are to `send`."""
        plan, control = self._plans[arm], self._control
        async with open_answering(
            plan.job,
            configs_of(plan),
            control,
            self._asked.way,
            send=send,
            functions=control.functions,
            run=self._choice.reader.rundir.path,
            arm=arm,
            together=[role for role in plan.speaking if plan.rules.by_people(role)],
        ) as answering:
            backends = answering.backends
            identities = {role: backends[backend_name(plan.job, role)].identity for role in plan.roles}
            yield AtWork(Rollouts(self._choice, arm, plan, identities), answering)
