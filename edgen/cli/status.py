"""`edgen status`: how a run stands, finished or in progress."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from edgen.cli.load import JsonOption
from edgen.cli.output import print_json, print_line
from edgen.ledger import run_status
from edgen.rundir import RunDir


def command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.", show_default=False)],
    json: JsonOption = False,
) -> None:
    """Show how a run stands: what was planned, accepted, rejected, failed, and what is pending.

    Example: edgen status outputs/quickstart
    """
    rundir = RunDir(run)
    status = run_status(rundir.ledger)
    facts = status.as_json(str(run), held=rundir.is_held())
    if json:
        print_json(facts)
        return
    for line in status_lines(facts):
        print_line(line)
    if status.message and facts["state"] in ("stopped", "short"):
        print_line(f"last       {status.message}")


def status_lines(facts: dict[str, Any]) -> list[str]:
    """The status for a person, a line a fact."""
    calls, tokens = facts["calls"], facts["tokens"]
    cost = "unknown (no price in the job)" if facts["cost_usd"] is None else f"${facts['cost_usd']:.4f}"
    return [
        f"run        {facts['run']}",
        f"state      {facts['state']}",
        f"planned    {facts['planned']}",
        f"accepted   {facts['accepted']}",
        f"rejected   {_reasons(facts['rejected'])}",
        f"failed     {_reasons(facts['failed'])}",
        f"pending    {facts['pending']}",
        f"calls      {calls['made']} made, {calls['replayed']} replayed, {calls['retried']} retried",
        f"tokens     {tokens['prompt']} prompt, {tokens['completion']} completion",
        f"cost       {cost}",
    ]


def _reasons(counts: dict[str, int]) -> str:
    total = sum(counts.values())
    if not total:
        return "0"
    return f"{total} ({', '.join(f'{reason} {count}' for reason, count in counts.items())})"
