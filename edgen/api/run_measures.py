"""Measures that the job of a run names: which files they were when the run was made, and loading them for
another look at it.

The ledger keeps path and digest of each file. A file is run again only if it is still the same, and after the
consent that `edgen generate` needed.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec

from edgen.api.own_measures import load_measures, require_consent, split_reference
from edgen.config import Job
from edgen.core import registry
from edgen.core.digest import sha256
from edgen.core.errors import EdgenError, InputError, RunError
from edgen.core.yaml_values import shortened
from edgen.planning.allowed_files import Reach
from edgen.runtime.control import Control
from edgen.store.ledger import Ledger, LedgerReader
from edgen.store.ledger.facts import MEASURES
from edgen.store.run_folder import RunFolder, run_around


class MeasureFile(msgspec.Struct, frozen=True):
    """A function that was a measure of a run, its file, and the file's digest then."""

    name: str
    file: str
    sha256: str


def find_measure_files(job: Job, reach: Reach) -> list[MeasureFile]:
    """Return what a job names under `measures`, as the files are now."""
    found = []
    for reference in job.measure_references:
        file, name = split_reference(reference)
        path = Path(os.path.realpath(reach.base / file))
        found.append(MeasureFile(name, str(path), sha256(path.read_bytes())))
    return found


def note_measure_files(ledger: Ledger, files: Sequence[MeasureFile]) -> list[str]:
    """Keep with a ledger what its measures are. Return the files that were others when the run was worked on
    last."""
    known = ledger.fact(MEASURES)
    if files or known is not None:
        ledger.set_fact(MEASURES, msgspec.json.encode(files).decode())
    before = {one.file: one.sha256 for one in _decode(known, ledger.path)}
    return sorted({one.file for one in files if before.get(one.file, one.sha256) != one.sha256})


def load_run_measures(runs: Sequence[Path], control: Control, only: Collection[str] | None = None) -> None:
    """Load the measures of the jobs of runs, where their files are the same and the user consents. `only`:
    those of these names, which raise InputError where they cannot be loaded; None: all, and one that cannot
    is left out with a note.

    A measure of the same name that is there already takes its place.
    """
    for one in dict.fromkeys(one for run in runs for one in _read_measure_files(run)):
        if one.name in registry.names("measure") or (only is not None and one.name not in only):
            continue
        try:
            _check(one, control)
            load_measures([f"{one.file}:{one.name}"])
        except EdgenError as problem:
            if only is not None:
                raise
            control.note(f"the measure {one.name} of the run's job is left out: {problem}")


def _check(one: MeasureFile, control: Control) -> None:
    """Raise InputError unless the file is the one that the run was made with, and may be run."""
    path = Path(one.file)
    if not path.is_file():
        raise InputError(
            f"{path}: this file of the run's measure {one.name} is missing. Restore it, or name another with "
            f"--measure FILE:{one.name}."
        )
    if (run := run_around(path)) is not None:
        raise InputError(
            f"{path}: this is in the folder of the run {run}, and a file there is never run. Move it out, and name it with "
            f"--measure FILE:{one.name}."
        )
    if sha256(path.read_bytes()) != one.sha256:
        raise InputError(
            f"{path}: this file of the run's measure {one.name} has changed since the run was made. Restore it, or use it "
            f"as it is with --measure {path}:{one.name}."
        )
    require_consent(path, control.trust, "the run")


def _read_measure_files(run: Path) -> list[MeasureFile]:
    """Return the measures that the ledgers of a run keep; none for what is no run."""
    rundir = RunFolder(run)
    if not rundir.begun:
        return []
    found = []
    for _, arm in rundir.begun_arms():
        if not arm.ledger.is_file():  # the reader of the run reports its problem
            continue
        with LedgerReader(arm.ledger) as view:
            found += _decode(view.fact(MEASURES), arm.ledger)
    return found


def _decode(fact: str | None, ledger: Path) -> list[MeasureFile]:
    if fact is None:
        return []
    try:
        return msgspec.json.decode(fact, type=list[MeasureFile])
    except msgspec.DecodeError:
        raise RunError(f"{ledger}: what it keeps about measures is damaged: {shortened(fact)}.") from None
