"""Status of a run from its ledgers: the values that `edgen status --json` prints.

Keys that do not apply are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, cast

import msgspec
from msgspec import UNSET, UnsetType

from edgen.config import load_kept_job
from edgen.core.errors import EdgenError, ShortError
from edgen.core.text import describe_counts
from edgen.execution.progress import Amount, CallCounts, Tokens, UsageCounts, add_amounts, add_usage
from edgen.protocols.reasons import REASONS, explain_own_reasons
from edgen.runtime.budget_status import BudgetStatus
from edgen.store.ledger import OPEN, LedgerSummary, NotedBatch, count_outstanding_at, read_summary
from edgen.store.ledger.facts import (
    END,
    RETRIES,
    SERVERS,
    TIMEOUTS,
    WORKERS,
    ServerCounts,
    WorkerCounts,
    add_servers,
    count_ended_rounds,
)
from edgen.store.run_folder import RunFolder

State = Literal["complete", "short", "running", "stopped"]


class ScenarioRange(msgspec.Struct, frozen=True):
    """The scenarios of a piece of a job: `first` up to, but without, `end`."""

    first: int
    end: int
    of: int


class RoundStatus(msgspec.Struct, frozen=True):
    """The present round of a run, from 1, and the number of rounds."""

    number: int
    of: int


class OpenBatch(msgspec.Struct, frozen=True):
    """A batch that the provider has not finished."""

    number: int  # in its ledger, from 1
    state: str  # last recorded state
    backend: str  # its name in the job
    id: str | None  # the provider's; None before it is created
    requests: int  # number of requests
    sent_at: str | None  # ISO 8601, UTC; None before it is sent


class Stopped(msgspec.Struct, frozen=True):
    """The reason why the last start ended early.

    `reason`: one word, useless, budget, deadline, interrupted, killed, refused, failures, short, bug, or
    another error's; `at`: the time, ISO 8601, UTC.
    """

    reason: str
    detail: str
    at: str


class TasksStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Status of the tasks of an asker's ledger."""

    done: ClassVar[str]  # the key for the number of answered tasks
    parts: ClassVar[dict[str, int]]  # position of each name in the ledger's path without suffix

    planned: int  # tasks
    rejected: dict[str, int]  # rejected tasks by reason
    failed: dict[str, int]  # failed tasks by reason
    pending: int  # tasks without an outcome
    calls: CallCounts  # over all sessions
    tokens: Tokens  # over all sessions
    cost_usd: float | None  # US dollars; None without a price
    out: Amount | UnsetType = UNSET  # reserved for outstanding calls
    unanswered: Amount | UnsetType = UNSET  # charged for calls without a kept answer
    lost_replies: int | UnsetType = UNSET  # replies that were stored once and are missing from the ledger
    retried: dict[str, int] | UnsetType = UNSET  # calls by reason
    timeouts: int | UnsetType = UNSET  # attempts without an answer in time
    stopped: Stopped | UnsetType = UNSET  # why the last start ended early
    batches: tuple[OpenBatch, ...] | UnsetType = UNSET  # open batches

    @classmethod
    def read_from(cls, ledger: Path) -> Self:
        """Return the status of the tasks of this ledger."""
        status = _read_ledger_status(str(ledger.parent), ledger, held=False)
        facts: dict[str, Any] = {key: getattr(status, key) for key in TasksStatus.__struct_fields__}
        path = ledger.with_suffix("").parts
        facts |= {key: path[part] for key, part in cls.parts.items()}
        return cls(**{**facts, cls.done: status.accepted})

    def require_answers(self, what: str) -> None:
        """Raise ShortError if tasks have no answer. `what`: a plural for the tasks."""
        if failed := sum(self.failed.values()) + self.pending:
            raise ShortError(
                f"{failed} of {self.planned:,} {what} got no answer ({describe_counts(self.failed)}). "
                "Run the same command again to retry them."
            )


class JudgeStatus(TasksStatus, frozen=True, kw_only=True):
    """Status of the pairs of one judge."""

    done = "judged"
    parts = {"judge": -1}

    judge: str
    judged: int


class RolloutStatus(TasksStatus, frozen=True, kw_only=True):
    """Status of the rollouts of one run, or arm. `agents` identifies the players, in 16 hex digits."""

    done = "played"
    parts = {"agents": -1}

    agents: str
    played: int


