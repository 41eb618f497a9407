"""`edgen status`: how a run stands, finished or in progress."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from edgen.cli.options import JsonOption
from edgen.cli.output import print_json, print_line
from edgen.errors import RunError
from edgen.ledger import OPEN, kept_at, out_at
from edgen.rundir import RunDir


def command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.", show_default=False)],
    json: JsonOption = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Follow the run until it ends; --json: an object a line.")
    ] = False,
) -> None:
    """Show how a run stands: what was planned, accepted, rejected, failed, and what is pending.

    With --watch it is shown again whenever something changes, until nobody works on the run any more; one that
    was not begun is waited for.

    Example: edgen status outputs/quickstart
    """
    rundir = RunDir(run)
    rundir.refuse_links()
    if watch:
        from edgen.cli.follow import follow

        follow(rundir, json=json)
        return
    if not rundir.exists:  # a ledger alone is a run that was killed before its job was noted
        rundir.require()
    facts = facts_of(rundir, held=rundir.is_held())
    if json:
        print_json(facts)
        return
    for line in status_lines(facts):
        print_line(line)
    for message in lasts(facts):
        print_line(f"last       {message}")


def facts_of(rundir: RunDir, *, held: bool) -> dict[str, Any]:
    """The object that `edgen status --json` prints. That of a run with arms adds them up, and holds each
    arm's own under `arms`; where pairs were judged, `judges` says how each judge stands."""
    facts = _run_facts(rundir, held=held)
    if judges := [_judge_facts(ledger) for ledger in rundir.judge_ledgers()]:
        facts["judges"] = judges
    return facts


def _judge_facts(ledger: Path) -> dict[str, Any]:
    facts = _ledger_facts(RunDir(ledger.parent), held=False, ledger=ledger)
    kept = (
        "planned",
        "rejected",
        "failed",
        "pending",
        "calls",
        "tokens",
        "cost_usd",
        "out",
        "unanswered",
        "batches",
    )
    here = {key: facts[key] for key in kept if key in facts}
    return {"judge": ledger.stem, "judged": facts["accepted"], **here}


def _ledger_facts(rundir: RunDir, *, held: bool, ledger: Path | None = None) -> dict[str, Any]:
    """What one ledger says of its run. Where there is such: `out`, what is set aside for what is out, and
    `batches`, of them those that are; `unanswered`, what is charged for calls that have no kept answer; `last`,
    what the last session of a run that is not complete ended with."""
    ledger = rundir.ledger if ledger is None else ledger
    kept = kept_at(ledger)
    facts = kept.status.as_json(str(rundir.path), held=held)
    for name, (tokens, usd) in (("out", kept.out), ("unanswered", kept.unanswered)):
        if tokens or usd:
            facts[name] = {"tokens": tokens, "cost_usd": usd}
    if (last := kept.status.last(held=held)) is not None:
        facts["last"] = last
    if out := [batch for batch in kept.batches if batch.state in OPEN]:
        facts["batches"] = [
            {
                "number": batch.number,
                "state": batch.state,
                "backend": batch.backend,
                "id": batch.remote_id,
                "requests": out_at(ledger, batch.number),
                "sent_at": None if batch.sent_at is None else _utc(batch.sent_at),
            }
            for batch in out
        ]
    return facts


