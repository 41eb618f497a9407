"""A finished run as a data set that trainers, libraries and the hub take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from edgen.api.supervision.control import Control
from edgen.core.errors import UsageError
from edgen.core.registry import find, find_all
from edgen.export.options import ExportOptions
from edgen.export.write import Exported, check_target, export
from edgen.store.run_folder import RunFolder
from edgen.store.run_reader import RunReader


def list_formats() -> list[dict[str, Any]]:
    """Every format there is: its name, a summary, what it is of, and what it needs besides finished conversations."""
    formats = find_all("format")
    return [
        {"format": one.name, "summary": one.summary, "of": one.of, "needs": list(one.needs)}
        for one in formats
    ]


def has_pairs(run: Path) -> bool:
    """Whether the run has pairs to export. Raises RunError for what is no run."""
    rundir = RunFolder(run)
    rundir.require()
    return rundir.pairs.exists()


def export_run(
    run: Path, name: str, output: Path | None, options: ExportOptions, control: Control
) -> Exported:
    """Write a run in the format `name` to a new folder, with a card. What cannot be expressed is left out and counted.

    Raises UsageError for options that do not go together, ShortError where no row is left, and what reading raises.
    """
    format_ = find("format", name)
    if output is None:
        raise UsageError(f"-o is missing: name the folder to make, such as -o exports/{format_.name}.")
    format_.check(options)
    check_target(output)
    with RunFolder(run).lock_for_reading(), RunReader(run) as reader:
        exported = export(reader, format_, output, options)
    for remark in exported.remarks:
        control.note(remark)
    return exported
