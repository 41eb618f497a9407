"""Gates about near-duplicates, decided in the order of scenarios and replicates, whatever came first.

All that passed everything else is streamed out of the ledger, that which these gates refused before among it: its
record is kept. Each is held against the earlier ones that are accepted, and what has changed is noted. So the outcome is a
function of what was answered and of the order of the scenarios alone, and doing it again changes nothing; when a
scenario that failed is made later, whatever comes after it is decided anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from edgen.core.values import Status
from edgen.execution.scheduler import ProgressCounts
from edgen.expressions.conversation import Facts
from edgen.expressions.language import Expression
from edgen.planning.gates import rejection
from edgen.planning.plan import Plan
from edgen.protocols.labelled_units import layers_said
from edgen.store.ledger import Ledger, Outcome, Scope

KEPT = -1


class InOrder(Protocol):
    """Conversations that are to meet expressions, in order: all are added, then decided."""

    def add(self, facts: Facts) -> None: ...

    def decide(self) -> Iterator[int]:
        """Of each the place of the first expression that it does not meet; KEPT if it meets all."""


MakeInOrder = Callable[[Sequence[Expression]], InOrder]


async def decide_in_order(
    plan: Plan, ledger: Ledger, counts: ProgressCounts, scope: Scope, make: MakeInOrder
) -> None:
    """Decide the ordered gates of a plan for all of a scope, which is settled otherwise. Returns when it is on the
    disk."""
    await ledger.flush()
    for before, after in await asyncio.to_thread(_changes, plan, ledger, scope, make):
        ledger.settle(after, scope.fingerprint, None)
        counts.settle(before.status, before.reason, -1)
        counts.settle(after.status, after.reason)
    counts.rejected = +counts.rejected  # without reasons that nothing has any more
    await ledger.flush()


def _changes(plan: Plan, ledger: Ledger, scope: Scope, make: MakeInOrder) -> list[tuple[Outcome, Outcome]]:
    """What is decided otherwise than it was: how it stood, and how it stands now."""
    gates = plan.gates.ordered
    reasons = [gate.reason for gate in gates]
    outcomes, in_order = ledger.outcomes(scope), make([gate.expression for gate in gates])
    labelled = any(gate.asks_of(plan.gates.layers) for gate in gates)
    for scenario, task, data in outcomes.candidates(reasons):
        recorded = plan.family.read(data)
        known = Facts(recorded.scenario, recorded.conversation, recorded.id)
        if labelled:
            said = layers_said(outcomes.beside(scenario, task))
            known.labels = plan.gates.labels_of(recorded.conversation.turns, said)
        in_order.add(known)
    found = []
    for row, failed in zip(outcomes.candidate_outcomes(reasons), in_order.decide(), strict=True):
        before = Outcome(*row[:7])
        facts: tuple[Status, str | None, str | None] = (Status.ACCEPTED, None, None)
        if failed != KEPT:
            refused = rejection(gates[failed])
            facts = (Status.REJECTED, refused.code, refused.detail)
        after = Outcome(row.scenario, row.task, *facts, row.grp, row.reply_key)
        if after != before:
            found.append((before, after))
    return found
