"""Losses that a start of a run would cause: fewer finished conversations, or repeated calls after a change of
the job.

The user must agree to both. They are computed read-only, before anything in the run changes.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from edgen.config import Job, find_backend, load_job
from edgen.core.errors import CallError, DataError, EdgenError
from edgen.core.options import Via
from edgen.core.values import Status
from edgen.execution.client.model_client import ModelClient
from edgen.execution.pieces import check_piece
from edgen.execution.rollout import Rollout
from edgen.execution.rounds import restore_rounds
from edgen.execution.session import make_clients
from edgen.planning.plan import Plan
from edgen.providers import Backend, find_calls
from edgen.store.ledger import Ledger, RunPlan, RunStatus, describe_lost_replies
from edgen.store.run_folder import RunFolder
from edgen.store.shards import read_manifest

_WALKED = 400  # maximum of answered conversations that are examined


class RepeatedWork(NamedTuple):
    """The losses of one run. None means unknown or impossible."""

    run: Path  # folder of the run
    finished: int
    """Conversations in its files now."""
    left: int
    """Conversations in the files that would replace them."""
    again: int
    """Answered conversations that would be requested again."""
    calls: int
    """Approximate number of those calls."""
    usd: float | None  # US dollars for these calls
    back: str | None
    """Options that restore the files without a call; None if the job's requests have changed."""

    def __str__(self) -> str:
        said = []
        if self.left < self.finished:
            kept = (
                f"the answers stay in the ledger, and {self.back} brings them back without a call"
                if self.back
                else "the old files are kept in previous/"
            )
            said.append(f"its {self.finished} finished conversations would become {self.left} ({kept})")
        if self.again:
            price = "" if self.usd is None else f", about ${self.usd:,.2f}"
            said.append(
                f"the job has changed, and about {self.again} answered conversations would be requested "
                f"again: about {self.calls} call{'' if self.calls == 1 else 's'}{price}"
            )
        return f"{self.run}: {'; '.join(said)}."


def list_losses(
    plan: Plan, backends: Mapping[str, Backend], run: RunFolder, ledger: Ledger, part: range | None, via: Via
) -> list[object]:
    """Return the losses of making `plan` in a run's folder that need the user's consent: replies that a crash
    lost, and repeated work. `backends`: by their names in the job. `part`: the scenarios to make, None for
    all. Raises UsageError if the folder holds another part of the job."""
    losses: list[object] = []
    if ledger.lost_replies:
        losses.append(describe_lost_replies(run.ledger, ledger.lost_replies))
    if ledger.read_fact("plan") is None:
        return losses
    check_piece(run.path, ledger.read_status().plan, plan.job, part)
    repeated = find_rework(plan, backends, run, ledger, part, via)
    return losses if repeated is None else [*losses, repeated]


def find_rework(
    plan: Plan, backends: Mapping[str, Backend], run: RunFolder, ledger: Ledger, part: range | None, via: Via
) -> RepeatedWork | None:
    """Return the losses of making `plan` in a run's folder; None without losses. `backends` are by their
    names in the job; `part`: the scenarios to make, None for all."""
    status, clients = ledger.read_status(), make_clients(plan.call_settings, backends, plan.roles)
    under = status.plan.fingerprint
    wanted = range(plan.job.conversations) if part is None else part
    same_form = under == plan.make_fingerprint(
        {role: client.backend.identity for role, client in clients.items()}
    )
    finished = _count_finished(run.shards)
    left = min(finished, _count_left(plan, status, ledger, wanted, same_form=same_form))
    again, calls = (
        (0, 0) if same_form or _is_free(plan) else _estimate_asked_again(plan, clients, ledger, under, wanted)
    )
    if left == finished and not again:
        return None
    return RepeatedWork(
        run=run.path,
        finished=finished,
        left=left,
        again=again,
        calls=calls,
        usd=_estimate_cost(plan, status, via, calls),
        back=_describe_way_back(status.plan, plan.job) if same_form else None,
    )


