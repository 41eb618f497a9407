"""What a ledger says about its run: the conservation equation, calls, tokens, cost.

At every moment planned = accepted + rejected + failed + pending.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import msgspec

from edgen.ledger.book import Book
from edgen.ledger.cells import AMOUNT, NATURAL, STATUS, TEXT
from edgen.ledger.opening import damaged
from edgen.ledger.schema import REPLICATES, SCENARIOS, total, units

_Scenario = Annotated[int, msgspec.Meta(ge=0, le=SCENARIOS)]
_Count = Annotated[int, msgspec.Meta(ge=0, lt=2**62)]


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
    scenarios: _Scenario
    replicates: Annotated[int, msgspec.Meta(ge=0, le=REPLICATES)]
    asked: _Count  # how many are wanted
    planned: _Count | None = None  # where it is not the scenarios times replicates
    first: _Scenario = 0
    of: _Scenario | None = None


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


def read_status(book: Book) -> RunStatus:
    """Read it all in one snapshot."""
    with book.at_once():
        plan = read_plan(book) or RunPlan(name="", fingerprint="", scenarios=0, replicates=1, asked=0)
        accepted = 0
        rejected: dict[str, int] = {}
        failed: dict[str, int] = {}
        for status, reason, count in book.derived(
            "SELECT status, reason, COUNT(*) FROM outcomes "
            "WHERE fingerprint = ? AND unit >= ? AND unit < ? AND unit % ? < ? GROUP BY 1, 2 ORDER BY 1, 2",
            (STATUS, TEXT.or_none, NATURAL),
            (plan.fingerprint, *units(plan.first, plan.scenarios), REPLICATES, plan.replicates),
        ):
            if status == "accepted":
                accepted += count
            else:
                counts = rejected if status == "rejected" else failed
                counts[reason or "unknown"] = counts.get(reason or "unknown", 0) + count
        totals = book.one(
            f"SELECT {total('made')}, {total('retried')}, {total('prompt_tokens')}, {total('completion_tokens')}, "  # noqa: S608
            "SUM(cost_usd) FROM sessions",
            (NATURAL, NATURAL, NATURAL, NATURAL, AMOUNT.or_none),
        )
        last = book.row(
            "SELECT replayed, state, message, 'process ' || pid || ' on ' || host "
            "FROM sessions ORDER BY id DESC LIMIT 1",
            (NATURAL, TEXT, TEXT.or_none, TEXT),
        ) or (0, "stopped", None, "")
    made, retried, prompt_tokens, completion_tokens, cost_usd = totals
    summed = Counts(made, last[0], retried, prompt_tokens, completion_tokens, cost_usd)
    return RunStatus(plan, accepted, rejected, failed, summed, *last[1:])


def read_plan(book: Book) -> RunPlan | None:
    """What the run is to make; None where that was not noted yet."""
    row = book.row("SELECT value FROM meta WHERE name = 'plan'", (TEXT,))
    if row is None:
        return None
    try:
        plan = msgspec.json.decode(row[0], type=RunPlan)
    except (ValueError, RecursionError) as problem:
        raise damaged(book.path, f"its plan is none: {problem}") from None
    if plan.first > plan.scenarios:
        raise damaged(book.path, "its plan ends before it begins")
    return plan


def read_facts(book: Book) -> dict[str, str]:
    """All facts about the run, by their names."""
    return dict(book.rows("SELECT name, value FROM meta", (TEXT, TEXT)))


def charged(book: Book, price: Callable[[int, int], float]) -> tuple[int, float]:
    """(tokens, US dollars) used by all sessions, what is out included; `price` values replies that were stored
    without a cost. Money is summed up in whole picodollars, as the budget does it."""
    tokens, cost, prompt, completion = book.one(
        f"SELECT {total('charged_tokens')}, {_pico('cost_usd')}, "  # noqa: S608 - ours
        f"{total('CASE WHEN cost_usd IS NULL THEN prompt_tokens END')}, "
        f"{total('CASE WHEN cost_usd IS NULL THEN IFNULL(completion_tokens, charged_tokens) END')} "
        "FROM replies",
        (NATURAL,) * 4,
    )
    for more_tokens, more_pico in (_lost(book), _out(book)):
        tokens, cost = tokens + more_tokens, cost + more_pico
    return tokens, cost / 1e12 + price(prompt, completion)


def unanswered(book: Book) -> tuple[int, float]:
    """(tokens, US dollars) that are charged to the run for calls without a kept answer that may have been worked on
    all the same, at the most they can have taken."""
    tokens, pico = _lost(book)
    return tokens, pico / 1e12


def set_aside(book: Book) -> tuple[int, float]:
    """(tokens, US dollars) that are set aside for what is out, at the most it can take: calls under way, batches
    that were sent, request files that are to be sent."""
    tokens, pico = _out(book)
    return tokens, pico / 1e12


def _lost(book: Book) -> tuple[int, int]:
    """What calls without an answer are charged, money in picodollars."""
    return _sums(book, "sessions", "lost_tokens", "lost_usd")


def _out(book: Book) -> tuple[int, int]:
    """What is out, money in picodollars; a dead process' calls are still noted so."""
    return _sums(book, "outstanding", "tokens", "usd")


def _sums(book: Book, table: str, tokens: str, usd: str) -> tuple[int, int]:
    found = book.one(f"SELECT {total(tokens)}, {_pico(usd)} FROM {table}", (NATURAL, NATURAL))  # noqa: S608 - ours
    return found[0], found[1]


def _pico(column: str) -> str:
    """SQL for the sum of a column of US dollars, in whole picodollars."""
    return total(f"ROUND({column} * 1e12)")
