"""Creation of a run from others, in a hidden folder next to its destination. It is renamed at the end, so the
destination is always complete."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from edgen.config import Job
from edgen.core.errors import JobError, RunError, UsageError
from edgen.core.files import sync_folder
from edgen.core.system import require_locks
from edgen.core.yaml_values import read_text, read_yaml
from edgen.execution.run import JOB, describe_job
from edgen.merging.identity import OF_ALL
from edgen.store.inputs_copy import find_accompanying_files, find_named_inputs
from edgen.store.ledger import OPEN
from edgen.store.ledger.merge import SourceLedger
from edgen.store.ledger.problems import make_damaged_error
from edgen.store.run_folder import RunFolder
from edgen.store.written_file import run_around


@contextlib.contextmanager
def make_run(output: Path, word: str) -> Iterator[RunFolder]:
    """Yield the hidden folder in which the body makes a run; rename it to `output` at the end. `word`: the
    suffix of the hidden folder's name."""
    require_locks()
    output.parent.mkdir(parents=True, exist_ok=True)
    work = RunFolder(output.with_name(f".{output.name}.{word}"))
    _refuse_stranger(work)
    work.path.mkdir(exist_ok=True)
    with work.lock_for_writing():
        _clear(work)
        try:
            yield work
            _publish(work, output)
        except BaseException:
            shutil.rmtree(work.path, ignore_errors=True)
            raise


def refuse_target(paths: Sequence[Path], output: Path) -> None:
    """Raise UsageError if a run is named twice, or the destination exists or is inside a run."""
    seen: set[Path] = set()
    for path in paths:
        if (real := path.resolve()) in seen:
            raise UsageError(f"{path}: this run is named twice; name each once.")
        seen.add(real)
    if output.exists() or output.is_symlink():
        raise UsageError(f"{output}: this already exists; name a new folder with -o.")
    if (around := run_around(output.parent)) is not None:
        raise UsageError(
            f"{output}: this is in the folder of the run {around}; name a folder elsewhere with -o."
        )


def _refuse_stranger(work: RunFolder) -> None:
    """Raise UsageError if the hidden folder exists and is not the rest of a killed start."""
    path = work.path
    ours = path.is_dir() and not path.is_symlink() and (work.lock.is_file() or not any(path.iterdir()))
    if (path.exists() or path.is_symlink()) and not ours:
        raise UsageError(
            f"{path}: the new run would be made here first, and this already exists; move it away."
        )


def _clear(work: RunFolder) -> None:
    """Remove the remains of a killed start."""
    for path in work.path.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path != work.lock:
            path.unlink()


def _publish(work: RunFolder, output: Path) -> None:
    try:
        work.path.rename(output)
    except OSError:
        raise UsageError(
            f"{output}: another process has created this meanwhile; name a new folder with -o."
        ) from None
    sync_folder(output.parent)


def describe_original_job(job: Job, sources: Sequence[SourceLedger]) -> dict[str, Any]:
    """Return the job for a manifest: as the user gave it, not as the run stores it."""
    noted = next((source for source in sources if JOB in source.facts), None)
    plain = describe_job(job)
    if noted is not None:
        try:
            known = msgspec.json.decode(noted.facts[JOB], type=dict[str, Any])
        except (ValueError, RecursionError) as problem:
            raise make_damaged_error(noted.path, f"the job that it notes is invalid: {problem}") from None
        plain = {key: value for key, value in known.items() if key in plain}
    return {**plain, **{key: getattr(job, key) for key in OF_ALL}}


def refuse_open(run: RunFolder, source: SourceLedger) -> None:
    """Raise RunError if a ledger has open batches, since the new run would lose their answers."""
    if waiting := [batch for batch in source.batches if batch.state in OPEN]:
        which = ", ".join(f"{batch.number} ({batch.state})" for batch in waiting[:5])
        raise RunError(
            f"{run.path}: batches are open in {source.path.name}: {which}. Have them read first, with "
            "`edgen generate "
            f"JOB -o {run.path} --via batch` or `edgen batch read {run.path} FILES…`, or end them with "
            f"`edgen batch cancel {run.path}`."
        )


def copy_job(run: RunFolder, to: RunFolder, job: Job) -> None:
    """Copy a run's job and its inputs, with the counts of `job`."""
    value = read_yaml(read_text(run.job, JobError), str(run.job), JobError)
    named = find_named_inputs(value)
    inputs = (run.path / name for name in sorted(named | find_accompanying_files(run, named)))
    texts = {path.name: read_text(path, JobError) for path in inputs if path.parent == run.inputs}
    to.write_job({**value, **{key: getattr(job, key) for key in OF_ALL}}, texts)
