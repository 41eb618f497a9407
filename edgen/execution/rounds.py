"""Rounds of a run. A round is prepared from the conversations of earlier rounds, after they are settled."""

from __future__ import annotations

import contextlib
from collections.abc import Generator

import msgspec

from edgen.core.errors import DamagedError
from edgen.core.system import run_in_thread
from edgen.core.values import Status
from edgen.families.base import Recorded, read_record
from edgen.planning.plan import Plan
from edgen.store.ledger import Ledger, Scope
from edgen.store.ledger.facts import RoundEnd, make_round_fact_name, read_round_end
from edgen.store.ledger.problems import make_damaged_error


async def prepare_rounds(plan: Plan, ledger: Ledger, fingerprint: str, number: int) -> None:
    """Prepare the rounds up to `number`. All rounds before it must be settled."""
    while plan.prepared_rounds <= number:
        last = plan.prepared_rounds - 1
        end = await _note_end(plan, ledger, fingerprint, last)
        await run_in_thread(_prepare_next, plan, ledger, _make_scope(plan, fingerprint, last), end)


def restore_rounds(plan: Plan, ledger: Ledger, fingerprint: str) -> None:
    """Prepare the rounds whose preceding rounds have ended, even under another form of the job; note
    nothing."""
    while plan.prepared_rounds < plan.rounds.total:
        last = plan.prepared_rounds - 1
        end = read_round_end(ledger.read_fact(_make_fact_name(plan, last)), ledger.path)
        if end is None:
            return
        try:
            _prepare_next(plan, ledger, _make_scope(plan, fingerprint, last), end)
        except DamagedError:  # also by records of another family; a start of the run reports the error
            return


async def _note_end(plan: Plan, ledger: Ledger, fingerprint: str, number: int) -> RoundEnd:
    """Note that a round has ended, and return the note. Conversations that failed in it stay excluded under
    another form of the job, too: making them would change later rounds and lose paid answers."""
    await ledger.flush()
    known = read_round_end(ledger.read_fact(_make_fact_name(plan, number)), ledger.path)
    if known is not None and known.fingerprint == fingerprint:
        return known
    outcomes = ledger.open_outcomes(_make_scope(plan, fingerprint, number))
    failed = {
        (scenario, task) for scenario, task, status, _ in outcomes.list_settled() if status is Status.FAILED
    }
    end = RoundEnd(fingerprint, tuple(sorted(failed | {*(known.failed if known is not None else ())})))
    ledger.set_fact(_make_fact_name(plan, number), msgspec.json.encode(end).decode())
    await ledger.flush()
    return end


def _prepare_next(plan: Plan, ledger: Ledger, scope: Scope, end: RoundEnd) -> None:
    with contextlib.closing(_iterate_accepted(plan, ledger, scope, end)) as made:
        plan.prepare_round(made)


def _iterate_accepted(
    plan: Plan, ledger: Ledger, scope: Scope, end: RoundEnd
) -> Generator[Recorded, None, None]:
    """Yield the accepted conversations of a round that later rounds depend on."""
    failed = {*end.failed}
    for scenario, task, _, record in ledger.open_outcomes(scope).iterate_records():
        if (scenario, task) in failed:
            continue
        try:
            yield read_record(plan.family, record)
        except (ValueError, msgspec.MsgspecError) as problem:
            raise make_damaged_error(ledger.path, f"a record cannot be read: {problem}") from None


def _make_fact_name(plan: Plan, number: int) -> str:
    return make_round_fact_name(number, plan.rounds.size, plan.job.replicates)


def _make_scope(plan: Plan, fingerprint: str, number: int) -> Scope:
    """Return the conversations of a round that is not the last."""
    first = number * plan.rounds.size
    return Scope(fingerprint, first + plan.rounds.size, plan.job.replicates, first)
