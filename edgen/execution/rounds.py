"""The transition between two rounds of a job: the earlier round is settled, and the next is prepared from its
results.

A round's conversations are streamed from the ledger in the order of scenarios. The first start of the next
round fixes which of them count (`store/ledger/rounds`), so that kills and resumes do not change it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator

import msgspec

from edgen.core.errors import DamagedError
from edgen.core.threads import run_in_thread
from edgen.core.values import Status
from edgen.families.base import Recorded
from edgen.planning.plan import Plan
from edgen.store.ledger import Ledger, Scope
from edgen.store.ledger.opening import damaged_error
from edgen.store.ledger.rounds import RoundEnd, fact_of_round, read_round_end


async def prepare_rounds(plan: Plan, ledger: Ledger, fingerprint: str, number: int) -> None:
    """Prepare the rounds up to `number`. Those before it are settled."""
    while plan.prepared_rounds <= number:
        last = plan.prepared_rounds - 1
        end = await _note_end(plan, ledger, fingerprint, last)
        await run_in_thread(_prepare_next, plan, ledger, _scope(plan, fingerprint, last), end)


def restore_rounds(plan: Plan, ledger: Ledger, fingerprint: str) -> None:
    """Prepare the rounds whose earlier ones ended under another form of the job, without noting anything."""
    while plan.prepared_rounds < plan.rounds.total:
        last = plan.prepared_rounds - 1
        end = read_round_end(ledger.fact(_fact(plan, last)), ledger.path)
        if end is None:
            return
        try:
            _prepare_next(plan, ledger, _scope(plan, fingerprint, last), end)
        except DamagedError:  # or records of another family: the work itself reports the error
            return


async def _note_end(plan: Plan, ledger: Ledger, fingerprint: str, number: int) -> RoundEnd:
    """Note that a round has ended, unless noted. Conversations that had failed then stay excluded under
    another form of the job, too: an upgrade must not discard paid answers."""
    await ledger.flush()
    known = read_round_end(ledger.fact(_fact(plan, number)), ledger.path)
    if known is not None and known.fingerprint == fingerprint:
        return known
    outcomes = ledger.outcomes(_scope(plan, fingerprint, number))
    failed = {(scenario, task) for scenario, task, status, _ in outcomes.settled() if status is Status.FAILED}
    end = RoundEnd(fingerprint, tuple(sorted(failed | {*(known.failed if known is not None else ())})))
    ledger.set_fact(_fact(plan, number), msgspec.json.encode(end).decode())
    await ledger.flush()
    return end


def _prepare_next(plan: Plan, ledger: Ledger, scope: Scope, end: RoundEnd) -> None:
    with contextlib.closing(_made(plan, ledger, scope, end)) as made:
        plan.prepare_round(made)


def _made(plan: Plan, ledger: Ledger, scope: Scope, end: RoundEnd) -> Generator[Recorded, None, None]:
    """Yield the accepted conversations of a round that count for later ones."""
    failed = {*end.failed}
    for scenario, task, _, record in ledger.outcomes(scope).records():
        if (scenario, task) in failed:
            continue
        try:
            yield plan.family.read(record)
        except (ValueError, msgspec.MsgspecError) as problem:
            raise damaged_error(ledger.path, f"a record cannot be read: {problem}") from None


def _fact(plan: Plan, number: int) -> str:
    return fact_of_round(number, plan.rounds.size, plan.job.replicates)


def _scope(plan: Plan, fingerprint: str, number: int) -> Scope:
    """Return the conversations of a round that is not the last."""
    first = number * plan.rounds.size
    return Scope(fingerprint, first + plan.rounds.size, plan.job.replicates, first)
