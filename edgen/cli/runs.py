"""`edgen runs`: the runs in a folder, a line each, the one last worked on first."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from edgen.cli.options import JsonOption
from edgen.cli.output import note, print_json, print_line
from edgen.cli.progress import money, short
from edgen.cli.status import facts_of, lasts
from edgen.durations import span
from edgen.errors import EdgenError, UsageError
from edgen.rundir import RunDir


def command(
    folder: Annotated[
        Path, typer.Argument(metavar="[DIR]", help="A folder of runs, or a run.", show_default="outputs")
    ] = Path("outputs"),
    json: JsonOption = False,
) -> None:
    """List the runs in a folder: state, counts, calls, cost, when each was last worked on, and its size.

    Reads and changes nothing. A run that cannot be read is listed with what is wrong with it.

    Example: edgen runs
    """
    if not folder.is_dir():
        wrong = "this is no folder" if folder.exists() else "there is no such folder"
        raise UsageError(f"{folder}: {wrong}; name one that holds runs, as in `edgen runs outputs`.")
    rows = sorted((_row(rundir) for rundir in _runs(folder)), key=lambda row: row["age_seconds"])
    if json:
        print_json({"folder": str(folder), "runs": rows})
        return
    if not rows:
        note(f"edgen: {folder}: there are no runs in this folder.")
        return
    for line in _table(rows):
        print_line(line)


def _runs(folder: Path) -> list[RunDir]:
    """The folder itself, if it is a run, else those of its folders that are."""
    try:
        places = [folder] if _is_run(RunDir(folder)) else [Path(entry) for entry in folder.iterdir()]
    except OSError as problem:
        raise UsageError(f"{folder}: it cannot be read ({problem.strerror}).") from None
    return [rundir for rundir in map(RunDir, places) if _is_run(rundir)]


def _is_run(rundir: RunDir) -> bool:
    """Whether a run was begun there; a job of somebody's own in a folder of its own is none."""
    try:
        return rundir.ledger.exists() or (rundir.job.exists() and rundir.lock.exists())
    except OSError:
        return False


def _row(rundir: RunDir) -> dict[str, Any]:
    """What is told of one run; `problem` in place of its counts where it cannot be read."""
    row: dict[str, Any] = {"run": str(rundir.path), "name": rundir.path.resolve().name}
    size, last = _weighed(rundir)  # before its ledger is opened
    try:
        rundir.refuse_links()
        facts = facts_of(rundir, held=rundir.is_held())
        kept = (
            "state",
            "planned",
            "accepted",
            "rejected",
            "failed",
            "pending",
            "calls",
            "tokens",
            "cost_usd",
        )
        row |= {key: facts[key] for key in (*kept, "out", "unanswered", "batches") if key in facts}
        if told := lasts(facts):
            row["last"] = " ".join(told)
    except EdgenError as error:
        row |= {"state": "unreadable", "problem": " ".join(str(error).split())}
    except OSError as error:
        row |= {"state": "unreadable", "problem": f"{rundir.path}: {error.strerror}."}
    return row | {"age_seconds": round(max(0.0, time.time() - last), 3), "bytes": size}


def _weighed(rundir: RunDir) -> tuple[int, float]:
    """The bytes in a run's folder, and when something of its ledgers was last written, in seconds since the
    epoch; anything in it, where there is none."""
    size, last, last_answer = 0, 0.0, 0.0
    for parent, _, names in os.walk(rundir.path):
        for name in names:
            try:
                facts = os.lstat(os.path.join(parent, name))  # noqa: PTH118 - a Path for each file is slow
            except OSError:  # gone meanwhile
                continue
            size += facts.st_size
            last = max(last, facts.st_mtime)
            # Whoever reads a ledger leaves an empty log beside it.
            if name.endswith(".db") or (name.endswith(".db-wal") and facts.st_size):
                last_answer = max(last_answer, facts.st_mtime)
    return size, last_answer or last


def _table(rows: list[dict[str, Any]]) -> list[str]:
    head = ("run", "state", "accepted", "calls", "tokens", "cost", "age", "size")
    cells = [head, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(head))]
    lines = []
    for number, line in enumerate(cells):
        left = [text.ljust(width) for text, width in zip(line[:2], widths[:2], strict=True)]
        right = [text.rjust(width) for text, width in zip(line[2:], widths[2:], strict=True)]
        lines.append("  ".join([*left, *right]))
        if number and (problem := rows[number - 1].get("problem")):
            lines.append(f"  {problem}")
    return lines


def _age(seconds: float) -> str:
    return f"{seconds // 86_400:.0f}d" if seconds >= 2 * 86_400 else span(seconds)


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    age, size = _age(row["age_seconds"]), f"{short(row['bytes'])}B"
    if "problem" in row:
        return row["name"], row["state"], "-", "-", "-", "-", age, size
    cost = "no price" if row["calls"]["made"] else "-"
    if row["cost_usd"] is not None:
        cost = money(row["cost_usd"])
    return (
        row["name"],
        row["state"],
        f"{row['accepted']}/{row['planned']}",
        str(row["calls"]["made"]),
        short(row["tokens"]["prompt"] + row["tokens"]["completion"]),
        cost,
        age,
        size,
    )
