"""A job with what is known of its origin."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from edgen.config import Job, load_job
from edgen.planning.allowed_files import Reach


class JobSource(NamedTuple):
    """A job, what error messages call it, and which files it may name."""

    job: Job
    name: str
    reach: Reach

    @classmethod
    def of(cls, path: Path, overrides: tuple[str, ...] = (), *, allow_outside: bool = False) -> JobSource:
        """Return the source of a job file; `overrides` are in the form of `--set`. Raises JobError."""
        reach = Reach.of(path, overrides, outside=allow_outside)
        return cls(load_job(path, overrides), str(path), reach)