def _utc(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _run_facts(rundir: RunDir, *, held: bool) -> dict[str, Any]:
    arms = _arms(rundir)
    if arms is None:
        return _ledger_facts(rundir, held=held)
    each = {
        name: _ledger_facts(arm, held=held and arm.is_held()) if arm.ledger.exists() else None
        for name, arm in arms.items()
    }
    begun = [facts for facts in each.values() if facts is not None]
    if not begun:
        raise RunError(f"{rundir.path}: none of this run's arms was begun; generate it first.")
    states = {"stopped" if facts is None else facts["state"] for facts in each.values()}
    state = next((s for s in ("stopped", "short") if s in states), "complete")
    apart = ("run", "state", "range", "batches", "last")  # what does not add up
    total = _added([{k: v for k, v in facts.items() if k not in apart} for facts in begun])
    if len(ranges := {tuple(facts.get("range", {}).items()) for facts in begun}) == 1 and any(ranges):
        total = {"range": begun[0]["range"], **total}
    return {"run": str(rundir.path), "state": "running" if held else state, **total, "arms": each}


def _arms(rundir: RunDir) -> dict[str, RunDir] | None:
    """The arms of a run, begun or not; None for a run that has none."""
    if rundir.ledger.exists() or not rundir.arms.exists():
        return None
    from edgen.config import load_job

    return {name: rundir.of(name) for name in load_job(rundir.job).arms}


def lasts(facts: dict[str, Any]) -> list[str]:
    """What the last sessions ended with, of a run that is not complete, and of its arms."""
    own = [facts["last"]] if "last" in facts else []
    arms = ((name, arm) for name, arm in facts.get("arms", {}).items() if arm is not None)
    return own + [f"{name}: {text}" for name, arm in arms for text in lasts(arm)]


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
    cost = "unknown (no price in the job)" if calls["made"] else "none yet"
    if facts["cost_usd"] is not None:
        cost = _money(facts["cost_usd"])
    return [
        f"run        {facts['run']}",
        f"state      {facts['state']}",
        f"planned    {facts['planned']}{_range(facts)}",
        f"accepted   {facts['accepted']}",
        f"rejected   {reasons(facts['rejected'])}",
        f"failed     {reasons(facts['failed'])}",
        f"pending    {facts['pending']}",
        f"calls      {_made(calls)}, {calls['replayed']} replayed, {calls['retried']} retried",
        f"tokens     {tokens['prompt']} prompt, {tokens['completion']} completion",
        f"cost       {cost}",
        *_unanswered_lines(facts),
        *_batch_lines([facts, *(arm for arm in facts.get("arms", {}).values() if arm is not None)]),
        *(f"arm        {name}: {_arm_line(arm)}" for name, arm in facts.get("arms", {}).items()),
        *(
            f"judge      {judge['judge']}: {judge['judged']} of {judge['planned']} pairs judged, {judge['pending']} pending"
            for judge in facts.get("judges", ())
        ),
    ]


def _range(facts: dict[str, Any]) -> str:
    """Of a piece: which scenarios it has."""
    part = facts.get("range")
    return "" if part is None else f" (scenarios {part['first']} to {part['end'] - 1} of {part['of']})"


def _unanswered_lines(facts: dict[str, Any]) -> list[str]:
    """What is set aside or charged without an answer: what is out, and calls that were cut off."""
    told = (
        ("out", "set aside ", "for what is out"),
        ("unanswered", "unanswered", "charged for calls without a kept answer"),
    )
    return [f"{word} {_most(facts[key])} at most, {why}" for key, word, why in told if key in facts]


def _most(amount: dict[str, Any]) -> str:
    money = f", {_money(amount['cost_usd'])}" if amount["cost_usd"] else ""
    return f"{amount['tokens']:,} tokens{money}"


def _money(usd: float) -> str:
    """US dollars, to a hundredth of a cent."""
    return f"${usd:.4f}"


def _batch_lines(runs: list[dict[str, Any]]) -> list[str]:
    """The batches that are out, of a run and its arms, in a line."""
    out = [batch for run in runs for batch in run.get("batches", ())]
    if not out:
        return []
    requests = sum(batch["requests"] for batch in out)
    sent = min((batch["sent_at"] for batch in out if batch["sent_at"] is not None), default=None)
    return [
        f"batches    {len(out)} out: {requests:,} requests, {'not sent' if sent is None else _since(sent)}"
    ]


def _since(moment: str) -> str:
    local = datetime.fromisoformat(moment).astimezone()
    today = local.date() == datetime.now().astimezone().date()
    return f"sent {local:%H:%M}" if today else f"sent {local:%Y-%m-%d %H:%M}"


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
