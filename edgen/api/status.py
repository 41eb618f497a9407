"""How a run stands: the values that `edgen status --json` prints. A key that does not apply is
left out."""

from __future__ import annotations

import contextlib
import functools
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, cast

import msgspec
from msgspec import UNSET, UnsetType

from edgen.core.errors import RunError, ShortError
from edgen.core.figures import describe_counts
from edgen.store.layers import layer_names
from edgen.store.ledger import OPEN, Batch, Counts, LedgerSummary, TokenCounts, out_at, summary_at
from edgen.store.ledger.rounds import ended_rounds
from edgen.store.run_folder import RunFolder

State = Literal["complete", "short", "running", "stopped"]
_FOLLOW_EVERY = 1.0  # seconds between two looks


class Calls(msgspec.Struct, frozen=True):
    """Calls of all starts; `replayed` of the last; `now`, of the start that ends, where one does."""

    made: int
    replayed: int
    retried: int
    now: int | UnsetType = UNSET


class Tokens(msgspec.Struct, frozen=True, omit_defaults=True):
    """`cache_read` and `cache_write`: those of the prompt's that were read from a service's prompt cache, and written to
    it; left out where there are none."""

    prompt: int
    completion: int
    cache_read: int = 0
    cache_write: int = 0

    @classmethod
    def of(cls, counts: TokenCounts) -> Tokens:
        """What was counted, kind by kind."""
        return cls(
            counts.prompt_tokens,
            counts.completion_tokens,
            counts.cache_read_tokens,
            counts.cache_write_tokens,
        )

    def plus(self, other: Tokens) -> Tokens:
        """Both together."""
        pairs = zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)
        return Tokens(*map(sum, pairs))


class Usage(msgspec.Struct, frozen=True):
    """`cost_usd` is None while no backend has a price."""

    calls: Calls
    tokens: Tokens
    cost_usd: float | None

    @classmethod
    def of(cls, counts: Counts) -> Usage:
        """What a ledger or a running session has counted."""
        calls = Calls(counts.made, counts.replayed, counts.retried)
        return cls(calls, Tokens.of(counts), counts.cost_usd)


class Amount(msgspec.Struct, frozen=True):
    """Tokens and US dollars at most."""

    tokens: int
    cost_usd: float


class ScenarioRange(msgspec.Struct, frozen=True):
    """Which scenarios of its job a piece has, half open."""

    first: int
    end: int
    of: int


class RoundStatus(msgspec.Struct, frozen=True):
    """Which round a run is at, from 1, of how many."""

    number: int
    of: int


class OpenBatch(msgspec.Struct, frozen=True):
    """A provider's batch that is out."""

    number: int
    state: str
    backend: str
    id: str | None
    requests: int
    sent_at: str | None


class TasksStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How the tasks of a ledger beside the run's own stand."""

    planned: int
    rejected: dict[str, int]
    failed: dict[str, int]
    pending: int
    calls: Calls
    tokens: Tokens
    cost_usd: float | None
    out: Amount | UnsetType = UNSET
    unanswered: Amount | UnsetType = UNSET
    batches: tuple[OpenBatch, ...] | UnsetType = UNSET

    def require_answers(self, what: str) -> None:
        """Raise ShortError where some of them got no answer; `what` they are."""
        if failed := sum(self.failed.values()) + self.pending:
            raise ShortError(
                f"{failed} of {self.planned} {what} got no answer ({describe_counts(self.failed)}). "
                "They are asked again when the same command is run again."
            )


class JudgeStatus(TasksStatus, frozen=True, kw_only=True):
    """How the pairs of one judge stand."""

    judge: str
    judged: int


class RolloutStatus(TasksStatus, frozen=True, kw_only=True):
    """How the rollouts of one run, or arm, stand. `agents` names who plays, in 16 hex digits."""

    agents: str
    played: int


class AnnotatorStatus(TasksStatus, frozen=True, kw_only=True):
    """How the labels of one annotator of a layer stand: `labelled` of its `planned` requests."""

    layer: str
    annotator: str
    labelled: int


