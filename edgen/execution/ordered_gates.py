"""Gates on near-duplicates, decided in the order of scenarios and replicates, not of arrival.

Conversations that passed everything else are streamed from the ledger. They include conversations that these
gates rejected earlier; the ledger keeps their records. Each is compared with the accepted conversations
before it, and changed outcomes are noted. So outcomes depend only on the answers and the order of scenarios,
and deciding is idempotent. If a failed scenario is made later, the conversations after it are decided again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from edgen.core.system import run_in_thread
from edgen.core.values import Status
from edgen.execution.progress import ProgressCounts
from edgen.expressions.conversation import Facts
from edgen.expressions.language import Expression
from edgen.families.base import read_record
from edgen.planning.gates import make_rejection
from edgen.planning.plan import Plan
from edgen.protocols.labelled_units import read_said_layers
from edgen.store.ledger import Ledger, Outcome, Scope

KEPT = -1


class OrderedDecision(Protocol):
    """A decision on conversations in their order, by expressions: add all conversations, then decide."""

    def add(self, facts: Facts) -> None: ...

    def decide(self) -> Iterator[int]:
        """Yield for each conversation the index of the first expression that it fails; KEPT if it fails
        none."""


MakeInOrder = Callable[[Sequence[Expression]], OrderedDecision]


async def decide_in_order(
    plan: Plan, ledger: Ledger, counts: ProgressCounts, scope: Scope, make: MakeInOrder
) -> None:
    """Decide the ordered gates of a plan for a scope whose tasks are settled; return when the outcomes are on
    disk."""
    await ledger.flush()
    for before, after in await run_in_thread(_find_changes, plan, ledger, scope, make):
        ledger.settle(after, scope.fingerprint, None)
        counts.settle(before.status, before.reason, -1)
        counts.settle(after.status, after.reason)
    counts.rejected = +counts.rejected  # drop reasons with a count of zero
    await ledger.flush()


def _find_changes(
    plan: Plan, ledger: Ledger, scope: Scope, make: MakeInOrder
) -> list[tuple[Outcome, Outcome]]:
    """Return (outcome before, outcome now) for each changed decision."""
    gates = plan.gates.ordered
    reasons = [gate.reason for gate in gates]
    outcomes, in_order = ledger.open_outcomes(scope), make([gate.expression for gate in gates])
    labelled = any(gate.asks_of(plan.gates.layers) for gate in gates)
    for scenario, task, data in outcomes.iterate_candidates(reasons):
        recorded = read_record(plan.family, data)
        known = Facts(recorded.scenario, recorded.conversation, recorded.id)
        if labelled:
            said = read_said_layers(outcomes.read_additional_values(scenario, task))
            known.labels = plan.gates.make_label_lookup(recorded.conversation.turns, said)
        in_order.add(known)
    found = []
    for row, failed in zip(outcomes.iterate_candidate_outcomes(reasons), in_order.decide(), strict=True):
        before = Outcome(*row[:7])
        facts: tuple[Status, str | None, str | None] = (Status.ACCEPTED, None, None)
        if failed != KEPT:
            refused = make_rejection(gates[failed])
            facts = (Status.REJECTED, refused.code, refused.detail)
        after = Outcome(row.scenario, row.task, *facts, row.grp, row.reply_key)
        if after != before:
            found.append((before, after))
    return found
