"""Status of a run by its ledger: outcome counts, calls, tokens, cost, batches.

At every moment, planned = accepted + rejected + failed + pending.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from edgen.core.values import Status, Usage
from edgen.store.ledger.checked_reader import Amount, CheckedReader, Moment, Natural
from edgen.store.ledger.facts import LOST, PLAN, read_fact
from edgen.store.ledger.opening import decode_fact
from edgen.store.ledger.problems import make_damaged_error
from edgen.store.ledger.schema import PICO, SCENARIOS

_Scenario = Annotated[int, msgspec.Meta(ge=0, le=SCENARIOS)]
_Count = Annotated[int, msgspec.Meta(ge=0, lt=2**62)]


class Scope(msgspec.Struct, frozen=True):
    """The outcomes made under `fingerprint`, of scenarios from `first` to below `end`, by tasks numbered
    below `replicates`, or by any task if that is 0."""

    fingerprint: str
    end: int
    replicates: int = 0
    first: int = 0

    @property
    def values(self) -> dict[str, Any]:
        """The parameters of IN_SCOPE."""
        return msgspec.structs.asdict(self)


# SQL condition of outcomes in a scope.
IN_SCOPE = (
    "fingerprint = :fingerprint AND scenario >= :first AND scenario < :end "
    "AND (:replicates = 0 OR task < :replicates)"
)


class TokenCounts(msgspec.Struct):
    """Sums of usages by kind."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    def add(self, used: Usage | TokenCounts) -> None:
        """Add the usage of one or several answers."""
        self.prompt_tokens += used.prompt_tokens
        self.completion_tokens += used.completion_tokens
        self.cache_read_tokens += used.cache_read_tokens
        self.cache_write_tokens += used.cache_write_tokens


_TOKENS = TokenCounts.__struct_fields__  # also the names of the columns


class LedgerCounts(TokenCounts, kw_only=True):
    """Counts of one session. `retried` counts network attempts beyond a call's first."""

    made: int = 0
    replayed: int = 0
    retried: int = 0
    cost_usd: float | None = None


class LedgerSession(NamedTuple):
    """A session as stored. Times are seconds since the epoch."""

    started_at: Moment  # begin of the session
    ended_at: Moment | None  # end of the session; None if none was stored
    pid: Natural  # process id
    host: str  # name of the machine
    edgen: str  # version of edgen
    made: Natural  # answered calls
    replayed: Natural  # answers taken from the ledger
    retried: Natural  # network attempts beyond a call's first
    prompt_tokens: Natural  # tokens of its prompts
    completion_tokens: Natural  # tokens of its answers
    cache_read_tokens: Natural  # part of the prompt tokens
    cache_write_tokens: Natural  # part of the prompt tokens
    cost_usd: Amount | None  # US dollars; None without a price
    state: str  # state at its end, or running
    message: str | None  # the reason of its end
    lost_tokens: Natural  # charged for calls without a stored reply
    lost_usd: Amount  # US dollars charged for calls without a stored reply


class RunPlan(msgspec.Struct, frozen=True):
    """The plan of a run, stored in the ledger as the fact `plan`."""

    name: str  # name of the run
    fingerprint: str  # digest of everything that shapes the answers
    scenarios: _Scenario  # one more than the index of its last scenario
    replicates: _Count  # numbered tasks of a scenario; 0: any task, numbered or not
    asked: _Count  # requested number of results
    planned: _Count | None = None  # planned number, if it differs from scenarios times replicates
    first: _Scenario = 0  # index of its first scenario
    of: _Scenario | None = None  # the whole job's `scenarios`, for a piece of the job; None: not a piece
    rounds: _Count = 1  # number of successive rounds

    @property
    def scope(self) -> Scope:
        return Scope(self.fingerprint, self.scenarios, self.replicates, self.first)


