"""What lies between two rounds of a job: the earlier one is settled, and the next is prepared from what it made.

A round's conversations are streamed out of the ledger in the order of scenarios. Which of them count is fixed the first
time that the next round is begun (`store/ledger/rounds`), so that it is the same after every kill and resume.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Generator

import msgspec

from edgen.core.errors import DamagedError
from edgen.core.values import Status
from edgen.families.base import Recorded
from edgen.planning.plan import Plan
from edgen.store.ledger import Ledger, Scope
from edgen.store.ledger.opening import damaged_error
from edgen.store.ledger.rounds import RoundEnd, fact_of_round, read_round_end


async def prepare_rounds(plan: Plan, ledger: Ledger, fingerprint: str, number: int) -> None:
    """Have the rounds up to `number` ready. Those before it are settled."""
    while plan.prepared_rounds <= number:
        last = plan.prepared_rounds - 1
        end = await _note_end(plan, ledger, fingerprint, last)
        await asyncio.to_thread(_prepare_next, plan, ledger, _scope(plan, fingerprint, last), end)


def restore_rounds(plan: Plan, ledger: Ledger, fingerprint: str) -> None:
    """Have those rounds ready whose earlier ones have ended under another form of the job; nothing is noted."""
    while plan.prepared_rounds < plan.rounds.total:
        last = plan.prepared_rounds - 1
        end = read_round_end(ledger.fact(_fact(plan, last)), ledger.path)
        if end is None:
            return
        try:
            _prepare_next(plan, ledger, _scope(plan, fingerprint, last), end)
        except DamagedError:  # or records of another family: the work itself says what is wrong
            return


async def _note_end(plan: Plan, ledger: Ledger, fingerprint: str, number: int) -> RoundEnd:
    """Note that a round has ended, unless that is known. What had failed when it was noted first stays out under
    another form of the job, too: an upgrade must not undo what was paid for."""
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
    """The accepted conversations of a round that count for later ones."""
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
    """The conversations of a round that is not the last."""
    first = number * plan.rounds.size
    return Scope(fingerprint, first + plan.rounds.size, plan.job.replicates, first)