class AnnotatorStatus(TasksStatus, frozen=True, kw_only=True):
    """Status of the labels of one annotator of a layer: `labelled` of its `planned` requests."""

    done = "labelled"
    parts = {"layer": -3, "annotator": -1}

    layer: str
    annotator: str
    labelled: int


class WriterStatus(TasksStatus, frozen=True, kw_only=True):
    """Status of the texts of one writer: turns with texts (`written`) of its `planned` turns.

    `writer` identifies the writer and the request in 16 hex digits; `writes` is the kind.
    """

    done = "written"
    parts = {"writer": -1, "writes": -2}

    writer: str
    writes: str
    written: int


class AskerStatus(TasksStatus, frozen=True, kw_only=True):
    """Status of another asker: `answered` of its `planned` units. `answerer` identifies the answering party
    and its settings in 16 hex digits."""

    done = "answered"
    parts = {"asker": -2, "answerer": -1}

    asker: str
    answerer: str
    answered: int


class StatusReport(msgspec.Struct, frozen=True, kw_only=True):
    """The status of a run. With arms: the sums, and each arm's own status under `arms`."""

    run: str  # path of the run
    state: State  # complete, short, running or stopped
    range: ScenarioRange | UnsetType = UNSET  # scenarios of a piece
    round: RoundStatus | UnsetType = UNSET  # the present round, if there are several
    planned: int  # conversations
    accepted: int  # conversations
    rejected: dict[str, int]  # conversations by reason
    failed: dict[str, int]  # conversations by reason
    reasons: dict[str, str] | UnsetType = UNSET  # clauses about reasons that the protocol declares
    pending: int  # conversations without an outcome
    calls: CallCounts  # over all sessions
    tokens: Tokens  # over all sessions
    cost_usd: float | None  # US dollars; None without a price
    out: Amount | UnsetType = UNSET  # reserved for outstanding calls
    unanswered: Amount | UnsetType = UNSET  # charged for calls without a kept answer
    budget: BudgetStatus | UnsetType = UNSET  # budget shared with other runs
    lost_replies: int | UnsetType = UNSET  # replies that were stored once and are missing from the ledger
    retried: dict[str, int] | UnsetType = UNSET  # calls by reason
    timeouts: int | UnsetType = UNSET  # attempts without an answer in time
    servers: dict[str, ServerCounts] | UnsetType = UNSET  # calls to each of a backend's several servers
    workers: dict[str, WorkerCounts] | UnsetType = UNSET  # workers of the last start on a cluster
    stopped: Stopped | UnsetType = UNSET  # why the last start ended early
    last: str | UnsetType = UNSET  # how the last session ended, if the run is not complete
    batches: tuple[OpenBatch, ...] | UnsetType = UNSET  # open batches
    arms: dict[str, StatusReport | None] | UnsetType = UNSET  # by name; None for an arm that has not begun
    judges: tuple[JudgeStatus, ...] | UnsetType = UNSET  # judges of its pairs
    rollouts: tuple[RolloutStatus, ...] | UnsetType = UNSET  # rollouts that labels of its pairs depend on
    annotators: tuple[AnnotatorStatus, ...] | UnsetType = UNSET  # annotators of its layers
    layers: tuple[str, ...] | UnsetType = UNSET  # names of layers with labels
    writers: tuple[WriterStatus, ...] | UnsetType = UNSET  # writers of its candidates
    asked: tuple[AskerStatus, ...] | UnsetType = UNSET  # status of other askers

    def begun_arms(self) -> dict[str, StatusReport]:
        """Return the arms that have begun, by name; empty for a run without arms."""
        return {name: arm for name, arm in (self.arms or {}).items() if arm is not None}

    def with_calls_now(self, made: dict[str, int]) -> StatusReport:
        """Return the status with the calls of this start, by arm, in addition to those of all starts."""
        arms = self.arms
        if arms is not UNSET:
            arms = {name: arm and arm.with_calls_now({"": made.get(name, 0)}) for name, arm in arms.items()}
        calls = msgspec.structs.replace(self.calls, now=sum(made.values()))
        return msgspec.structs.replace(self, arms=arms, calls=calls)


