"""A person plays a role of a job's conversations: the changed job, and its run in a thread."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import NamedTuple

import msgspec

from edgen.api.objects.runner import StopButton
from edgen.config import find_backend, find_backend_name
from edgen.core.errors import UsageError
from edgen.core.values import Scenario
from edgen.generation.arms import Generated, generate
from edgen.generation.options import GenerateOptions
from edgen.planning.load import JobSource, make_plans
from edgen.planning.plan import Plan
from edgen.protocols.views import list_facts
from edgen.reading.roles import learns
from edgen.runtime.control import Control, run_in_own_loop
from edgen.store.run_folder import RunFolder

PLAYER = "player"
"""The name of who plays in the terminal, in what the run keeps of people."""
_WRITERS = frozenset({"default"})
"""Backends of roles that nobody plays: they write whole conversations."""


class Game(NamedTuple):
    """A job in which a person plays `role`; its run is in `folder`."""

    role: str
    folder: Path
    source: JobSource
    plan: Plan

    def list_secrets(self, scenario: Scenario, name: str) -> list[tuple[str, tuple[tuple[str, str], ...]]]:
        """Return the facts that each other role of a scenario knew, and the role called `name` did not."""
        roles, labels = self.plan.rules.roles, self.plan.rules.book.labels if self.plan.rules.book else {}
        seen = {dimension for one in roles if one.name == name for dimension in one.sees}
        return [
            (
                one.name,
                list_facts(scenario, [dimension for dimension in one.sees if dimension not in seen], labels),
            )
            for one in roles
            if one.name != name
        ]


def open_game(
    job: Path,
    role: str | None,
    overrides: tuple[str, ...] = (),
    output: Path | None = None,
    *,
    allow_outside: bool = False,
) -> Game:
    """Return a job with one conversation more than the folder has, in which a person plays `role`. None: the
    role that learns, else the last to speak.

    Raises UsageError for a role that nobody can play.
    """
    plan = _make_plan(JobSource.of(job, overrides, allow_outside=allow_outside), job)
    playable = [one for one in plan.roles if one not in _WRITERS]
    spoken = [one.lower() for one in plan.job.speakers]
    if not playable:
        raise UsageError(
            f"{job}: the protocol {plan.job.protocol} has one model write whole conversations, so there is "
            "no role to play. Take a job in which each side speaks for itself, such as jobs/selfplay.yaml."
        )
    if role is None:
        taught = [*filter(learns, playable)]
        role = [*(one for one in playable if one in spoken), *playable[:1], *taught][-1]
    role = role.lower()
    if role not in playable:
        raise UsageError(f"{job}: there is no role {role} to play (there are: {', '.join(playable)}).")
    folder = output or Path("outputs") / f"play-{plan.job.name}-{role}"
    others = tuple(
        f"backends.{one}={_make_replacement(plan, one, job)}"
        for one in plan.roles
        if one != role and plan.rules.by_people(one)
    )
    own = (
        f"conversations={_count_ended(folder) + 1}",
        "replicates=1",
        "branch=null",
        "top_up=false",
        "shards={train: 1, test: 1}",
        "split.test=0",
        *others,
        *overrides,
        f"backends.{role}={_make_person_settings(plan, role)}",
    )
    source = JobSource.of(job, own, allow_outside=allow_outside)
    return Game(role, folder, source, _make_plan(source, job))


def _make_person_settings(plan: Plan, role: str) -> str:
    """Return the settings of a role that a person plays, with the forms of the job if it has them."""
    own = find_backend(plan.job, role)
    kept = {key: getattr(own, key) for key in own.FILES if own.BY_PEOPLE}
    return msgspec.json.encode({"type": "human", **kept}).decode()


def _make_replacement(plan: Plan, role: str, job: Path) -> str:
    """Return the settings of the backend that replaces other people's role if one person plays alone.

    Raises UsageError if the job has none.
    """
    backends = plan.job.backends
    for name in (*backends[find_backend_name(plan.job, role)].others, "default"):
        if name in backends and not backends[name].BY_PEOPLE:
            plain = msgspec.to_builtins(backends[name])
            return msgspec.json.encode(
                {key: value for key, value in plain.items() if key != "price"}
            ).decode()
    raise UsageError(
        f"{job}: people play {role}, too, and you are alone. Give it a model (--set "
        f"backends.{role}.stand_in=NAME), or generate the job and invite both sides with `edgen web`."
    )


def _make_plan(source: JobSource, job: Path) -> Plan:
    plans = make_plans(source.job, source.name, source.allowed)
    if len(plans) > 1:
        raise UsageError(
            f"{job}: this job has several arms ({', '.join(plans)}), and one conversation belongs to one. "
            "Play the job "
            "without its arms (--set 'arms={}'), or generate it and invite people with `edgen web`."
        )
    return next(iter(plans.values()))


def _count_ended(folder: Path) -> int:
    """Return how many conversations of a folder have ended."""
    from edgen.runtime.status import read_run_status

    run = RunFolder(folder)
    if not run.begun:
        return 0
    status = read_run_status(run)
    return status.planned - status.pending


class GameRun(threading.Thread):
    """The run of a game in a thread of its own, while the person writes in another."""

    def __init__(self, game: Game) -> None:
        super().__init__(daemon=True, name="edgen-play")
        self.made: Generated | None = None
        self.problem: BaseException | None = None
        self.notes: list[str] = []
        self._game = game
        self._button = StopButton()
        self.control = Control(interrupts=self._button.interrupts)
        self.control.events.listen(
            lambda event: self.notes.append(event.text) if event.name == "note" else None
        )

    def run(self) -> None:
        options = GenerateOptions(output=self._game.folder)
        try:
            self.made = run_in_own_loop(generate(self._game.source, options, self.control))
        except BaseException as problem:  # noqa: BLE001 - raised again by `result`
            self.problem = problem

    def interrupt(self) -> None:
        """Stop the run; the same command resumes it."""
        self._button.press()

    def find_result(self) -> Generated:
        """Return the result, once the thread has ended. Raises the error that ended it."""
        self.join()
        if self.problem is not None:
            raise self.problem
        assert self.made is not None
        return self.made