class RunStatus(msgspec.Struct, frozen=True):
    """Counts of conversations by outcome, and of calls over all sessions of a run."""

    plan: RunPlan  # plan of the run
    accepted: int  # accepted conversations
    rejected: dict[str, int]  # number of rejected conversations by reason
    failed: dict[str, int]  # number of failed conversations by reason
    counts: LedgerCounts  # calls of all sessions; `replayed` is the last session's
    session_state: str  # the last session's end state; "running" if none was stored
    message: str | None  # the last session's process
    process: str = ""  # the last session's message
    session: int = 0  # number of the last session
    ended_at: float | None = None  # end or last sign of life of the last session; seconds since the epoch

    @property
    def planned(self) -> int:
        if self.plan.planned is not None:
            return self.plan.planned
        return (self.plan.scenarios - self.plan.first) * self.plan.replicates

    @property
    def pending(self) -> int:
        return self.planned - self.accepted - sum(self.rejected.values()) - sum(self.failed.values())

    def find_state(self, *, held: bool) -> str:
        """Return complete, short, running or stopped. `held`: a live process has the run's lock."""
        if held:
            return "running"
        # A killed session stored no end. At least its files are not written.
        if self.pending > 0 or self.session_state not in ("complete", "short"):
            return "stopped"
        return "complete" if self.accepted >= self.plan.asked else "short"

    def describe_last_end(self, *, held: bool) -> str | None:
        """Return the end state of the last session, for a run that is not complete."""
        if self.find_state(held=held) not in ("stopped", "short"):
            return None
        if self.session_state == "running":
            return f"{self.process} was killed or crashed, or its disk was full"
        return self.message


def read_sessions(reader: CheckedReader) -> list[LedgerSession]:
    """Return every session in order."""
    return reader.read_rows(
        f"SELECT {', '.join(LedgerSession._fields)} FROM sessions ORDER BY id",  # noqa: S608 - ours
        LedgerSession,
    )


def count_outcomes(reader: CheckedReader, scope: Scope) -> list[tuple[Status, str | None, int]]:
    """Return the number of outcomes of a scope by (status, reason)."""
    return reader.read_derived(
        f"SELECT status, reason, COUNT(*) FROM outcomes WHERE {IN_SCOPE} GROUP BY 1, 2 ORDER BY 1, 2",  # noqa: S608
        tuple[Status, str | None, Natural],
        scope.values,
    )


def read_status(reader: CheckedReader) -> RunStatus:
    """Read the status in one snapshot."""
    with reader.run_transaction():
        plan = read_plan(reader) or RunPlan(name="", fingerprint="", scenarios=0, replicates=1, asked=0)
        sums: dict[Status, Counter[str]] = {status: Counter() for status in Status}
        for status, reason, count in count_outcomes(reader, plan.scope):
            sums[status][reason or "unknown"] += count
        totals = reader.require_row(
            f"SELECT {sum_column('made')}, {sum_column('retried')}, SUM(cost_usd), {', '.join(map(sum_column, _TOKENS))} "  # noqa: S608
            "FROM sessions",
            tuple[Natural, Natural, Amount | None, Natural, Natural, Natural, Natural],
        )
        last = reader.read_row(
            "SELECT replayed, state, message, 'process ' || pid || ' on ' || host, id, "
            "COALESCE(ended_at, (SELECT MAX(answered_at, started_at) FROM replies ORDER BY rowid DESC LIMIT "
            "1), started_at) FROM sessions ORDER BY id DESC LIMIT 1",
            tuple[Natural, str, str | None, str, Natural, Moment],
        ) or (0, "stopped", None, "", 0, None)
    made, retried, cost_usd, *tokens = totals
    counts = LedgerCounts(*tokens, made=made, replayed=last[0], retried=retried, cost_usd=cost_usd)
    rejected, failed = dict(sums[Status.REJECTED]), dict(sums[Status.FAILED])
    return RunStatus(plan, sums[Status.ACCEPTED].total(), rejected, failed, counts, *last[1:])


def read_plan(reader: CheckedReader) -> RunPlan | None:
    """Return the run's plan; None if it is not stored yet."""
    plan = decode_fact(read_fact(reader, PLAN), RunPlan, reader.path, "its plan")
    if plan is not None and plan.first > plan.scenarios:
        raise make_damaged_error(reader.path, "its plan ends before it begins")
    return plan


def read_lost(reader: CheckedReader) -> int:
    """Return the number of lost replies, as of the last session."""
    noted = read_fact(reader, LOST)
    return int(noted) if noted is not None and noted.isdecimal() and len(noted) < 19 else 0


