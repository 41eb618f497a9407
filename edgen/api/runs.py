"""The runs in a folder, and how each stands."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import msgspec

from edgen.api.status import Status, last_messages, status_of
from edgen.core.errors import EdgenError, UsageError
from edgen.store.run_folder import RunFolder


class RunFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One run; `problem` in place of its `status` where it cannot be read. `age_seconds`: since it was worked on."""

    run: str
    name: str
    status: Status | None = None
    problem: str | None = None
    age_seconds: float
    bytes: int

    def as_json(self) -> dict[str, Any]:
        """As `edgen runs --json` prints it."""
        facts: dict[str, Any] = {"run": self.run, "name": self.name}
        if self.status is None:
            facts |= {"state": "unreadable", "problem": self.problem}
        else:
            facts |= {k: v for k, v in msgspec.to_builtins(self.status).items() if k not in _NOT_LISTED}
            facts |= {"last": " ".join(lasts)} if (lasts := last_messages(self.status)) else {}
        return {**facts, "age_seconds": self.age_seconds, "bytes": self.bytes}


_NOT_LISTED = frozenset({"run", "range", "arms", "judges", "rollouts", "annotators", "last"})


def list_runs(folder: Path) -> list[RunFacts]:
    """Every run in a folder, or the run that it is. One that cannot be read is there, with what is wrong with it.

    Raises UsageError for what is no folder.
    """
    if not folder.is_dir():
        wrong = "this is no folder" if folder.exists() else "there is no such folder"
        raise UsageError(f"{folder}: {wrong}; name one that holds runs, as in `edgen runs outputs`.")
    try:
        places = [folder] if _is_run(RunFolder(folder)) else [*folder.iterdir()]
    except OSError as problem:
        raise UsageError(f"{folder}: it cannot be read ({problem.strerror}).") from None
    runs = [_describe_run(rundir) for rundir in map(RunFolder, places) if _is_run(rundir)]
    return sorted(runs, key=lambda run: run.age_seconds)


def _is_run(rundir: RunFolder) -> bool:
    """Whether a run was begun there; a job of somebody's own in a folder of its own is none."""
    try:
        return rundir.ledger.exists() or (rundir.job.exists() and rundir.lock.exists())
    except OSError:
        return False


def _describe_run(rundir: RunFolder) -> RunFacts:
    path = rundir.path
    size, last = _weigh(rundir)  # before its ledger is opened
    facts = RunFacts(
        run=str(path),
        name=path.resolve().name,
        age_seconds=round(max(0.0, time.time() - last), 3),
        bytes=size,
    )
    try:
        rundir.refuse_links()
        status = status_of(rundir, held=rundir.is_locked())
    except EdgenError as error:
        return msgspec.structs.replace(facts, problem=" ".join(str(error).split()))
    except OSError as error:
        return msgspec.structs.replace(facts, problem=f"{path}: {error.strerror}.")
    return msgspec.structs.replace(facts, status=status)


def _weigh(rundir: RunFolder) -> tuple[int, float]:
    """The bytes in a run's folder, and when something of its ledgers was last written, in seconds since the
    epoch; anything in it, where there is none."""
    size, last, last_answer = 0, 0.0, 0.0
    for parent, _, names in os.walk(rundir.path):
        for name in names:
            try:
                facts = os.lstat(os.path.join(parent, name))  # noqa: PTH118 - a Path for each file is slow
            except OSError:  # gone meanwhile
                continue
            size += facts.st_size
            last = max(last, facts.st_mtime)
            # Whoever reads a ledger leaves an empty log beside it.
            if name.endswith(".db") or (name.endswith(".db-wal") and facts.st_size):
                last_answer = max(last_answer, facts.st_mtime)
    return size, last_answer or last
