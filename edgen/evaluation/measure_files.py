"""Files of measures that a job names: their digests in the run's ledger, consent, and loading.

The ledger keeps path and digest of each file. For a later look at the run, a file is executed only if it is
unchanged and the user has consented.

`FILE:FUNCTION` names a measure; `load_measures` runs the file.
"""

from __future__ import annotations

import importlib.util
import os
import traceback
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from edgen.config import Job
from edgen.core import registry
from edgen.core.digest import compute_sha256
from edgen.core.errors import EdgenError, InputError, RunError, UsageError
from edgen.core.files import write_whole
from edgen.core.text import shorten
from edgen.core.yaml_values import shorten_word, suggest_name
from edgen.providers.trust import find_consent_file
from edgen.runtime.control import Control, Trust
from edgen.store.ledger import Ledger, LedgerReader
from edgen.store.ledger.facts import MEASURES
from edgen.store.run_folder import RunFolder
from edgen.store.written_file import run_around

if TYPE_CHECKING:
    from edgen.planning.allowed_files import AllowedFiles


class MeasureFile(msgspec.Struct, frozen=True):
    """A function that was a measure of a run, its file, and the file's digest at that time."""

    name: str
    file: str
    sha256: str


def find_measure_files(job: Job, allowed: AllowedFiles) -> list[MeasureFile]:
    """Return the measures that a job names under `measures`, with the files' present digests."""
    found = []
    for reference in job.measure_references:
        file, name = split_reference(reference)
        path = Path(os.path.realpath(allowed.base / file))
        found.append(MeasureFile(name, str(path), compute_sha256(path.read_bytes())))
    return found


def note_measure_files(ledger: Ledger, files: Sequence[MeasureFile]) -> list[str]:
    """Note the measures in a ledger. Return the files that have changed since the last note."""
    known = ledger.read_fact(MEASURES)
    ledger.set_fact(MEASURES, msgspec.json.encode(files).decode())
    before = {one.file: one.sha256 for one in _decode(known, ledger.path)}
    return sorted({one.file for one in files if before.get(one.file, one.sha256) != one.sha256})


def load_run_measures(runs: Sequence[Path], control: Control, only: Collection[str] | None = None) -> None:
    """Load the measures that runs' jobs name, if their files are unchanged and the user consents. `only`:
    names to load; raises InputError if one cannot be loaded. None: all; a measure that cannot be loaded is
    left out with a note.

    If a measure of this name exists already, that one is used.
    """
    for one in dict.fromkeys(one for run in runs for one in _read_measure_files(run)):
        if one.name in registry.list_names("measure") or (only is not None and one.name not in only):
            continue
        try:
            _check(one, control)
            load_measures([f"{one.file}:{one.name}"])
        except EdgenError as problem:
            if only is not None:
                raise
            control.note(f"the measure {one.name} of the run's job is left out: {problem}")


def _check(one: MeasureFile, control: Control) -> None:
    """Raise InputError unless the file is unchanged since the run was made, and may be executed."""
    path = Path(one.file)
    if not path.is_file():
        raise InputError(
            f"{path}: this file of the run's measure {one.name} is missing. Restore it, or name another with "
            f"--measure FILE:{one.name}."
        )
    if (run := run_around(path)) is not None:
        raise InputError(
            f"{path}: this is in the folder of the run {run}, and a file there is never run. Move it out, "
            f"and name it with --measure FILE:{one.name}."
        )
    if compute_sha256(path.read_bytes()) != one.sha256:
        raise InputError(
            f"{path}: this file of the run's measure {one.name} has changed since the run was made. Restore "
            f"it, or use it as it is with --measure {path}:{one.name}."
        )
    require_consent(path, control.trust, "the run")


def _read_measure_files(run: Path) -> list[MeasureFile]:
    """Return the measures in the ledgers of a run; empty if the path is no run."""
    rundir = RunFolder(run)
    if not rundir.begun:
        return []
    found = []
    for _, arm in rundir.list_begun_arms():
        if not arm.ledger.is_file():  # the reader of the run reports its problem
            continue
        with LedgerReader(arm.ledger) as view:
            found += _decode(view.read_fact(MEASURES), arm.ledger)
    return found


def _decode(fact: str | None, ledger: Path) -> list[MeasureFile]:
    if fact is None:
        return []
    try:
        return msgspec.json.decode(fact, type=list[MeasureFile])
    except msgspec.DecodeError:
        raise RunError(f"{ledger}: what it keeps about measures is damaged: {shorten_word(fact)}.") from None