def sum_charges(reader: CheckedReader, price: Callable[[int, int], float]) -> tuple[int, float]:
    """Return (tokens, US dollars) used by all sessions, including outstanding calls. `price` values replies
    stored without a cost."""
    tokens, cost, prompt, completion = reader.require_row(
        f"SELECT {sum_column('charged_tokens')}, {sum_pico_column('cost_usd')}, "  # noqa: S608 - ours
        f"{sum_column('CASE WHEN cost_usd IS NULL THEN prompt_tokens END')}, "
        f"{sum_column('CASE WHEN cost_usd IS NULL THEN IFNULL(completion_tokens, charged_tokens) END')} "
        "FROM replies",
        tuple[Natural, Natural, Natural, Natural],
    )
    for more_tokens, more_pico in (sum_lost(reader), sum_out(reader)):
        tokens, cost = tokens + more_tokens, cost + more_pico
    return tokens, cost / PICO + price(prompt, completion)


def sum_lost(reader: CheckedReader) -> tuple[int, int]:
    """Return (tokens, picodollars) charged for calls without a stored answer, at their maximum, since the
    service may have worked on them."""
    sql = f"SELECT {sum_column('lost_tokens')}, {sum_pico_column('lost_usd')} FROM sessions"  # noqa: S608 - ours
    return reader.require_row(sql, tuple[Natural, Natural])


def sum_out(reader: CheckedReader) -> tuple[int, int]:
    """Return (tokens, picodollars) reserved for outstanding work, at its maximum: calls under way (including
    those of a dead process), sent batches, and request files that are not yet sent."""
    sql = f"SELECT {sum_column('tokens')}, {sum_pico_column('usd')} FROM outstanding"  # noqa: S608 - ours
    return reader.require_row(sql, tuple[Natural, Natural])


State = Literal[
    "preparing",  # its requests are being collected; after a kill it is ignored
    "ready",  # its file is complete
    "sending",  # its file is uploaded, and the provider may have been asked to create it
    "sent",  # the provider's id is known
    "cancelling",  # the provider was asked to cancel it
    "written",  # the user sends its file (--write-only)
    "read",  # it ended, and its replies are stored
    "dropped",  # it failed: refused as a whole, gone at the provider, or given up
]
OPEN: tuple[State, ...] = ("ready", "sending", "sent", "cancelling", "written")


class NotedBatch(msgspec.Struct, frozen=True, kw_only=True, array_like=True, rename={"number": "id"}):
    """A batch and its state. Times are seconds since the epoch."""

    number: Natural  # its id in the ledger, from 1
    state: State  # its last stored state
    fingerprint: str  # fingerprint of the job that made it
    backend: str  # the backend's name in the job
    token: str  # identifies it at the provider
    round: Natural  # the run's round
    requests: Natural = 0  # number of requests
    file: str = ""  # path of its requests, in the run's folder or the user's
    file_id: str | None = None  # the provider's id of the uploaded file; None before the upload
    remote_id: str | None = None  # the provider's id of the batch; None before it is created
    made_at: Moment  # creation of the file
    sent_at: Moment | None = None  # sending of the file; None before
    message: str | None = None  # message of the provider, or the reason of its failure


_BATCHES = f"SELECT {', '.join(NotedBatch.__struct_encode_fields__)} FROM batches ORDER BY id"  # noqa: S608 - ours


def read_batches(reader: CheckedReader, *states: State) -> list[NotedBatch]:
    """Return the batches in one of these states, or all, in order of creation."""
    return [batch for batch in reader.read_rows(_BATCHES, NotedBatch) if not states or batch.state in states]


def sum_column(column: str) -> str:
    """Return SQL for the sum of a column of whole numbers, exact up to 2**53; unlike SUM, it never
    overflows."""
    return f"IFNULL(CAST(TOTAL({column}) AS INTEGER), 0)"


def sum_pico_column(column: str) -> str:
    """Return SQL for the sum of a column of US dollars, in whole picodollars as in the budget, so sums are
    order-independent."""
    return sum_column(f"ROUND({column} * {PICO:g})")
