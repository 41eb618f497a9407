"""Runs near a path without a run, one of which the user may have meant."""

from __future__ import annotations

import difflib
from pathlib import Path


def find_near_runs(path: Path) -> list[Path]:
    """Return the runs in this folder. Without any, return the run that contains the path, or else the run
    next to it with the closest name."""
    try:
        if inside := _list_runs(path):
            return inside
        if _is_run(path.parent):
            return [path.parent]
        others = [run.name for run in _list_runs(path.parent)]
    except OSError:
        return []
    return [path.with_name(name) for name in difflib.get_close_matches(path.name, others, n=1)]


def _list_runs(folder: Path) -> list[Path]:
    return sorted(job.parent for job in folder.glob("*/job.yaml") if _is_run(job.parent))


def _is_run(folder: Path) -> bool:
    """Return whether a run was started in a folder. A project's folder has only a job."""
    return (folder / "job.yaml").exists() and any((folder / part).exists() for part in ("run.db", "arms"))