class WriterStatus(TasksStatus, frozen=True, kw_only=True):
    """How the texts of one writer stand: those for `written` of its `planned` turns. `writer` names in 16 hex digits who writes and
    what is asked for; `writes` is the kind."""

    writer: str
    writes: str
    written: int


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """Of a run with arms the sums, and each arm's own under `arms`, None for one that was not begun.

    `range`: the scenarios of a piece; `round`: where a run is that is made in several; `out`: what is set aside for what is out; `unanswered`: what is charged for calls
    without a kept answer; `last`: what the last session of a run that is not complete ended with; `judges`: how each
    judge of its pairs stands; `rollouts`: how those stand that labels of its pairs rest on; `annotators`: how
    those of its layers stand; `layers`: those that have labels; `writers`: how those of its candidates stand.
    """

    run: str
    state: State
    range: ScenarioRange | UnsetType = UNSET
    round: RoundStatus | UnsetType = UNSET
    planned: int
    accepted: int
    rejected: dict[str, int]
    failed: dict[str, int]
    pending: int
    calls: Calls
    tokens: Tokens
    cost_usd: float | None
    out: Amount | UnsetType = UNSET
    unanswered: Amount | UnsetType = UNSET
    last: str | UnsetType = UNSET
    batches: tuple[OpenBatch, ...] | UnsetType = UNSET
    arms: dict[str, Status | None] | UnsetType = UNSET
    judges: tuple[JudgeStatus, ...] | UnsetType = UNSET
    rollouts: tuple[RolloutStatus, ...] | UnsetType = UNSET
    annotators: tuple[AnnotatorStatus, ...] | UnsetType = UNSET
    layers: tuple[str, ...] | UnsetType = UNSET
    writers: tuple[WriterStatus, ...] | UnsetType = UNSET

    def begun_arms(self) -> dict[str, Status]:
        """The arms that were begun, by name; none where the run has no arms."""
        return {name: arm for name, arm in (self.arms or {}).items() if arm is not None}

    def with_calls_now(self, made: dict[str, int]) -> Status:
        """With the calls that this start made, by arm, beside those of all starts."""
        arms = self.arms
        if arms is not UNSET:
            arms = {name: arm and arm.with_calls_now({"": made.get(name, 0)}) for name, arm in arms.items()}
        calls = msgspec.structs.replace(self.calls, now=sum(made.values()))
        return msgspec.structs.replace(self, arms=arms, calls=calls)


def read_status(folder: Path) -> Status:
    """How the run in a folder stands. Raises RunError where there is none, or one that cannot be read."""
    rundir = RunFolder(folder)
    rundir.refuse_links()
    if not rundir.exists:  # a ledger alone is a run that was killed before its job was noted
        rundir.require()
    return status_of(rundir, held=rundir.is_locked())


def status_of(rundir: RunFolder, *, held: bool = False) -> Status:
    """How a run stands; `held`: a live process works on it."""
    status = _run_status(rundir, held=held)
    judges = tuple(judge_status(ledger) for ledger in rundir.judge_ledgers())
    rollouts = tuple(rollout_status(ledger) for ledger in rundir.rollout_ledgers())
    annotators = tuple(annotator_status(ledger) for ledger in rundir.annotator_ledgers())
    writers = tuple(writer_status(ledger) for ledger in rundir.writer_ledgers())
    return msgspec.structs.replace(
        status,
        judges=judges or UNSET,
        rollouts=rollouts or UNSET,
        annotators=annotators or UNSET,
        layers=tuple(layer_names(rundir)) or UNSET,
        writers=writers or UNSET,
    )


def judge_status(ledger: Path) -> JudgeStatus:
    """How the judge of this ledger stands."""
    status, facts = _facts_at(ledger)
    return JudgeStatus(judge=ledger.stem, judged=status.accepted, **facts)


def rollout_status(ledger: Path) -> RolloutStatus:
    """How the rollouts of this ledger stand."""
    status, facts = _facts_at(ledger)
    return RolloutStatus(agents=ledger.stem, played=status.accepted, **facts)


def annotator_status(ledger: Path) -> AnnotatorStatus:
    """How the annotator of this ledger stands."""
    status, facts = _facts_at(ledger)
    return AnnotatorStatus(
        layer=ledger.parent.parent.name, annotator=ledger.stem, labelled=status.accepted, **facts
    )


def writer_status(ledger: Path) -> WriterStatus:
    """How the writer of this ledger stands."""
    status, facts = _facts_at(ledger)
    return WriterStatus(writer=ledger.stem, writes=ledger.parent.name, written=status.accepted, **facts)


def _facts_at(ledger: Path) -> tuple[Status, dict[str, Any]]:
    """How a ledger stands, and what of that a status of its tasks has."""
    status = _ledger_status(str(ledger.parent), ledger, held=False)
    return status, {key: getattr(status, key) for key in TasksStatus.__struct_fields__}


def follow_status(
    folder: Path, note: Callable[[str], None], every: float = _FOLLOW_EVERY
) -> Iterator[Status]:
    """How a run stands, whenever that changes, until nobody works on it; one that was not begun is waited for.

    Raises RunError for what is no run, and where a ledger cannot be read.
    """
    rundir = RunFolder(folder)
    rundir.refuse_links()
    if not rundir.exists:
        if rundir.path.exists() and not rundir.path.is_dir():
            rundir.require()
        note(f"{rundir.path}: no run was begun here yet; waiting for one (Ctrl-C ends this).")
    before = None
    while True:
        held = rundir.is_locked()  # looked at first: what it wrote before it let go is seen below
        status = None
        if rundir.exists:
            with (
                contextlib.suppress(RunError) if held else contextlib.nullcontext()
            ):  # as its ledger is being made
                status = status_of(rundir, held=held)
        if status is not None and (status != before or not held):
            yield status
            before = status
        if status is not None and not held:
            return
        time.sleep(every)