def _list_layers(rundir: RunFolder) -> tuple[str, ...]:
    if not rundir.has_layers:
        return ()
    from edgen.store.layers import list_layer_names

    return tuple(list_layer_names(rundir))


def read_run_status(rundir: RunFolder, *, held: bool = False) -> StatusReport:
    """Return the status of a run. `held`: True if a live process works on it."""
    status = _run_status(rundir, held=held)
    asked = {
        key: tuple(map(kind.read_from, find_ledgers(rundir))) or UNSET
        for key, (kind, find_ledgers) in _ASKERS.items()
    }
    return msgspec.structs.replace(
        status,
        layers=_list_layers(rundir) or UNSET,
        reasons=_explain_reasons(rundir, status) or UNSET,
        **asked,
    )


def _explain_reasons(rundir: RunFolder, status: StatusReport) -> dict[str, str]:
    """Return clauses that explain the rejections of a run by reasons that its protocol declares."""
    if {code.partition(":")[0] for code in status.rejected} <= REASONS.keys():
        return {}
    try:
        job = load_kept_job(rundir.job)
    except EdgenError:  # a run without a readable job still has a status
        return {}
    return explain_own_reasons(status.rejected, job.protocol)


_ASKERS: dict[str, tuple[type[TasksStatus], Callable[[RunFolder], list[Path]]]] = {
    "judges": (JudgeStatus, RunFolder.judge_ledgers),
    "rollouts": (RolloutStatus, RunFolder.rollout_ledgers),
    "annotators": (AnnotatorStatus, RunFolder.annotator_ledgers),
    "writers": (WriterStatus, RunFolder.writer_ledgers),
    "asked": (AskerStatus, RunFolder.list_asker_ledgers),
}  # each asker's status and ledgers, by key of the status of a run


def read_partitions_status(rundir: RunFolder) -> StatusReport | None:
    """Return the sums over the partitions that have begun, before they are merged; None without any."""
    parts = [run for run in rundir.partitions() if run.ledger.exists()]
    if not parts:
        return None
    held = any(run.is_locked() for run in parts)
    each = [_read_ledger_status(str(run.path), run.ledger, held=run.is_locked()) for run in parts]
    state: State = "running" if held else "stopped"
    status = msgspec.structs.replace(_add_up(each), run=str(rundir.path), state=state)
    stops = [(one.stopped, one.last) for one in each if one.stopped is not UNSET]
    if held or not stops:
        return status
    stopped, last = min(stops, key=lambda stop: stop[0].reason == "interrupted")  # by the first to stop
    return msgspec.structs.replace(status, stopped=stopped, last=last)


def _run_status(rundir: RunFolder, *, held: bool) -> StatusReport:
    arms = dict(rundir.arms())
    if "" in arms:
        return _read_ledger_status(str(rundir.path), rundir.ledger, held=held)
    each: dict[str, StatusReport | None] = dict.fromkeys(arms)
    for name, arm in rundir.list_begun_arms():
        each[name] = _read_ledger_status(str(arm.path), arm.ledger, held=held and arm.is_locked())
    begun_arms = [status for status in each.values() if status is not None]
    states = {"stopped" if status is None else status.state for status in each.values()}
    state: State = "stopped" if "stopped" in states else "short" if "short" in states else "complete"
    ranges = {status.range for status in begun_arms}
    return msgspec.structs.replace(
        _add_up(begun_arms),
        run=str(rundir.path),
        state="running" if held else state,
        range=ranges.pop() if len(ranges) == 1 else UNSET,
        stopped=UNSET if held else _find_last_stop(each),
        arms=each,
    )


