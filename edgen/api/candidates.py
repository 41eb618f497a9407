"""Texts beside a run's turns: a writer asked for what it was not asked for before, and the file of what it wrote."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from edgen.annotation.layer import read_noted
from edgen.annotation.unit_tasks import SAMPLE
from edgen.annotation.writer import ROLE, Totals, Wanted, WriterTasks, write_candidates, writer_of
from edgen.api.judging import (
    find_backend,
    find_function,
    job_with,
    judge_ledger,
    load_judged_job,
    open_for_reading,
    open_for_work,
    run_judge,
    unanswered,
)
from edgen.api.pairs_estimate import Amount
from edgen.api.status import WriterStatus, writer_status
from edgen.api.supervision.backends import Via, open_backends, open_scheduler
from edgen.api.supervision.control import Control
from edgen.api.supervision.snapshot import Title
from edgen.config import Job
from edgen.core.errors import EdgenError, RunError, ShortError, UsageError
from edgen.core.figures import describe_counts
from edgen.core.yaml_values import nearest
from edgen.planning.allowed_files import unlimited
from edgen.planning.load import load_template
from edgen.protocols.writing import Kind, writing_template
from edgen.providers import Backend
from edgen.store.run_reader import RunReader

MOST = 20  # texts of one turn
AFTER = 3  # turns before those that something is written for, as DSTC7 cuts its contexts
_SETTABLE = ("backends", "limits", "batch", "asks")


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateOptions:
    """`write`: the kind; `count`: texts of each turn; `agent`: whose turns, None for the space's first role; `after`: turns that
    have so many before them; `by`: `[JOB:]ROLE` of the backend that writes; `sample`: conversations of each arm, None for
    all; `prompt`: the template; `overrides` are as `--set` takes them."""

    write: Kind
    count: int = 3
    agent: str | None = None
    after: int = AFTER
    by: str = ""
    sample: int | None = None
    prompt: str | None = None
    overrides: tuple[str, ...] = ()
    via: Via = "online"


@dataclass(frozen=True, slots=True)
class WrittenCandidates:
    """How the writer stands, and what is in `file`: None where it was not written, since `ended` stopped the writer."""

    run: Path
    options: CandidateOptions
    file: Path
    writer: WriterStatus
    totals: Totals | None = None
    ended: EdgenError | None = None


class CandidatesEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """What candidates will take: for how many turns texts are there already, and the calls for the others."""

    run: str
    writer: str
    writes: Kind
    there: int
    to_write: int
    calls: Amount


def write_for_run(run: Path, options: CandidateOptions, control: Control) -> WrittenCandidates:
    """Have texts written for a run's turns, and write them to candidates/<kind>.jsonl.

    Raises UsageError, RunError and LockedError, and what stopped the writer before it had begun.
    """
    with open_for_work(run, control, "candidates") as reader:
        return asyncio.run(_Writing(reader, options, control).make())


def estimate_candidates(run: Path, options: CandidateOptions, control: Control) -> CandidatesEstimate:
    """The calls that `write_for_run` would make; nothing is sent and nothing is written. Raises what it raises before its first
    call."""
    with open_for_reading(run) as reader:
        return asyncio.run(_Writing(reader, options, control).estimate())


class _Writing:
    """One start, while the run is held."""

    def __init__(self, reader: RunReader, options: CandidateOptions, control: Control) -> None:
        self.reader, self.options, self.control = reader, options, control
        for option, value, least in (("-n", options.count, 1), ("--after", options.after, 0)):
            if value < least:
                raise UsageError(f"{option}: expected a number, {least} or more.")
        if options.count > MOST:
            raise UsageError(f"-n {options.count}: {MOST} texts of a turn are the most that are asked for.")
        if options.sample is not None and options.sample < 1:
            raise UsageError("--sample: expected how many conversations, 1 or more.")
        self.wanted = Wanted(
            kind=options.write, count=options.count, agent=self._agent(), after=options.after
        )
        what = "a writer, who is asked about what the run holds"
        self.job = load_judged_job(reader.rundir, options.overrides, _SETTABLE, what)
        self.folder = reader.rundir.candidates / options.write

    def _agent(self) -> str:
        roles = {role.name.casefold(): role.name for role in self.reader.space.roles}
        named = self.options.agent
        if named is None:
            return next(iter(roles.values()))
        if named.casefold() not in roles:
            raise UsageError(f"--agent {named}: no such role in this run{nearest(named, roles.values())}.")
        return roles[named.casefold()]

    async def make(self) -> WrittenCandidates:
        reader, control = self.reader, self.control
        if reader.pending:
            control.note(
                f"{reader.pending} conversations of this run are still to be made; texts are written for those that are there."
            )
        ended = None
        async with self._tasks(send=True) as (tasks, backends, job):
            ledger = judge_ledger(tasks, self.folder)
            title = Title(f"{reader.name} {self.options.write}", outcomes=("written for", "without texts"))
            async with open_scheduler(job, backends, self.options.via) as scheduler:
                try:
                    await run_judge(tasks, self.folder, backends, title, control, scheduler)
                except EdgenError as error:
                    if not ledger.exists():  # nothing was begun: what is wrong is told by itself
                        raise
                    ended = error
        file = reader.rundir.written(self.options.write)
        totals = None
        if ended is None:
            totals = write_candidates(reader, ledger, self.wanted, tasks.judge.id, file)
        return WrittenCandidates(reader.rundir.path, self.options, file, writer_status(ledger), totals, ended)

    async def estimate(self) -> CandidatesEstimate:
        async with self._tasks(send=False) as (tasks, _, _):
            missing = sum(1 for _ in unanswered(tasks.units(), judge_ledger(tasks, self.folder)))
            return CandidatesEstimate(
                run=str(self.reader.rundir.path),
                writer=tasks.judge.id,
                writes=self.options.write,
                there=tasks.planned - missing,
                to_write=missing,
                calls=Amount(missing, missing * self.job.asks),
            )

    @contextlib.asynccontextmanager
    async def _tasks(self, *, send: bool) -> AsyncIterator[tuple[WriterTasks, dict[str, Backend], Job]]:
        """What the writer is asked, with the backend that it is, and its job. Nothing can be sent by one that is not to
        `send`."""
        reader, options = self.reader, self.options
        if not reader.accepted:
            raise RunError(
                f"{reader.rundir.path}: no conversation was accepted in this run, so there is nothing to write for."
            )
        config = find_backend(self.job, options.by, ROLE)
        prompt = load_template(
            writing_template(options.write, options.prompt, ROLE), unlimited(), reader.space
        )
        job = job_with(self.job, ROLE, config, prompt, reader.rundir.job)
        functions = {ROLE: find_function(self.job, config, self.control)}
        trust = self.control.trust if send else None
        async with open_backends({ROLE: config}, job.limits, trust, functions=functions) as backends:
            writer = writer_of(backends[ROLE], prompt, self.wanted)
            before = read_noted(self.folder / f"{writer.id}.json", dict[str, Any])
            sample = options.sample
            if before is not None and sample is not None:  # it only grows: what was written stays
                sample = None if before[SAMPLE] is None else max(before[SAMPLE], sample)
            writer = msgspec.structs.replace(writer, facts={**writer.facts, SAMPLE: sample})
            tasks = WriterTasks(reader, job, writer, self.wanted)
            if not tasks.planned:
                raise UsageError(
                    f"{reader.rundir.path}: no turn of {self.wanted.agent} has {options.after} turns before it. Name another "
                    "role with --agent, or fewer turns with --after."
                )
            yield tasks, backends, job


def require_candidates(made: WrittenCandidates) -> None:
    """Raise what ended it, and ShortError if something is short."""
    if made.ended is not None:
        raise made.ended
    writer = made.writer
    writer.require_answers("turns")
    if made.totals is None or not made.totals.turns:
        raise ShortError(
            f"Nothing could be written: {describe_counts(writer.rejected)}. Another template or backend may help."
        )
