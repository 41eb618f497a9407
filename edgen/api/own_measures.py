"""Measures from a Python file: `FILE:FUNCTION` on the command line, or under a job's key `measures`.

Loading one runs the file. Typing its name is consent. A job may come from a stranger, so a file that a job
names runs only after consent to that very content: `--trust-code FILE`, or a yes to a question, which is
remembered next to the consents for keys. A file in the folder of a run never runs.
"""

from __future__ import annotations

import importlib.util
import os
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path

from edgen.config import Job
from edgen.core import registry
from edgen.core.digest import sha256
from edgen.core.errors import InputError, UsageError
from edgen.core.files import write_whole
from edgen.core.text import shorten
from edgen.core.yaml_values import nearest
from edgen.planning.allowed_files import Reach
from edgen.providers.trust import consent_file
from edgen.runtime.trust import Trust


def load_measures(references: Iterable[str], base: Path = Path()) -> list[str]:
    """Load measures named `FILE:FUNCTION`, files starting at `base`; return their names.

    Runs the files. Raises UsageError for a missing file or function, or a file that cannot be run.
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


def load_job_measures(job: Job, reach: Reach, trust: Trust) -> None:
    """Load what a job names under `measures`, where the user consents.

    Raises InputError without consent, and for a file outside of the job's project; UsageError as
    `load_measures` does.
    """
    if not job.measure_references:
        return
    if (reach.base / "run.db").exists():
        raise InputError(
            f"{reach.base}: this is a run's folder, and what its job names under `measures` is not run; start from your "
            "own job file."
        )
    for reference in job.measure_references:
        file, _ = split_reference(reference)
        path = Path(os.path.realpath(reach.base / file))
        if reach.root is not None and not path.is_relative_to(reach.root):
            raise InputError(
                f"measures: {file} leads to {path}, outside of the job's project {reach.root}; move it there, or add "
                "--allow-outside."
            )
        if not path.is_file():
            raise UsageError(f"measures: {reference}: there is no file {path}.")
        require_consent(path, trust)
    load_measures(job.measure_references, reach.base)


def require_consent(path: Path, trust: Trust, who: str = "the job") -> None:
    """Raise InputError unless the user agrees to run a Python file; `who` names it: the job, or the run."""
    digest = sha256(path.read_bytes())
    kept = _file_of(trust)
    known = kept.read_text(encoding="utf-8").splitlines() if kept is not None and kept.is_file() else []
    line = f"- {digest} {path}"
    if path in trust.code or line in known:
        return
    wanted = f"{who} wants to run the Python file {path}, which can do whatever you can"
    remembered = "" if kept is None else f" (a yes is remembered in {kept})"
    if trust.confirm is None or not trust.confirm(f"edgen: {wanted}. Run it?{remembered}"):
        raise InputError(f"{wanted}; read it, and agree with --trust-code {path}.")
    if kept is not None:
        head = known or [
            "# Python files that edgen may run: the digest of what was agreed to, and the path. See docs/trust.md."
        ]
        try:
            kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(kept, "\n".join([*head, line]) + "\n")
            kept.chmod(0o600)
        except OSError as problem:
            raise UsageError(
                f"{kept}: it cannot be written ({problem.strerror}); agree with --trust-code {path}."
            ) from None


def _file_of(trust: Trust) -> Path | None:
    hosts = consent_file(trust.environ)
    return None if hosts is None else hosts.with_name("trusted_code.yaml")


def _load(path: Path, name: str) -> None:
    """Run a file, and have its function be a measure."""
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
        raise UsageError(f"{path}: it has no function {name}{nearest(name, own)}.")
    # A function that the file made a measure by itself is that measure.
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


def chosen_with(only: Sequence[str] | None, own: Sequence[str]) -> Sequence[str] | None:
    """Return the measures to take: those that were chosen and one's own; None for all."""
    return None if only is None else [*only, *own]