def find_dropped_arms(run: RunFolder, arms: Collection[str]) -> Iterator[str]:
    """Yield a sentence for each finished arm of a run that a job with these arms would drop."""
    try:
        before = load_job(run.job).arms
    except EdgenError:  # the reader of the run reports the error
        return
    for arm in before:
        if arm not in arms and (finished := _count_finished(run.arm(arm).shards)):
            yield (
                f"{run.path}: the job no longer has the arm {arm}, so its {finished} finished "
                "conversations would leave the run (its files stay, and adding the arm again "
                "restores them without a call)."
            )


def _describe_way_back(before: RunPlan, job: Job) -> str:
    """Return the options that make the present job ask for the earlier conversations."""
    conversations = before.asked // (before.replicates or 1)
    said = [f"-n {conversations}"] if before.of is None else []
    if before.replicates != job.replicates:
        said.append(f"--set replicates={before.replicates}")
    if before.scenarios - before.first > conversations and not job.top_up:
        said.append("--set top_up=true")
    return " ".join(said) or "the job as it was"


def _count_left(plan: Plan, status: RunStatus, ledger: Ledger, wanted: range, *, same_form: bool) -> int:
    """Return how many conversations the new files would hold, as far as known in advance."""
    job = plan.job
    asked = len(wanted) * job.replicates
    if not same_form or job.top_up or asked >= status.plan.asked:
        return asked
    counts = ledger.count_settled(status.plan.fingerprint, wanted.start, wanted.stop, job.replicates)
    return sum(count for kind, _, count in counts if kind == Status.ACCEPTED)


def _count_finished(shards: Path) -> int:
    """Return the number of conversations in the finished files; 0 if there are none."""
    try:
        counts = read_manifest(shards).counts
    except (DataError, OSError):
        return 0
    return counts.train + counts.test


def _is_free(plan: Plan) -> bool:
    """Return whether the plan uses only the embedded simulator."""
    return all(find_calls(find_backend(plan.job, role)).simulated for role in plan.roles)


def _estimate_asked_again(
    plan: Plan, clients: Mapping[str, ModelClient], ledger: Ledger, fingerprint: str, wanted: range
) -> tuple[int, int]:
    """Return how many conversations, answered under another form of the job, lack answers under this form,
    and about how many calls they need. Large runs are sampled at even distances."""
    answered = sum(
        count
        for _, _, count in ledger.count_settled(fingerprint, wanted.start, wanted.stop, plan.job.replicates)
    )
    if not answered:
        return 0, 0
    stride = -(-answered // _WALKED)
    units = (
        (scenario, replicate)
        for scenario, replicate, _, _ in ledger.list_settled(fingerprint, wanted.start, wanted.stop)
        if replicate < plan.job.replicates
    )
    restore_rounds(plan, ledger, fingerprint)
    try:
        calls = [
            _estimate_lacking(plan, clients, ledger, unit)
            for unit in itertools.islice(units, 0, None, stride)
        ]
    finally:
        plan.forget_rounds()
    share = answered / len(calls)
    return round(share * sum(map(bool, calls))), round(share * sum(calls))


def _estimate_lacking(
    plan: Plan, clients: Mapping[str, ModelClient], ledger: Ledger, unit: tuple[int, Any]
) -> int:
    """Estimate how many calls a conversation lacks, if it takes as many as before; 0 if all its answers are
    stored."""
    if plan.rounds.of(unit[0]) >= plan.prepared_rounds:  # an earlier round determines its requests
        return max(1, ledger.count_places(*unit))
    rollout, stored = Rollout(plan.make_task(*unit), clients), ledger.read_replies(*unit)
    fitting = 0
    try:
        while True:
            fitting += rollout.answer_from(stored)
            if (request := rollout.request) is None:
                return 0
            reply = ledger.read_reply(request.address, rollout.key) if plan.sharers > 1 else None
            if reply is None:
                break
            rollout.answer(reply)
    except CallError:
        pass
    finally:
        rollout.close()
    return max(1, ledger.count_places(*unit) - fitting)


def _estimate_cost(plan: Plan, status: RunStatus, via: Via, calls: int) -> float | None:
    """Return the US dollars of `calls` calls, from the run's mean use per call so far and the job's present
    prices; None without prices."""
    from edgen.cost.usage import RolePrices

    counts, rates = status.counts, RolePrices(plan.job, via)
    if not rates.priced:
        return None
    return (
        rates.find_highest_cost(counts.prompt_tokens, counts.completion_tokens) / (counts.made or 1) * calls
    )