def load_measures(references: Iterable[str], base: Path = Path()) -> list[str]:
    """Load measures named `FILE:FUNCTION`, with files relative to `base`; return their names.

    Executes the files. Raises UsageError for a missing file or function, or a file that fails.
    """
    names = []
    for reference in references:
        file, name = split_reference(reference)
        names.append(name)
        _load(base / file, name)
    return names


def split_reference(reference: str) -> tuple[str, str]:
    """Return the file and the function of `FILE:FUNCTION`. Raises UsageError for anything else."""
    file, colon, name = reference.rpartition(":")
    if not colon or not file.endswith(".py") or not name.isidentifier():
        raise UsageError(
            f"measure {reference}: name a Python file and a function in it, as in ./mine.py:words."
        )
    return file, name


def load_job_measures(job: Job, allowed: AllowedFiles, trust: Trust) -> None:
    """Load the measures that a job names under `measures`, if the user consents.

    Raises InputError without consent, or for a file outside the job's project; UsageError as `load_measures`
    does.
    """
    if (allowed.base / "run.db").exists():
        raise InputError(
            f"{allowed.base}: this is a run's folder, and edgen does not run files that its job names under "
            "`measures`; start from your own job file."
        )
    for reference in job.measure_references:
        file, _ = split_reference(reference)
        path = Path(os.path.realpath(allowed.base / file))
        if allowed.root is not None and not path.is_relative_to(allowed.root):
            raise InputError(
                f"measures: {file} leads to {path}, outside of the job's project {allowed.root}; move it "
                "there, or add --allow-outside."
            )
        if not path.is_file():
            raise UsageError(f"measures: {reference}: there is no file {path}.")
        require_consent(path, trust)
    load_measures(job.measure_references, allowed.base)


def require_consent(path: Path, trust: Trust, source: str = "the job") -> None:
    """Raise InputError unless the user agrees to run a Python file. `source`: the job or run that names the
    file."""
    digest = compute_sha256(path.read_bytes())
    kept = _find_file(trust)
    known = kept.read_text(encoding="utf-8").splitlines() if kept is not None and kept.is_file() else []
    line = f"- {digest} {path}"
    if path in trust.code or line in known:
        return
    wanted = f"{source} wants to run the Python file {path}, which can do whatever you can"
    remembered = "" if kept is None else f" (a yes is remembered in {kept})"
    if trust.confirm is None or not trust.confirm(f"edgen: {wanted}. Run it?{remembered}"):
        raise InputError(f"{wanted}; read it, and agree with --trust-code {path}.")
    if kept is not None:
        head = known or [
            (
                "# Python files that edgen may run: the digest of what was agreed to, and the path. See "
                "docs/trust.md."
            )
        ]
        try:
            kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(kept, "\n".join([*head, line]) + "\n")
            kept.chmod(0o600)
        except OSError as problem:
            raise UsageError(
                f"{kept}: it cannot be written ({problem.strerror}); agree with --trust-code {path}."
            ) from None


def _find_file(trust: Trust) -> Path | None:
    hosts = find_consent_file(trust.environ)
    return None if hosts is None else hosts.with_name("trusted_code.yaml")


def _load(path: Path, name: str) -> None:
    """Execute a file, and register its function as a measure."""
    from edgen.evaluation.function_measure import OwnMeasure, measure

    if not path.is_file():
        raise UsageError(f"measure {path}:{name}: there is no such file.")
    spec = importlib.util.spec_from_file_location(f"_edgen_measure_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as problem:
        raise UsageError(_explain(path, problem)) from problem
    function = getattr(module, name, None)
    if function is None:
        own = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        raise UsageError(f"{path}: it has no function {name}{suggest_name(name, own)}.")
    # The file may have registered the function itself.
    found = registry.find("measure", name) if registry.is_added("measure", name) else None
    if not (isinstance(found, OwnMeasure) and found.function is function):
        measure(function, name)


def _explain(path: Path, problem: BaseException) -> str:
    lines = [
        step.lineno for step in traceback.extract_tb(problem.__traceback__) if step.filename == str(path)
    ]
    line = getattr(problem, "lineno", None) or (lines[-1] if lines else None)
    said = shorten(f"{type(problem).__name__}: {problem}", 200)
    return f"{path}{f', line {line}' if line else ''}: it cannot be run ({said})."


def add_own_measures(only: Sequence[str] | None, own: Sequence[str]) -> Sequence[str] | None:
    """Return the names of the chosen measures and the user's own; None for all."""
    return None if only is None else [*only, *own]
