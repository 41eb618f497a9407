"""How `edgen generate` makes what its plans say: backends, the run's folder held, one run or one for each arm."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from edgen.cli.consent import require_consent
from edgen.cli.options import Via
from edgen.cli.output import note
from edgen.cli.trusting import Trust
from edgen.cli.watch import Watch
from edgen.cli.work import batch_way, made_backends, supervised, used_elsewhere, worded
from edgen.errors import ShortError
from edgen.rundir import RunDir

if TYPE_CHECKING:
    from edgen.backends import Backend
    from edgen.cli.progress import Display
    from edgen.config import Job
    from edgen.engine.plan import Plan
    from edgen.engine.reach import Reach
    from edgen.engine.rounds import BatchWay
    from edgen.engine.tally import Tally
    from edgen.ledger import Ledger

    Plans = dict[str | None, Plan]
    Tallies = dict[str | None, Tally]


@dataclass(frozen=True, slots=True)
class Manner:
    """How the work is to be done. `part`: the scenarios that are to be made, None for all; `yes`: the person agrees
    to whatever is undone or paid for again."""

    via: Via
    write_only: Path | None
    part: range | None
    yes: bool
    watch: Watch
    trust: Trust


async def make(
    whole: Job, reach: Reach, plans: Plans, rundir: RunDir, tallies: Tallies, manner: Manner
) -> None:
    """Make what the plans say: one, or one for each arm, arm after arm. `reach`: which files the job may name;
    `tallies` is filled with what is counted meanwhile."""
    if await _is_finished(whole, plans, rundir, manner.part):
        for arm in plans:
            manner.watch.keep(rundir.of(arm), arm)
        note(f"edgen: {rundir.path}: all is there; nothing to do.")
        return
    manner.watch.check_deadline()
    async with contextlib.AsyncExitStack() as stack:
        # All of them before anything is written: a missing key leaves no folder behind.
        equipped = await _all_equipped(plans, manner, stack)
        with worded(rundir.path):
            rundir.prepare(arms=bool(whole.arms))
            with rundir.held() as dead:
                if dead is not None:
                    note(f"edgen: {dead} ended without saying so; its run is gone on with.")
                if whole.arms:
                    await _make_arms(whole, reach, plans, equipped, rundir, tallies, manner)
                else:
                    await _make(plans[None], equipped[None], rundir, tallies, manner)


class Equipped(NamedTuple):
    """What a plan is made with: its backends by their names, and their batch services where it goes by batch."""

    backends: dict[str, Backend]
    way: BatchWay | None


async def _all_equipped(
    plans: Plans, manner: Manner, stack: contextlib.AsyncExitStack
) -> dict[str | None, Equipped]:
    """What each arm is made with. Who only writes request files needs no key."""
    trust = manner.trust if manner.write_only is None else None

    async def equip(plan: Plan) -> Equipped:
        backends = await stack.enter_async_context(_backends(plan, trust, runs=len(plans)))
        way = await stack.enter_async_context(batch_way(plan.job, backends, manner.via, manner.write_only))
        return Equipped(backends, way)

    return {arm: await equip(plan) for arm, plan in plans.items()}


def _backends(
    plan: Plan, trust: Trust | None, *, runs: int = 1
) -> AbstractAsyncContextManager[dict[str, Backend]]:
    """A plan's backends; without `trust` they have no keys, and are there for who they are alone; `runs`: so many are
    open at once."""
    from edgen.config import backend_name

    job = plan.job
    configs = {name: job.backends[name] for name in sorted({backend_name(job, role) for role in plan.roles})}
    return made_backends(configs, job.limits, trust, runs=runs)


async def _is_finished(whole: Job, plans: Plans, rundir: RunDir, part: range | None) -> bool:
    """Whether nothing is left to do there: then no key is needed, and nothing is written."""
    from edgen.config import backend_name
    from edgen.engine.finished import Wanted, is_finished

    if not all(rundir.of(arm).ledger.exists() for arm in plans):
        return False
    jobs = {}
    for arm, plan in plans.items():
        async with _backends(plan, None) as backends:
            identities = {role: backends[backend_name(plan.job, role)].identity for role in plan.roles}
        extra = {use: prompt.text for use, prompt in plan.extra_prompts.items()}
        jobs[arm] = Wanted(plan.job, plan.fingerprint(identities), extra)
    return is_finished(whole, jobs, rundir, part)


async def _make(plan: Plan, equipped: Equipped, rundir: RunDir, tallies: Tallies, manner: Manner) -> None:
    """One run in its folder."""
    from edgen.engine.run import Run
    from edgen.ledger import Ledger

    backends, way = equipped
    async with Ledger(rundir.ledger, create=not rundir.job.exists()) as ledger:
        _require_consent({None: plan}, {None: equipped}, rundir, {None: ledger}, manner)
        elsewhere = used_elsewhere(rundir, rundir.ledger)
        run = Run(plan, backends, rundir, ledger, elsewhere, way=way, part=manner.part)
        tallies[None] = run.tally
        run.adopt(note)

        async def work(display: Display) -> None:
            await run.execute(lambda: display.say("writing files"))

        await supervised(run.session, plan.job.name, work, _WORDS, manner.watch)


def _require_consent(
    plans: Plans,
    equipped: Mapping[str | None, Equipped],
    rundir: RunDir,
    ledgers: Mapping[str | None, Ledger],
    manner: Manner,
) -> None:
    """Raise UsageError where the runs would lose something and nobody agrees to that, before any of them changes."""
    from edgen.engine.rework import dropped_arms, rework
    from edgen.engine.run import check_piece

    losses: list[object] = [*dropped_arms(rundir, plans)]
    for arm, ledger in ledgers.items():
        own, plan, part = rundir.of(arm), plans[arm], manner.part
        if ledger.fact("plan") is not None:
            check_piece(own.path, ledger.status().plan, plan.job, part)
            losses.append(rework(plan, equipped[arm].backends, own, ledger, part, manner.via))
    require_consent(filter(None, losses), yes=manner.yes)


_WORDS = ("accepted", "rejected")


async def _make_arms(
    whole: Job,
    reach: Reach,
    plans: Plans,
    equipped: dict[str | None, Equipped],
    rundir: RunDir,
    tallies: Tallies,
    manner: Manner,
) -> None:
    """Arm after arm, each a run; then their files, with one test side for all of them. An arm that falls
    short does not keep the others from being made."""
    from edgen.engine.finish import common_side
    from edgen.engine.load import kept
    from edgen.engine.run import Run
    from edgen.ledger import Ledger

    async with contextlib.AsyncExitStack() as stack:
        ledgers = {}
        for arm in plans:
            own = rundir.of(arm)
            own.prepare()
            stack.enter_context(own.held())
            ledgers[arm] = await stack.enter_async_context(Ledger(own.ledger, create=not own.job.exists()))
        _require_consent(plans, equipped, rundir, ledgers, manner)
        rundir.numbered_arms(arm for arm in plans if arm is not None)
        rundir.write_job(*kept(whole, reach))
        runs: dict[str | None, tuple[Run, contextlib.AsyncExitStack]] = {}
        for arm, plan in plans.items():
            own, ledger = rundir.of(arm), ledgers[arm]
            # What the arms before it have used of the budget is counted when its own begins.
            backends, way = equipped[arm]
            elsewhere = used_elsewhere(rundir, own.ledger)
            run = Run(plan, backends, own, ledger, elsewhere, way=way, part=manner.part)
            tallies[arm] = run.tally
            run.adopt(note)
            # Its session ends with its own files, so that what it notes is about itself; else with the others.
            noted = await stack.enter_async_context(contextlib.AsyncExitStack())
            await noted.enter_async_context(run.session.noted())
            runs[arm] = run, noted

            async def drive(_display: Display, run: Run = run) -> None:
                await run.drive()

            await supervised(run.session, plan.job.name, drive, _WORDS, manner.watch)
            for backend in backends.values():  # the next arm needs as many connections
                await backend.aclose()

        async def write(display: Display) -> None:
            display.say("writing files")
            side = common_side([run.groups for run, _ in runs.values()], whole.split.test)
            short = []
            for arm, (run, noted) in runs.items():
                try:
                    async with noted:
                        await run.write(side)
                except ShortError as error:
                    short.append(f"{arm}: {error}")
            if short:
                raise ShortError(" ".join(short))

        await supervised(run.session, plan.job.name, write, _WORDS, manner.watch)