def _read_ledger_status(run: str, ledger: Path, *, held: bool) -> StatusReport:
    """Return the status that one ledger of a run gives."""
    kept = read_summary(ledger)
    status, plan, usage = kept.status, kept.status.plan, UsageCounts.of(kept.status.counts)
    return StatusReport(
        run=run,
        state=cast(State, status.find_state(held=held)),
        range=UNSET if plan.of is None else ScenarioRange(plan.first, plan.scenarios, plan.of),
        round=_find_round(kept, ledger),
        planned=status.planned,
        accepted=status.accepted,
        rejected=status.rejected,
        failed=status.failed,
        pending=status.pending,
        **msgspec.structs.asdict(usage),
        out=Amount.of(*kept.out) if any(kept.out) else UNSET,
        unanswered=Amount.of(*kept.unanswered) if any(kept.unanswered) else UNSET,
        lost_replies=kept.lost_replies or UNSET,
        retried=RETRIES.read(kept.facts.get, ledger) or UNSET,
        timeouts=TIMEOUTS.read(kept.facts.get, ledger) or UNSET,
        servers=SERVERS.read(kept.facts.get, ledger) or UNSET,
        workers=WORKERS.read(kept.facts.get, ledger) or UNSET,
        stopped=_find_stop_reason(kept, ledger, held=held),
        last=status.describe_last_end(held=held) or UNSET,
        batches=tuple(_open_batch(batch, ledger) for batch in kept.batches if batch.state in OPEN) or UNSET,
    )


def _find_stop_reason(kept: LedgerSummary, ledger: Path, *, held: bool) -> Stopped | UnsetType:
    """Return why the last session ended early; UNSET during work, or if nothing is missing."""
    status = kept.status
    detail = status.describe_last_end(held=held)
    if detail is None or status.ended_at is None:
        return UNSET
    end = END.read(kept.facts.get, ledger)  # missing after a kill, or an earlier session's
    reason = end.reason if end is not None and end.session == status.session else None
    reason = reason or status.find_state(held=held)
    if status.session_state == "running":
        reason = "killed"
    return Stopped(reason, detail, _format_iso(status.ended_at))


def _format_iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _find_last_stop(arms: dict[str, StatusReport | None]) -> Stopped | UnsetType:
    """Return why the arm with the last session stopped, with the arm's name."""
    stops = [
        (name, arm.stopped) for name, arm in arms.items() if arm is not None and arm.stopped is not UNSET
    ]
    if not stops:
        return UNSET
    name, last = max(stops, key=lambda stop: stop[1].at)
    return msgspec.structs.replace(last, detail=f"{name}: {last.detail}")


def _find_round(kept: LedgerSummary, ledger: Path) -> RoundStatus | UnsetType:
    plan = kept.status.plan
    if plan.rounds == 1:
        return UNSET
    ended = count_ended_rounds(kept.facts, plan.fingerprint, ledger)
    return RoundStatus(min(ended + 1, plan.rounds), plan.rounds)


def _open_batch(batch: NotedBatch, ledger: Path) -> OpenBatch:
    requests, sent_at = count_outstanding_at(ledger, batch.number), None
    if batch.sent_at is not None:
        sent_at = _format_iso(batch.sent_at)
    return OpenBatch(batch.number, batch.state, batch.backend, batch.remote_id, requests, sent_at)


def _add_up(arms: list[StatusReport]) -> StatusReport:
    """Return the sums over the arms."""
    usage = add_usage(arms)
    return StatusReport(
        run="",
        state="complete",
        planned=sum(arm.planned for arm in arms),
        accepted=sum(arm.accepted for arm in arms),
        rejected=dict(sum((Counter(arm.rejected) for arm in arms), Counter[str]())),
        failed=dict(sum((Counter(arm.failed) for arm in arms), Counter[str]())),
        pending=sum(arm.pending for arm in arms),
        **msgspec.structs.asdict(usage),
        out=add_amounts([arm.out for arm in arms if arm.out is not UNSET]),
        unanswered=add_amounts([arm.unanswered for arm in arms if arm.unanswered is not UNSET]),
        lost_replies=sum(arm.lost_replies or 0 for arm in arms) or UNSET,
        retried=dict(sum((Counter(arm.retried or {}) for arm in arms), Counter[str]())) or UNSET,
        timeouts=sum(arm.timeouts or 0 for arm in arms) or UNSET,
        servers=add_servers(*(arm.servers or {} for arm in arms)) or UNSET,
        workers={name: one for arm in arms for name, one in (arm.workers or {}).items()} or UNSET,
    )


def list_last_messages(status: StatusReport) -> list[str]:
    """Return the last messages of sessions of an incomplete run and of its arms."""
    own = [status.last] if status.last is not UNSET else []
    arms = status.begun_arms().items()
    return own + [f"{name}: {text}" for name, arm in arms for text in list_last_messages(arm)]
