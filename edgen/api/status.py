"""The status of a run, read once or followed while a process works on it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
from msgspec import UNSET

from edgen.core.errors import RunError
from edgen.runtime.budget_status import read_budget_status
from edgen.runtime.status import StatusReport, read_partitions_status, read_run_status
from edgen.store.run_folder import RunFolder

_FOLLOW_EVERY = 1.0  # seconds between two looks


def read_status(folder: Path) -> StatusReport:
    """Return the status of the run in a folder. Raises RunError for a folder without a readable run."""
    rundir = RunFolder(folder)
    rundir.refuse_links()
    if not rundir.begun and (status := read_partitions_status(rundir)) is not None:
        return status
    if not rundir.ledger.exists():  # a run killed before its job was stored has only a ledger
        rundir.require()
    return _with_budget(read_run_status(rundir, held=rundir.is_locked()), rundir)


def _with_budget(status: StatusReport, rundir: RunFolder) -> StatusReport:
    return msgspec.structs.replace(status, budget=read_budget_status(rundir.job) or UNSET)


def follow_status(folder: Path, note: Callable[[str], None]) -> Iterator[StatusReport]:
    """Yield the status of a run at each change, until no process works on it. Wait for a run that has not
    begun.

    Raises RunError for a folder that is no run, and for an unreadable ledger.
    """
    rundir = RunFolder(folder)
    rundir.refuse_links()
    if not rundir.exists:
        if rundir.path.exists() and not rundir.path.is_dir():
            rundir.require()
        note(f"{rundir.path}: there is no run here yet; waiting for one (Ctrl-C to stop).")
    before = None
    while True:
        held = rundir.is_locked()  # checked before reading, so that the last read sees everything
        status = None
        if rundir.exists:
            with (
                contextlib.suppress(RunError) if held else contextlib.nullcontext()
            ):  # the ledger is just being made
                status = read_run_status(rundir, held=held)
        if status is not None and (status != before or not held):
            yield _with_budget(status, rundir)
            before = status
        if status is not None and not held:
            return
        time.sleep(_FOLLOW_EVERY)
