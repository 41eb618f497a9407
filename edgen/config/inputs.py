"""Inputs of a run: the files that it was made with, which nobody may change."""

from __future__ import annotations

from pathlib import Path

from edgen.core.errors import DamagedError
from edgen.core.kept_files import find_damage

_INPUTS = ("job.yaml", "arms/numbers.json")  # of a run, besides the files in inputs/


def is_input(name: str) -> bool:
    """Return whether the file of this path in a run's folder is one of the run's inputs."""
    folder, _, file = name.rpartition("/")
    return name in _INPUTS or (folder == "inputs" and file not in ("", ".", ".."))


def require_inputs(run: Path) -> None:
    """Raise DamagedError if one of a run's inputs is not as edgen wrote it. A run of an older edgen has no
    digests of them, and a folder that is not a run has none either."""
    found = [*find_damage(run, is_input)]
    if not found:
        return
    others = "".join(f" So is {run / one.name}: {one.what}." for one in found[1:4])
    raise DamagedError(
        f"{run / found[0].name}: this is not what the run was made with: {found[0].what}.{others} Nothing was asked or changed. "
        f"`edgen validate {run} --restore` puts back what the run was made with. To change a template, a space or the job, edit "
        "the project's own file and run `edgen generate` with its job: a run's inputs are copies."
    )
