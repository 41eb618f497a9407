"""Work that belongs to no run: the backend of some job is asked, and its answers are kept in a ledger beside the file that is
made of them."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import msgspec

from edgen.api.supervision.control import Control, explain_os_errors
from edgen.config import Job, load_job, parse_job
from edgen.core.errors import UsageError
from edgen.core.files import refuse_links
from edgen.providers import provider_of
from edgen.store.ledger import Ledger
from edgen.store.locks import lock_for_writing


def load_asked_job(
    named: str | None, overrides: Iterable[str], control: Control, *, option: str, work: str, made_up: str
) -> Job:
    """The job whose backend is asked, that one, `default`, being its only one. `named`: `JOB[:ROLE]`, as `option` takes it; without
    one ./job.yaml, else the embedded simulator. `work` is what a job without a file is called; `made_up` what is said of the
    simulator's answers. Raises UsageError."""
    path, role = _read_job_name(named)
    if path is not None:
        job = load_job(path, list(overrides))
    else:
        plain = {"name": work, "conversations": 1, "space": "-", "prompt": "-"}
        job = parse_job(
            {**plain, "backends": {"default": {"type": "simulator"}}}, "(no job)", list(overrides)
        )
    if role not in job.backends:
        raise UsageError(
            f"{path}: this job has no backend '{role}' (there: {', '.join(job.backends)}). Say which is to be "
            f"asked, as in {option} {path}:{next(iter(job.backends))}."
        )
    config = job.backends[role]
    if provider_of(config).simulated:
        why = (
            f"the backend '{role}' of {path} is" if path is not None else f"no {option} is named, so this is"
        )
        control.note(f"{why} the simulator: {made_up}, and no model is asked.")
    return msgspec.structs.replace(job, backends={"default": config})


def _read_job_name(named: str | None) -> tuple[Path | None, str]:
    """The job file and the role that `JOB[:ROLE]` means."""
    if named is None:
        return (Path("job.yaml") if Path("job.yaml").is_file() else None), "default"
    path, colon, role = named.rpartition(":")
    if not colon or Path(named).is_file():
        return Path(named), "default"
    return Path(path), role


def ledger_beside(out: Path) -> Path:
    """Where the answers of which a file is made are kept."""
    return out.with_name(f"{out.name}.db")


@contextlib.asynccontextmanager
async def open_beside(out: Path) -> AsyncIterator[Ledger]:
    """The ledger beside a file. Raises LockedError where another process is at it."""
    path = ledger_beside(out)
    refuse_links(path.parent, [f"{path.name}{end}" for end in ("", "-wal", "-shm", "-journal")])
    taken = f"{path}: another process is at it"
    with (
        explain_os_errors(path),
        lock_for_writing(path.with_name(f".{path.name}.lock"), taken, "another name"),
    ):
        async with Ledger(path) as ledger:
            yield ledger
