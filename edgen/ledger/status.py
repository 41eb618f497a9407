"""What a ledger says about its run: the conservation equation, calls, tokens, cost.

At every moment planned = accepted + rejected + failed + pending.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

import msgspec

from edgen.ledger.schema import REPLICATES, units


class Counts(msgspec.Struct):
    """What one session did. `retried` counts network attempts beyond a call's first."""

    made: int = 0
    replayed: int = 0
    retried: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None


class RunPlan(msgspec.Struct, frozen=True):
    """What a run is to make: kept in the ledger as the fact `plan`. Its scenarios are those from `first` on and
    below `scenarios`; `of` is how many the job has where they are a piece of it, None where they are all."""

    name: str
    fingerprint: str
    scenarios: int
    replicates: int
    asked: int  # how many are wanted
    planned: int | None = None  # where it is not the scenarios times replicates
    first: int = 0
    of: int | None = None


class RunStatus(msgspec.Struct, frozen=True):
    """Counts of conversations by outcome, and of calls over all sessions of a run.

    `replayed` counts the last session's answers that came from the ledger. `session_state` is how
    the last session ended, "running" if it never said so; `process` is whose it is or was.
    """

    plan: RunPlan
    accepted: int
    rejected: dict[str, int]
    failed: dict[str, int]
    counts: Counts
    session_state: str
    message: str | None
    process: str = ""

    @property
    def planned(self) -> int:
        product = (self.plan.scenarios - self.plan.first) * self.plan.replicates
        return product if self.plan.planned is None else self.plan.planned

    @property
    def pending(self) -> int:
        return self.planned - self.accepted - sum(self.rejected.values()) - sum(self.failed.values())

    def state(self, *, held: bool) -> str:
        """complete, short, running or stopped; `held`: a live process has the run's lock."""
        if held:
            return "running"
        # A killed session never said how it ended: its files, at least, are not written.
        if self.pending > 0 or self.session_state not in ("complete", "short"):
            return "stopped"
        return "complete" if self.accepted >= self.plan.asked else "short"

    def last(self, *, held: bool) -> str | None:
        """What the last session ended with, of a run that is not complete."""
        if self.state(held=held) not in ("stopped", "short"):
            return None
        if self.session_state == "running":
            return f"{self.process} ended without saying so"
        return self.message

    def as_json(self, run: str, *, held: bool) -> dict[str, Any]:
        """The object that `edgen status --json` prints. `range`, of a piece alone: its scenarios, half open."""
        plan = self.plan
        return {
            "run": run,
            "state": self.state(held=held),
            **(
                {}
                if plan.of is None
                else {"range": {"first": plan.first, "end": plan.scenarios, "of": plan.of}}
            ),
            "planned": self.planned,
            "accepted": self.accepted,
            "rejected": self.rejected,
            "failed": self.failed,
            "pending": self.pending,
            "calls": {
                "made": self.counts.made,
                "replayed": self.counts.replayed,
                "retried": self.counts.retried,
            },
            "tokens": {
                "prompt": self.counts.prompt_tokens,
                "completion": self.counts.completion_tokens,
            },
            "cost_usd": self.counts.cost_usd,
        }


def read_status(connection: sqlite3.Connection) -> RunStatus:
    """Read it all in one snapshot. Raises sqlite3.DatabaseError as sqlite3 does."""
    connection.execute("BEGIN")
    try:
        plan = _plan(connection)
        accepted = 0
        rejected: dict[str, int] = {}
        failed: dict[str, int] = {}
        for status, reason, count in connection.execute(
            "SELECT status, reason, COUNT(*) FROM outcomes "
            "WHERE fingerprint = ? AND unit >= ? AND unit < ? AND unit % ? < ? GROUP BY 1, 2 ORDER BY 1, 2",
            (plan.fingerprint, *units(plan.first, plan.scenarios), REPLICATES, plan.replicates),
        ):
            if status == "accepted":
                accepted += count
            else:
                (rejected if status == "rejected" else failed)[reason or "unknown"] = count
        totals = connection.execute(
            "SELECT SUM(made), SUM(retried), SUM(prompt_tokens), SUM(completion_tokens), SUM(cost_usd) FROM sessions"
        ).fetchone()
        last = connection.execute(
            "SELECT replayed, state, message, 'process ' || pid || ' on ' || host "
            "FROM sessions ORDER BY id DESC LIMIT 1"
        ).fetchone() or (0, "stopped", None, "")
    finally:
        connection.execute("COMMIT")
    counts = Counts(
        made=totals[0] or 0,
        replayed=last[0],
        retried=totals[1] or 0,
        prompt_tokens=totals[2] or 0,
        completion_tokens=totals[3] or 0,
        cost_usd=totals[4],
    )
    return RunStatus(plan, accepted, rejected, failed, counts, *last[1:])


def charged(connection: sqlite3.Connection, price: Callable[[int, int], float]) -> tuple[int, float]:
    """(tokens, US dollars) used by all sessions, what is out included; `price` values replies that were stored
    without a cost. Money is summed up in whole picodollars, as the budget does it."""
    tokens, cost, prompt, completion = connection.execute(
        f"SELECT IFNULL(SUM(charged_tokens), 0), {_pico('cost_usd')}, "  # noqa: S608 - ours
        "IFNULL(SUM(CASE WHEN cost_usd IS NULL THEN prompt_tokens END), 0), "
        "IFNULL(SUM(CASE WHEN cost_usd IS NULL THEN IFNULL(completion_tokens, charged_tokens) END), 0) "
        "FROM replies"
    ).fetchone()
    for more_tokens, more_pico in (_lost(connection), _out(connection)):
        tokens, cost = tokens + more_tokens, cost + more_pico
    return tokens, cost / 1e12 + price(prompt, completion)


def unanswered(connection: sqlite3.Connection) -> tuple[int, float]:
    """(tokens, US dollars) that are charged to the run for calls without a kept answer that may have been worked on
    all the same, at the most they can have taken."""
    tokens, pico = _lost(connection)
    return tokens, pico / 1e12


def set_aside(connection: sqlite3.Connection) -> tuple[int, float]:
    """(tokens, US dollars) that are set aside for what is out, at the most it can take: calls under way, batches
    that were sent, request files that are to be sent."""
    tokens, pico = _out(connection)
    return tokens, pico / 1e12


def _lost(connection: sqlite3.Connection) -> tuple[int, int]:
    """What calls without an answer are charged, money in picodollars."""
    lost: tuple[int, int] = connection.execute(
        f"SELECT IFNULL(SUM(lost_tokens), 0), {_pico('lost_usd')} FROM sessions"  # noqa: S608
    ).fetchone()
    return lost


def _out(connection: sqlite3.Connection) -> tuple[int, int]:
    """What is out, money in picodollars; a dead process' calls are still noted so."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'outstanding'").fetchone():
        return 0, 0
    out: tuple[int, int] = connection.execute(
        f"SELECT IFNULL(SUM(tokens), 0), {_pico('usd')} FROM outstanding"  # noqa: S608
    ).fetchone()
    return out


def _pico(column: str) -> str:
    """SQL for the sum of a column of US dollars, in whole picodollars."""
    return f"IFNULL(SUM(CAST(ROUND({column} * 1e12) AS INTEGER)), 0)"


def _plan(connection: sqlite3.Connection) -> RunPlan:
    row = connection.execute("SELECT value FROM meta WHERE name = 'plan'").fetchone()
    if row is None:
        return RunPlan(name="", fingerprint="", scenarios=0, replicates=1, asked=0)
    return msgspec.json.decode(row[0], type=RunPlan)