def _run_status(rundir: RunFolder, *, held: bool) -> Status:
    arms = dict(rundir.arms())
    if "" in arms:
        return _ledger_status(str(rundir.path), rundir.ledger, held=held)
    each: dict[str, Status | None] = dict.fromkeys(arms)
    for name, arm in rundir.begun_arms():
        each[name] = _ledger_status(str(arm.path), arm.ledger, held=held and arm.is_locked())
    begun_arms = [status for status in each.values() if status is not None]
    states = {"stopped" if status is None else status.state for status in each.values()}
    state: State = "stopped" if "stopped" in states else "short" if "short" in states else "complete"
    ranges = {status.range for status in begun_arms}
    return msgspec.structs.replace(
        _add_up(begun_arms),
        run=str(rundir.path),
        state="running" if held else state,
        range=ranges.pop() if len(ranges) == 1 else UNSET,
        arms=each,
    )


def _ledger_status(run: str, ledger: Path, *, held: bool) -> Status:
    """What one ledger says of its run."""
    kept = summary_at(ledger)
    status, plan, usage = kept.status, kept.status.plan, Usage.of(kept.status.counts)
    return Status(
        run=run,
        state=cast(State, status.state(held=held)),
        range=UNSET if plan.of is None else ScenarioRange(plan.first, plan.scenarios, plan.of),
        round=_round_of(kept, ledger),
        planned=status.planned,
        accepted=status.accepted,
        rejected=status.rejected,
        failed=status.failed,
        pending=status.pending,
        **msgspec.structs.asdict(usage),
        out=Amount(*kept.out) if any(kept.out) else UNSET,
        unanswered=Amount(*kept.unanswered) if any(kept.unanswered) else UNSET,
        last=status.last(held=held) or UNSET,
        batches=tuple(_open_batch(batch, ledger) for batch in kept.batches if batch.state in OPEN) or UNSET,
    )


def _round_of(kept: LedgerSummary, ledger: Path) -> RoundStatus | UnsetType:
    plan = kept.status.plan
    if plan.rounds == 1:
        return UNSET
    ended = ended_rounds(kept.facts, plan.fingerprint, ledger)
    return RoundStatus(min(ended + 1, plan.rounds), plan.rounds)


def _open_batch(batch: Batch, ledger: Path) -> OpenBatch:
    requests, sent_at = out_at(ledger, batch.number), None
    if batch.sent_at is not None:
        sent_at = datetime.fromtimestamp(batch.sent_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return OpenBatch(batch.number, batch.state, batch.backend, batch.remote_id, requests, sent_at)


def _add_up(arms: list[Status]) -> Status:
    """The sums of what adds up."""
    usage = add_usage(arms)
    return Status(
        run="",
        state="complete",
        planned=sum(arm.planned for arm in arms),
        accepted=sum(arm.accepted for arm in arms),
        rejected=dict(sum((Counter(arm.rejected) for arm in arms), Counter[str]())),
        failed=dict(sum((Counter(arm.failed) for arm in arms), Counter[str]())),
        pending=sum(arm.pending for arm in arms),
        **msgspec.structs.asdict(usage),
        out=_add_amounts([arm.out for arm in arms if arm.out is not UNSET]),
        unanswered=_add_amounts([arm.unanswered for arm in arms if arm.unanswered is not UNSET]),
    )


def add_usage(each: Sequence[Usage | Status]) -> Usage:
    calls, tokens = [one.calls for one in each], [one.tokens for one in each]
    costs = [one.cost_usd for one in each if one.cost_usd is not None]
    return Usage(
        Calls(*(sum(getattr(one, key) for one in calls) for key in ("made", "replayed", "retried"))),
        functools.reduce(Tokens.plus, tokens, Tokens(0, 0)),
        round(sum(costs), 12) if costs else None,
    )


def _add_amounts(amounts: list[Amount]) -> Amount | UnsetType:
    if not amounts:
        return UNSET
    return Amount(sum(one.tokens for one in amounts), sum(one.cost_usd for one in amounts))


def last_messages(status: Status) -> list[str]:
    """What the last sessions ended with, of a run that is not complete, and of its arms."""
    own = [status.last] if status.last is not UNSET else []
    arms = status.begun_arms().items()
    return own + [f"{name}: {text}" for name, arm in arms for text in last_messages(arm)]
