"""What a ledger says about its run: the conservation equation, calls, tokens, cost.

At every moment planned = accepted + rejected + failed + pending.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import msgspec

from edgen.core.values import Status, Usage
from edgen.store.ledger.checked_reader import CheckedReader
from edgen.store.ledger.opening import damaged_error, decode_fact
from edgen.store.ledger.rows import Amount, Moment, Natural
from edgen.store.ledger.schema import PICO, SCENARIOS, total, total_pico

_Scenario = Annotated[int, msgspec.Meta(ge=0, le=SCENARIOS)]
_Count = Annotated[int, msgspec.Meta(ge=0, lt=2**62)]


class Scope(msgspec.Struct, frozen=True):
    """Which outcomes are meant: those made under `fingerprint`, of the scenarios from `first` on and below `end`,
    by tasks with numbers below `replicates`; 0: by any task."""

    fingerprint: str
    end: int
    replicates: int = 0
    first: int = 0

    @property
    def values(self) -> dict[str, Any]:
        """What IN_SCOPE refers to."""
        return msgspec.structs.asdict(self)


# SQL: which outcomes are in a scope.
IN_SCOPE = (
    "fingerprint = :fingerprint AND scenario >= :first AND scenario < :end "
    "AND (:replicates = 0 OR task < :replicates)"
)


class TokenCounts(msgspec.Struct):
    """Sums of usages, kind by kind."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    def add(self, used: Usage | TokenCounts) -> None:
        """Count what an answer used, or several."""
        self.prompt_tokens += used.prompt_tokens
        self.completion_tokens += used.completion_tokens
        self.cache_read_tokens += used.cache_read_tokens
        self.cache_write_tokens += used.cache_write_tokens


_TOKENS = TokenCounts.__struct_fields__  # as the columns are called, too


class Counts(TokenCounts, kw_only=True):
    """What one session did. `retried` counts network attempts beyond a call's first."""

    made: int = 0
    replayed: int = 0
    retried: int = 0
    cost_usd: float | None = None


class Session(NamedTuple):
    """A session, as it is noted. Times are seconds since the epoch; what is lost is charged, and its answer not kept."""

    started_at: Moment
    ended_at: Moment | None
    pid: Natural
    host: str
    edgen: str
    made: Natural
    replayed: Natural
    retried: Natural
    prompt_tokens: Natural
    completion_tokens: Natural
    cache_read_tokens: Natural
    cache_write_tokens: Natural
    cost_usd: Amount | None
    state: str
    message: str | None
    lost_tokens: Natural
    lost_usd: Amount


class RunPlan(msgspec.Struct, frozen=True):
    """What a run is to make: kept in the ledger as the fact `plan`. Its scenarios are those from `first` on and
    below `scenarios`; `of` is how many the job has where they are a piece of it, None where they are all."""

    name: str
    fingerprint: str
    scenarios: _Scenario
    replicates: _Count  # tasks of a scenario, which are numbered; 0: any, numbered or not
    asked: _Count  # how many are wanted
    planned: _Count | None = None  # where it is not the scenarios times replicates
    first: _Scenario = 0
    of: _Scenario | None = None
    rounds: _Count = 1  # that it is made in, one after another

    @property
    def scope(self) -> Scope:
        return Scope(self.fingerprint, self.scenarios, self.replicates, self.first)


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
        if self.plan.planned is not None:
            return self.plan.planned
        return (self.plan.scenarios - self.plan.first) * self.plan.replicates

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


def read_sessions(book: CheckedReader) -> list[Session]:
    """Every session, the first one first."""
    return book.rows(f"SELECT {', '.join(Session._fields)} FROM sessions ORDER BY id", Session)  # noqa: S608 - ours


def count_outcomes(book: CheckedReader, scope: Scope) -> list[tuple[Status, str | None, int]]:
    """How many outcomes of a scope have each (status, reason)."""
    return book.derived(
        f"SELECT status, reason, COUNT(*) FROM outcomes WHERE {IN_SCOPE} GROUP BY 1, 2 ORDER BY 1, 2",  # noqa: S608
        tuple[Status, str | None, Natural],
        scope.values,
    )


