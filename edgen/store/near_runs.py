"""Runs near a path that holds none: those that a person may have meant."""

from __future__ import annotations

import difflib
from pathlib import Path


def find_near_runs(path: Path) -> list[Path]:
    """Return the folders of runs in this folder; else of the run that it is a part of; else of the run next
    to it whose name is closest."""
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
    """Return whether a run was begun in a folder: a project has a job alone."""
    return (folder / "job.yaml").exists() and any((folder / part).exists() for part in ("run.db", "arms"))
