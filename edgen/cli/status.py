"""`edgen status`: how a run stands, finished or in progress."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from edgen.cli.options import JsonOption
from edgen.cli.output import print_json, print_line
from edgen.errors import RunError
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
    if not rundir.exists:  # a ledger alone is a run that was killed before its job was noted
        rundir.require()
    facts = facts_of(rundir, held=rundir.is_held())
    if json:
        print_json(facts)
        return
    for line in status_lines(facts):
        print_line(line)
    if facts["state"] in ("stopped", "short"):
        for message in _messages(rundir):
            print_line(f"last       {message}")


def facts_of(rundir: RunDir, *, held: bool) -> dict[str, Any]:
    """The object that `edgen status --json` prints. That of a run with arms adds them up, and holds each
    arm's own under `arms`; where pairs were judged, `judges` says how each judge stands."""
    facts = _run_facts(rundir, held=held)
    if judges := [_judge_facts(ledger) for ledger in rundir.judge_ledgers()]:
        facts["judges"] = judges
    return facts


def _judge_facts(ledger: Path) -> dict[str, Any]:
    facts = run_status(ledger).as_json("", held=False)
    kept = ("planned", "rejected", "failed", "pending", "calls", "tokens", "cost_usd")
    return {"judge": ledger.stem, "judged": facts["accepted"], **{key: facts[key] for key in kept}}


def _run_facts(rundir: RunDir, *, held: bool) -> dict[str, Any]:
    arms = _arms(rundir)
    if arms is None:
        return run_status(rundir.ledger).as_json(str(rundir.path), held=held)
    each = {
        name: run_status(arm.ledger).as_json(str(arm.path), held=held and arm.is_held())
        if arm.ledger.exists()
        else None
        for name, arm in arms.items()
    }
    begun = [facts for facts in each.values() if facts is not None]
    if not begun:
        raise RunError(f"{rundir.path}: none of this run's arms was begun; generate it first.")
    states = {"stopped" if facts is None else facts["state"] for facts in each.values()}
    state = next((s for s in ("stopped", "short") if s in states), "complete")
    total = _added([{k: v for k, v in facts.items() if k not in ("run", "state")} for facts in begun])
    return {"run": str(rundir.path), "state": "running" if held else state, **total, "arms": each}


def _arms(rundir: RunDir) -> dict[str, RunDir] | None:
    """The arms of a run, begun or not; None for a run that has none."""
    if rundir.ledger.exists() or not rundir.arms.exists():
        return None
    from edgen.config import load_job

    return {name: rundir.of(name) for name in load_job(rundir.job).arms}


def _messages(rundir: RunDir) -> list[str]:
    """What the last sessions ended with."""
    arms = _arms(rundir)
    if arms is None:
        message = run_status(rundir.ledger).message
        return [message] if message else []
    return [f"{name}: {text}" for name, arm in arms.items() if arm.ledger.exists() for text in _messages(arm)]


def _added(values: list[Any]) -> Any:
    """Mappings of numbers added up, key by key; None counts nothing."""
    present = [value for value in values if value is not None]
    if not present:
        return None
    if isinstance(present[0], dict):
        keys = dict.fromkeys(key for value in present for key in value)
        return {key: _added([value.get(key) for value in present]) for key in keys}
    return sum(present)


def status_lines(facts: dict[str, Any]) -> list[str]:
    """The status for a person, a line a fact."""
    calls, tokens = facts["calls"], facts["tokens"]
    cost = "unknown (no price in the job)" if facts["cost_usd"] is None else f"${facts['cost_usd']:.4f}"
    return [
        f"run        {facts['run']}",
        f"state      {facts['state']}",
        f"planned    {facts['planned']}",
        f"accepted   {facts['accepted']}",
        f"rejected   {reasons(facts['rejected'])}",
        f"failed     {reasons(facts['failed'])}",
        f"pending    {facts['pending']}",
        f"calls      {_made(calls)}, {calls['replayed']} replayed, {calls['retried']} retried",
        f"tokens     {tokens['prompt']} prompt, {tokens['completion']} completion",
        f"cost       {cost}",
        *(f"arm        {name}: {_arm_line(arm)}" for name, arm in facts.get("arms", {}).items()),
        *(
            f"judge      {judge['judge']}: {judge['judged']} of {judge['planned']} pairs judged, {judge['pending']} pending"
            for judge in facts.get("judges", ())
        ),
    ]


def _made(calls: dict[str, int]) -> str:
    """The calls of all starts, and how many of them the one that ends now made, where others made some."""
    now = calls.get("now", calls["made"])
    return f"{calls['made']} made" + (f" ({now} now)" if now != calls["made"] else "")


def _arm_line(facts: dict[str, Any] | None) -> str:
    if facts is None:
        return "not begun"
    return f"{facts['state']}, {facts['accepted']} of {facts['planned']} accepted, {facts['pending']} pending"


def reasons(counts: dict[str, int]) -> str:
    """A count, and what it is made of."""
    total = sum(counts.values())
    if not total:
        return "0"
    return f"{total} ({', '.join(f'{reason} {count}' for reason, count in counts.items())})"