def read_status(book: CheckedReader) -> RunStatus:
    """Read it all in one snapshot."""
    with book.transaction():
        plan = read_plan(book) or RunPlan(name="", fingerprint="", scenarios=0, replicates=1, asked=0)
        sums: dict[Status, Counter[str]] = {status: Counter() for status in Status}
        for status, reason, count in count_outcomes(book, plan.scope):
            sums[status][reason or "unknown"] += count
        totals = book.one(
            f"SELECT {total('made')}, {total('retried')}, SUM(cost_usd), {', '.join(map(total, _TOKENS))} FROM sessions",  # noqa: S608
            tuple[Natural, Natural, Amount | None, Natural, Natural, Natural, Natural],
        )
        last = book.row(
            "SELECT replayed, state, message, 'process ' || pid || ' on ' || host "
            "FROM sessions ORDER BY id DESC LIMIT 1",
            tuple[Natural, str, str | None, str],
        ) or (0, "stopped", None, "")
    made, retried, cost_usd, *tokens = totals
    counts = Counts(*tokens, made=made, replayed=last[0], retried=retried, cost_usd=cost_usd)
    rejected, failed = dict(sums[Status.REJECTED]), dict(sums[Status.FAILED])
    return RunStatus(plan, sums[Status.ACCEPTED].total(), rejected, failed, counts, *last[1:])


def read_plan(book: CheckedReader) -> RunPlan | None:
    """What the run is to make; None where that was not noted yet."""
    plan = decode_fact(read_fact(book, "plan"), RunPlan, book.path, "its plan")
    if plan is not None and plan.first > plan.scenarios:
        raise damaged_error(book.path, "its plan ends before it begins")
    return plan


def read_fact(book: CheckedReader, name: str) -> str | None:
    """A fact about the run, None where it was not noted yet."""
    row = book.row("SELECT value FROM meta WHERE name = ?", tuple[str], (name,))
    return None if row is None else row[0]


def read_facts(book: CheckedReader) -> dict[str, str]:
    """All facts about the run, by their names."""
    return dict(book.rows("SELECT name, value FROM meta", tuple[str, str]))


def sum_charges(book: CheckedReader, price: Callable[[int, int], float]) -> tuple[int, float]:
    """(tokens, US dollars) used by all sessions, what is out included; `price` values replies that were stored
    without a cost."""
    tokens, cost, prompt, completion = book.one(
        f"SELECT {total('charged_tokens')}, {total_pico('cost_usd')}, "  # noqa: S608 - ours
        f"{total('CASE WHEN cost_usd IS NULL THEN prompt_tokens END')}, "
        f"{total('CASE WHEN cost_usd IS NULL THEN IFNULL(completion_tokens, charged_tokens) END')} "
        "FROM replies",
        tuple[Natural, Natural, Natural, Natural],
    )
    for more_tokens, more_pico in (sum_lost(book), sum_out(book)):
        tokens, cost = tokens + more_tokens, cost + more_pico
    return tokens, cost / PICO + price(prompt, completion)


def sum_lost(book: CheckedReader) -> tuple[int, int]:
    """(tokens, picodollars) that are charged to the run for calls without a kept answer that may have been worked on
    all the same, at the most they can have taken."""
    sql = f"SELECT {total('lost_tokens')}, {total_pico('lost_usd')} FROM sessions"  # noqa: S608 - ours
    return book.one(sql, tuple[Natural, Natural])


def sum_out(book: CheckedReader) -> tuple[int, int]:
    """(tokens, picodollars) that are set aside for what is out, at the most it can take: calls under way (a dead
    process' calls are still noted so), batches that were sent, request files that are to be sent."""
    sql = f"SELECT {total('tokens')}, {total_pico('usd')} FROM outstanding"  # noqa: S608 - ours
    return book.one(sql, tuple[Natural, Natural])
