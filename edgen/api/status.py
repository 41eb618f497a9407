"""How a run stands: the values that `edgen status --json` prints. A key that does not apply is left out."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, cast

import msgspec
from msgspec import UNSET, UnsetType

from edgen.core.errors import RunError
from edgen.store.ledger import OPEN, Batch, LedgerSummary, out_at, summary_at
from edgen.store.run_folder import RunFolder

State = Literal["complete", "short", "running", "stopped"]
_FOLLOW_EVERY = 1.0  # seconds between two looks


class Calls(msgspec.Struct, frozen=True):
    """Calls of all starts; `replayed` of the last; `now`, of the start that ends, where one does."""

    made: int
    replayed: int
    retried: int
    now: int | UnsetType = UNSET


class Tokens(msgspec.Struct, frozen=True):
    prompt: int
    completion: int


class Amount(msgspec.Struct, frozen=True):
    """Tokens and US dollars at most."""

    tokens: int
    cost_usd: float


class ScenarioRange(msgspec.Struct, frozen=True):
    """Which scenarios of its job a piece has, half open."""

    first: int
    end: int
    of: int


class OpenBatch(msgspec.Struct, frozen=True):
    """A provider's batch that is out."""

    number: int
    state: str
    backend: str
    id: str | None
    requests: int
    sent_at: str | None


class JudgeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How the pairs of one judge stand."""

    judge: str
    judged: int
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


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """Of a run with arms the sums, and each arm's own under `arms`, None for one that was not begun.

    `range`: the scenarios of a piece; `out`: what is set aside for what is out; `unanswered`: what is charged for calls
    without a kept answer; `last`: what the last session of a run that is not complete ended with; `judges`: how each
    judge of its pairs stands.
    """

    run: str
    state: State
    range: ScenarioRange | UnsetType = UNSET
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

    def begun_arms(self) -> dict[str, Status]:
        """The arms that were begun, by name; none where the run has no arms."""
        return {name: arm for name, arm in (self.arms or {}).items() if arm is not None}

    def with_calls_now(self, made: dict[str, int]) -> Status:
        """With the calls that this start made, by arm, beside those of all starts."""

        def count(status: Status, now: int) -> Status:
            return msgspec.structs.replace(status, calls=msgspec.structs.replace(status.calls, now=now))

        if self.arms is not UNSET:
            arms = {name: arm and count(arm, made.get(name, 0)) for name, arm in self.arms.items()}
            self = msgspec.structs.replace(self, arms=arms)
        return count(self, sum(made.values()))


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
    return msgspec.structs.replace(status, judges=judges) if judges else status


def judge_status(ledger: Path) -> JudgeStatus:
    """How the judge of this ledger stands."""
    facts = msgspec.structs.asdict(_ledger_status(str(ledger.parent), ledger, held=False))
    there = {key: facts[key] for key in JudgeStatus.__struct_fields__ if key in facts}
    return JudgeStatus(judge=ledger.stem, judged=facts["accepted"], **there)


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
        status = _status_begun(rundir, held=held)
        if status is not None and (status != before or not held):
            yield status
            before = status
        if status is not None and not held:
            return
        time.sleep(every)


def _status_begun(rundir: RunFolder, *, held: bool) -> Status | None:
    """How it stands, None while its ledger is being made."""
    if not rundir.exists:
        return None
    try:
        return status_of(rundir, held=held)
    except RunError:
        if held:
            return None
        raise


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
    status, counts = kept.status, kept.status.counts
    plan = status.plan
    return Status(
        run=run,
        state=cast(State, status.state(held=held)),
        range=UNSET if plan.of is None else ScenarioRange(plan.first, plan.scenarios, plan.of),
        planned=status.planned,
        accepted=status.accepted,
        rejected=status.rejected,
        failed=status.failed,
        pending=status.pending,
        calls=Calls(counts.made, counts.replayed, counts.retried),
        tokens=Tokens(counts.prompt_tokens, counts.completion_tokens),
        cost_usd=counts.cost_usd,
        out=Amount(*kept.out) if any(kept.out) else UNSET,
        unanswered=Amount(*kept.unanswered) if any(kept.unanswered) else UNSET,
        last=status.last(held=held) or UNSET,
        batches=_open_batches(kept, ledger),
    )


def _open_batches(kept: LedgerSummary, ledger: Path) -> tuple[OpenBatch, ...] | UnsetType:
    out = tuple(_open_batch(batch, ledger) for batch in kept.batches if batch.state in OPEN)
    return out or UNSET


def _open_batch(batch: Batch, ledger: Path) -> OpenBatch:
    requests = out_at(ledger, batch.number)
    sent_at = None if batch.sent_at is None else _utc(batch.sent_at)
    return OpenBatch(batch.number, batch.state, batch.backend, batch.remote_id, requests, sent_at)


def _utc(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _add_up(arms: list[Status]) -> Status:
    """The sums of what adds up."""
    costs = [arm.cost_usd for arm in arms if arm.cost_usd is not None]
    return Status(
        run="",
        state="complete",
        planned=sum(arm.planned for arm in arms),
        accepted=sum(arm.accepted for arm in arms),
        rejected=_add_counts(arm.rejected for arm in arms),
        failed=_add_counts(arm.failed for arm in arms),
        pending=sum(arm.pending for arm in arms),
        calls=Calls(
            sum(arm.calls.made for arm in arms),
            sum(arm.calls.replayed for arm in arms),
            sum(arm.calls.retried for arm in arms),
        ),
        tokens=Tokens(sum(arm.tokens.prompt for arm in arms), sum(arm.tokens.completion for arm in arms)),
        cost_usd=sum(costs) if costs else None,
        out=_add_amounts([arm.out for arm in arms if arm.out is not UNSET]),
        unanswered=_add_amounts([arm.unanswered for arm in arms if arm.unanswered is not UNSET]),
    )


def _add_counts(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(total)


def _add_amounts(amounts: list[Amount]) -> Amount | UnsetType:
    if not amounts:
        return UNSET
    return Amount(sum(one.tokens for one in amounts), sum(one.cost_usd for one in amounts))


def last_messages(status: Status) -> list[str]:
    """What the last sessions ended with, of a run that is not complete, and of its arms."""
    own = [status.last] if status.last is not UNSET else []
    arms = status.begun_arms().items()
    return own + [f"{name}: {text}" for name, arm in arms for text in last_messages(arm)]
