"""Texts for a run's turns: the writer's missing texts are requested, and the file of all texts is written."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from edgen.annotation.layer import read_noted
from edgen.asking.call_estimates import CallsNeeded
from edgen.asking.ledger_paths import open_for_reading, open_for_work
from edgen.asking.options import CandidateOptions
from edgen.asking.runner import RunStart
from edgen.asking.units import grow_sample
from edgen.asking.writers import ROLE, Wanted, WriterAsker, WriterTotals, write_candidates, writer_of
from edgen.config import Job
from edgen.core.errors import EdgenError, RunError, ShortError, UsageError
from edgen.core.text import describe_counts
from edgen.core.yaml_values import suggest_name
from edgen.planning.allowed_files import make_unlimited_reach
from edgen.planning.load import load_template
from edgen.prompting import Prompt
from edgen.protocols.writing import Kind, writing_template
from edgen.providers import Backend
from edgen.runtime.control import Control
from edgen.runtime.status import WriterStatus
from edgen.store.run_reader import RunReader

MOST = 20  # texts of one turn


@dataclass(frozen=True, slots=True)
class WrittenCandidates:
    """Status of the writer, and its file."""

    run: Path  # folder of the run
    options: CandidateOptions  # of the call
    file: Path  # with the texts
    writer: WriterStatus  # status of the writer
    totals: WriterTotals | None = None
    """Content of `file`; None if `ended` stopped the writer and it was not written."""
    ended: EdgenError | None = None  # the error that stopped the writer; None: none


class CandidatesEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """Estimate of candidates."""

    run: str  # the run's path
    writer: str  # id of the writer
    writes: Kind  # kind of texts
    there: int  # turns that already have texts
    to_write: int  # the other turns
    calls: CallsNeeded  # for the other turns


def write_for_run(run: Path, options: CandidateOptions, control: Control) -> WrittenCandidates:
    """Have texts written for a run's turns, and write them to candidates/<kind>.jsonl.

    Raises UsageError, RunError and LockedError, and what stopped the writer before it had begun.
    """
    with open_for_work(run, control, "candidates") as reader:
        return _Writing(reader, options, control).make()


def estimate_candidates(run: Path, options: CandidateOptions, control: Control) -> CandidatesEstimate:
    """Return the calls of `write_for_run`; nothing is sent and nothing is written. Raises its errors before
    its first call."""
    with open_for_reading(run) as reader:
        ((asker, needs),) = asyncio.run(_Writing(reader, options, control).estimate())
    return CandidatesEstimate(
        run=str(run),
        writer=asker.id,
        writes=options.write,
        there=needs.stored,
        to_write=needs.missing,
        calls=needs.calls,
    )


class _Writing(RunStart[WriterAsker]):
    """One start of a writer, while the run is held."""

    role = ROLE
    of_what = "a writer for an existing run"

    def __init__(self, reader: RunReader, options: CandidateOptions, control: Control) -> None:
        for option, value, least in (("--texts", options.count, 1), ("--after", options.after, 0)):
            if value < least:
                raise UsageError(f"{option}: give a number, {least} or more.")
        if options.count > MOST:
            raise UsageError(f"--texts {options.count}: at most {MOST} texts are written for a turn.")
        if options.sample is not None and options.sample < 1:
            raise UsageError("--sample: give the number of conversations, 1 or more.")
        self.options = options
        agent = _find_agent(reader, options.agent)
        self.wanted = Wanted(kind=options.write, count=options.count, agent=agent, after=options.after)
        super().__init__(reader, options, reader.rundir.candidates / options.write, control, options.by)

    def make(self) -> WrittenCandidates:
        """Have the texts written, and write their file."""
        reader = self.reader
        if reader.pending:
            self.control.note(
                f"{reader.pending:,} conversations of this run are pending; texts are written for the "
                "finished ones only."
            )
        (asker,), (ledger,), ended = asyncio.run(self.ask())
        file, totals = reader.rundir.locate_written_texts(self.options.write), None
        if ended is None:
            totals = write_candidates(reader, ledger, self.wanted, asker.id, file)
        return WrittenCandidates(
            reader.rundir.path, self.options, file, WriterStatus.read_from(ledger), totals, ended
        )

    def prompt(self) -> Prompt:
        """Read the template."""
        reader, options = self.reader, self.options
        if not reader.accepted:
            raise RunError(
                f"{reader.rundir.path}: no conversation was accepted in this run, so there is nothing to "
                "write for."
            )
        template = writing_template(options.write, options.prompt, ROLE)
        return load_template(template, make_unlimited_reach(), reader.space)

    def asker(self, name: str, job: Job, backend: Backend, prompt: Prompt) -> WriterAsker:  # noqa: ARG002
        """Return the writer."""
        options, wanted = self.options, self.wanted
        writer = writer_of(backend, prompt, wanted)
        before = read_noted(self.place.folder / f"{writer.id}.json", dict[str, Any])
        asker = WriterAsker(self.reader, job, writer, wanted, grow_sample(before, options.sample))
        if not asker.planned:
            raise UsageError(
                f"{self.reader.rundir.path}: no turn of {wanted.agent} has {wanted.after} turns before it. "
                "Name another role with --agent, or fewer turns with --after."
            )
        return asker


def _find_agent(reader: RunReader, named: str | None) -> str:
    """Return the role whose turns get texts. Raises UsageError."""
    roles = {role.name.casefold(): role.name for role in reader.space.roles}
    if named is None:
        return next(iter(roles.values()))
    if named.casefold() not in roles:
        raise UsageError(f"--agent {named}: no such role in this run{suggest_name(named, roles.values())}.")
    return roles[named.casefold()]


def require_candidates(made: WrittenCandidates) -> None:
    """Raise what ended it, and ShortError if something is short."""
    if made.ended is not None:
        raise made.ended
    writer = made.writer
    writer.require_answers("turns")
    if made.totals is None or not made.totals.turns:
        raise ShortError(
            f"Nothing could be written: {describe_counts(writer.rejected)}. Another template or backend may "
            "help."
        )
