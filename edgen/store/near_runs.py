"""Runs near a path that holds none: those that a person may have meant."""

from __future__ import annotations

import difflib
from pathlib import Path


def find_near_runs(path: Path) -> list[Path]:
    """Return the folders of runs in this folder; else of the run that it is a part of; else of the run next
    to it whose name is closest."""
    try:
        if inside := sorted(job.parent for job in path.glob("*/job.yaml")):
            return inside
        if (path.parent / "job.yaml").exists():
            return [path.parent]
        others = sorted(job.parent.name for job in path.parent.glob("*/job.yaml"))
    except OSError:
        return []
    return [path.with_name(name) for name in difflib.get_close_matches(path.name, others, n=1)]
