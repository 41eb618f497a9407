"""The runs in a folder, and their status."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from edgen.core.errors import EdgenError, UsageError
from edgen.runtime.status import StatusReport, list_last_messages, read_partitions_status, read_run_status
from edgen.store.ledger import LedgerReader
from edgen.store.locks import Holder
from edgen.store.run_folder import RunFolder


class WorkingProcess(msgspec.Struct, frozen=True):
    """The process that works on a run, its `seconds` of work so far, and its mean rate of calls."""

    process: str
    seconds: float
    calls_per_minute: float


class RunFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a folder."""

    run: str  # path of the run
    name: str  # name of its folder
    status: StatusReport | None = None  # status; None if it cannot be read
    problem: str | None = None  # reason why it cannot be read; None if it can
    work: WorkingProcess | None = None  # the process that holds the run
    age_seconds: float  # seconds since the last work
    bytes: int  # bytes of its files

    def as_json(self) -> dict[str, Any]:
        """Return the JSON of `edgen status DIR --json`."""
        facts: dict[str, Any] = {"run": self.run, "name": self.name}
        if self.status is None:
            facts |= {"state": "unreadable", "problem": self.problem}
        else:
            facts |= {k: v for k, v in msgspec.to_builtins(self.status).items() if k not in _NOT_LISTED}
            facts |= {"last": " ".join(lasts)} if (lasts := list_last_messages(self.status)) else {}
            facts |= {} if self.work is None else {"work": msgspec.to_builtins(self.work)}
        return {**facts, "age_seconds": self.age_seconds, "bytes": self.bytes}


_NOT_LISTED = frozenset({"run", "range", "arms", "judges", "rollouts", "annotators", "last"})


class RunTotals(msgspec.Struct, frozen=True, kw_only=True):
    """Totals of the runs that can be read."""

    runs: int  # all, readable or not
    running: int  # held by a process
    planned: int  # conversations
    accepted: int  # conversations
    calls: int  # answered ones
    tokens: int  # of prompts and answers
    cost_usd: float | None  # US dollars; None if no run has a price
    bytes: int  # of all runs, readable or not


def add_up_runs(runs: Sequence[RunFacts]) -> RunTotals:
    """Return the totals of several runs."""
    each = [run.status for run in runs if run.status is not None]
    costs = [status.cost_usd for status in each if status.cost_usd is not None]
    return RunTotals(
        runs=len(runs),
        running=sum(status.state == "running" for status in each),
        planned=sum(status.planned for status in each),
        accepted=sum(status.accepted for status in each),
        calls=sum(status.calls.made for status in each),
        tokens=sum(status.tokens.prompt + status.tokens.completion for status in each),
        cost_usd=round(sum(costs), 12) if costs else None,
        bytes=sum(run.bytes for run in runs),
    )


def has_runs(folder: Path) -> bool:
    """Return whether a folder that is no run itself holds runs."""
    try:
        return not RunFolder(folder).exists and next(_find_runs(folder, divided=True), None) is not None
    except OSError:
        return False


def list_runs(folder: Path, *, divided: bool = False) -> list[RunFacts]:
    """Return every run in a folder, newest first, or the folder itself if it is a run. A run that cannot be
    read has its problem. `divided`: also runs whose partitions are not merged yet, so that they have no
    folder.

    Raises UsageError for a path that is not a folder.
    """
    if not folder.is_dir():
        wrong = "this is not a folder" if folder.exists() else "there is no such folder"
        raise UsageError(f"{folder}: {wrong}; name one that holds runs, as in `edgen status outputs`.")
    try:
        found = [RunFolder(folder)] if _is_run(RunFolder(folder)) else [*_find_runs(folder, divided=divided)]
    except OSError as problem:
        raise UsageError(f"{folder}: the folder cannot be read ({problem.strerror}).") from None
    return sorted(map(_describe_run, found), key=lambda run: run.age_seconds)


def _find_runs(folder: Path, *, divided: bool) -> Iterator[RunFolder]:
    """Yield the runs in a folder; if `divided`, also those of partitions that are not merged yet."""
    for path in folder.iterdir():
        if _is_run(run := RunFolder(path)):
            yield run
            continue
        run = RunFolder(path.with_suffix(""))
        if divided and run.partitions_folder == path and not run.begun and read_partitions_status(run):
            yield run


def _is_run(rundir: RunFolder) -> bool:
    """Return whether a run began in a folder. A folder with only a user's job is not a run."""
    try:
        return rundir.ledger.exists() or (rundir.job.exists() and rundir.lock.exists())
    except OSError:
        return False


def _describe_run(rundir: RunFolder) -> RunFacts:
    path, begun = rundir.path, _is_run(rundir)
    size, last = _measure_folder(path if begun else rundir.partitions_folder)  # before the ledger is opened
    facts = RunFacts(
        run=str(path),
        name=path.resolve().name,
        age_seconds=round(max(0.0, time.time() - last), 3),
        bytes=size,
    )
    try:
        rundir.refuse_links()
        if not begun and (divided := read_partitions_status(rundir)) is not None:
            return msgspec.structs.replace(facts, status=divided)
        status = read_run_status(rundir, held=rundir.is_locked())
    except EdgenError as error:
        return msgspec.structs.replace(facts, problem=" ".join(str(error).split()))
    except OSError as error:
        return msgspec.structs.replace(facts, problem=f"{path}: {error.strerror}.")
    work = _find_working_process(rundir) if status.state == "running" else None
    return msgspec.structs.replace(facts, status=status, work=work)


def _find_working_process(rundir: RunFolder) -> WorkingProcess | None:
    """Return the process that works on a run, and its speed. None if the process has just ended, or left no
    name."""
    holder = Holder.read(rundir.lock)
    if holder is None:
        return None
    made = 0
    try:
        for _, arm in rundir.list_begun_arms():
            with LedgerReader(arm.ledger) as reader:
                made += sum(one.made for one in reader.read_sessions() if one.started_at >= holder.since)
    except EdgenError:  # the ledger is just being written
        made = 0
    passed = max(time.time() - holder.since, 0.001)
    return WorkingProcess(str(holder), round(passed, 3), round(made * 60 / passed, 3))


def _measure_folder(path: Path) -> tuple[int, float]:
    """Return the bytes in a run's folder, and the time of the last write to its ledgers, in seconds since the
    epoch. Without a ledger: the last write to any file."""
    size, last, last_answer = 0, 0.0, 0.0
    for parent, _, names in os.walk(path):
        for name in names:
            try:
                facts = os.lstat(os.path.join(parent, name))  # noqa: PTH118 - a Path for each file is slow
            except OSError:  # deleted in the meantime
                continue
            size += facts.st_size
            last = max(last, facts.st_mtime)
            # A reader leaves an empty log next to a ledger.
            if name.endswith(".db") or (name.endswith(".db-wal") and facts.st_size):
                last_answer = max(last_answer, facts.st_mtime)
    return size, last_answer or last
