"""`edgen batch list`: every batch of a run, from its ledgers alone; nothing is asked."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edgen.cli.options import JsonOption
from edgen.cli.output import print_json, print_line
from edgen.durations import span
from edgen.rundir import RunDir

if TYPE_CHECKING:
    from edgen.ledger import Batch

RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.", show_default=False)]


def command(run: RunArgument, json: JsonOption = False) -> None:
    """Show every batch of a run and how it stands, as the run has noted it. Nothing is asked of the provider.

    Example: edgen batch list outputs/nightly
    """
    from edgen.engine.handing import batches_of

    rundir = RunDir(run)
    rundir.require()
    rows = [_facts(held.whose, batch) for held in batches_of(rundir) for batch in held.batches]
    if json:
        print_json({"run": str(run), "batches": rows})
        return
    if not rows:
        print_line("This run has had no batches; `edgen generate JOB --via batch` makes them.")
        return
    print_line(f"{'batch':<18}{'state':<18}{'round':>5}{'requests':>10}  {'age':<8} id")
    for row in rows:
        name = f"{row['number']} {row['of']}".strip()
        age = "" if row["age_s"] is None else span(row["age_s"])
        told = row["id"] or row["file"]
        print_line(f"{name:<18}{_state(row):<18}{row['round']:>5}{row['requests']:>10,}  {age:<8} {told}")
        if row["message"] and not _is_outcome(row):
            print_line(f"{'':<18}{row['message']}")


def _state(row: dict[str, Any]) -> str:
    return f"{row['state']} ({row['message']})" if _is_outcome(row) else str(row["state"])


def _is_outcome(row: dict[str, Any]) -> bool:
    """Whether the message is the one word with which the provider ended the batch."""
    return row["state"] == "read" and bool(row["message"]) and " " not in row["message"]


def _facts(whose: str, batch: Batch) -> dict[str, Any]:
    since = batch.sent_at or batch.made_at
    return {
        "number": batch.number,
        "of": whose,
        "state": batch.state,
        "backend": batch.backend,
        "round": batch.round,
        "requests": batch.requests,
        "id": batch.remote_id,
        "file": batch.file,
        "sent_at": None
        if batch.sent_at is None
        else datetime.fromtimestamp(batch.sent_at, UTC).isoformat(timespec="seconds"),
        "age_s": max(0.0, round(time.time() - since, 1)),
        "message": batch.message,
    }
