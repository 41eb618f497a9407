"""What a start would undo or pay for again: finished files that become fewer, answers that no longer fit the job.

A person has to agree to both. It is found out by reading alone, before anything of the run is changed.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from edgen.config import Job, backend_of, load_job
from edgen.core.errors import CallError, DataError, EdgenError
from edgen.core.values import Status
from edgen.cost.usage import Rates, Way
from edgen.execution.client.model_client import ModelClient, make_clients
from edgen.execution.rollout import Rollout
from edgen.execution.rounds import restore_rounds
from edgen.planning.plan import Plan
from edgen.providers import Backend, provider_of
from edgen.store.ledger import Ledger, RunPlan, RunStatus
from edgen.store.run_folder import RunFolder
from edgen.store.shards import read_manifest

_WALKED = 400  # conversations that are looked at, of those that were answered


class Rework(NamedTuple):
    """What one run would lose. `finished`: conversations in its files now, `left`: those in the files that would
    replace them; `again`: answered conversations that would be asked for again, with about so many `calls` and
    US dollars (None where a price is missing); `back`: the options that bring the files back without a call, None where
    the job asks otherwise than it did."""

    run: Path
    finished: int
    left: int
    again: int
    calls: int
    usd: float | None
    back: str | None

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
                f"the job has changed, and about {self.again} conversations that were answered before would be asked "
                f"for again: about {self.calls} call{'' if self.calls == 1 else 's'}{price}"
            )
        return f"{self.run}: {'; '.join(said)}."


def find_rework(
    plan: Plan, backends: Mapping[str, Backend], run: RunFolder, ledger: Ledger, part: range | None, via: Way
) -> Rework | None:
    """What making `plan` in the folder of a run would undo or pay for again; None if nothing. `backends` are by
    their names in the job; `part`: the scenarios to make, None for all."""
    status, clients = ledger.status(), make_clients(plan.call_settings, backends, plan.roles)
    under = status.plan.fingerprint
    wanted = range(plan.job.conversations) if part is None else part
    same_form = under == plan.fingerprint({role: client.backend.identity for role, client in clients.items()})
    finished = _finished(run.shards)
    left = min(finished, _left(plan, status, ledger, wanted, same_form=same_form))
    again, calls = (
        (0, 0) if same_form or _is_free(plan) else _asked_again(plan, clients, ledger, under, wanted)
    )
    if left == finished and not again:
        return None
    return Rework(
        run=run.path,
        finished=finished,
        left=left,
        again=again,
        calls=calls,
        usd=_cost(plan, status, via, calls),
        back=_way_back(status.plan, plan.job) if same_form else None,
    )


def dropped_arms(run: RunFolder, arms: Collection[str]) -> Iterator[str]:
    """A sentence for each finished arm of a run that a job with these arms would leave out of it."""
    try:
        before = load_job(run.job).arms if run.job.exists() else {}
    except EdgenError:  # whoever reads it for the run says what is wrong
        return
    for arm in before:
        if arm not in arms and (finished := _finished(run.arm(arm).shards)):
            yield (
                f"{run.path}: the job no longer has the arm {arm}, so its {finished} finished conversations would be "
                "no part of the run (its files stay, and the arm in the job again brings them back without a call)."
            )


def _way_back(before: RunPlan, job: Job) -> str:
    """The options with which the job as it is now asks for what was asked for before."""
    conversations = before.asked // (before.replicates or 1)
    said = [f"-n {conversations}"] if before.of is None else []
    if before.replicates != job.replicates:
        said.append(f"--set replicates={before.replicates}")
    if before.scenarios - before.first > conversations and not job.top_up:
        said.append("--set top_up=true")
    return " ".join(said) or "the job as it was"


def _left(plan: Plan, status: RunStatus, ledger: Ledger, wanted: range, *, same_form: bool) -> int:
    """How many conversations the new files would hold, as far as can be told before they are made."""
    job = plan.job
    asked = len(wanted) * job.replicates
    if not same_form or job.top_up or asked >= status.plan.asked:
        return asked
    counts = ledger.count_settled(status.plan.fingerprint, wanted.start, wanted.stop, job.replicates)
    return sum(count for kind, _, count in counts if kind == Status.ACCEPTED)


def _finished(shards: Path) -> int:
    """The conversations in the finished files; none where there are no such files."""
    try:
        counts = read_manifest(shards).counts
    except (DataError, OSError):
        return 0
    return counts.train + counts.test


def _is_free(plan: Plan) -> bool:
    """Whether only the embedded simulator is asked."""
    return all(provider_of(backend_of(plan.job, role)).simulated for role in plan.roles)


def _asked_again(
    plan: Plan, clients: Mapping[str, ModelClient], ledger: Ledger, fingerprint: str, wanted: range
) -> tuple[int, int]:
    """How many conversations that were answered under another form of the job lack an answer under this one, and
    about how many calls would get it. Of very many, evenly spread ones stand for all."""
    answered = sum(
        count
        for _, _, count in ledger.count_settled(fingerprint, wanted.start, wanted.stop, plan.job.replicates)
    )
    if not answered:
        return 0, 0
    stride = -(-answered // _WALKED)
    units = (
        (scenario, replicate)
        for scenario, replicate, _, _ in ledger.settled(fingerprint, wanted.start, wanted.stop)
        if replicate < plan.job.replicates
    )
    restore_rounds(plan, ledger, fingerprint)
    try:
        calls = [_lacking(plan, clients, ledger, unit) for unit in itertools.islice(units, 0, None, stride)]
    finally:
        plan.forget_rounds()
    share = answered / len(calls)
    return round(share * sum(map(bool, calls))), round(share * sum(calls))


def _lacking(plan: Plan, clients: Mapping[str, ModelClient], ledger: Ledger, unit: tuple[int, Any]) -> int:
    """About how many calls a conversation lacks, if it takes as many as it took before; 0 if it has its answers."""
    if plan.rounds.of(unit[0]) >= plan.prepared_rounds:  # what it would ask, an earlier round decides
        return max(1, ledger.places(*unit))
    rollout, stored = Rollout(plan.task(*unit), clients), ledger.replies(*unit)
    fitting = 0
    try:
        while True:
            fitting += rollout.answer_from(stored)
            if (request := rollout.request) is None:
                return 0
            reply = ledger.reply(request.address, rollout.key) if plan.sharers > 1 else None
            if reply is None:
                break
            rollout.answer(reply)
    except CallError:
        pass
    finally:
        rollout.close()
    return max(1, ledger.places(*unit) - fitting)


def _cost(plan: Plan, status: RunStatus, via: Way, calls: int) -> float | None:
    """US dollars of so many calls, if they use what the run's calls used so far, at the job's prices of today."""
    counts, rates = status.counts, Rates(plan.job, via)
    if not rates.priced:
        return None
    return rates.dearest(counts.prompt_tokens, counts.completion_tokens) / (counts.made or 1) * calls
