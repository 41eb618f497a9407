"""The cost of a job's gates: the share of conversations that passes them determines retries and the number
made.

Earlier runs with the same gates include this cost. Conversations of runs without gates are tested against the
job's gates. Without such runs, and for gates on missing labels, the share is assumed or given by the caller.
Every try is assumed to be labelled, even if it fails an earlier gate. Near-duplicates are not included: their
number depends on all other conversations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from edgen.cost.history import EarlierRun
from edgen.cost.usage import UsageRange
from edgen.planning.plan import Plan
from edgen.stats.quantiles import Z95, wilson

ASSUMED = (0.95, 0.8, 0.5)  # assumed share of passing conversations: low, expected and high
# Low, expected and high: 1 if retries are independent, 0 if a failed scenario always fails again.
_HELPS = (1.0, 0.5, 0.0)
_SHARED = 1.1
_LEAST = 0.02  # share below which planning stops


class PassRate(NamedTuple):
    """The share of passing conversations (low, expected and high), the maximum tries of each, and the
    basis."""

    shares: tuple[float, float, float]
    tries: int
    basis: str

    def add_retries(self, uses: UsageRange) -> UsageRange:
        """Return the use of conversations with retries, given the use of one try each."""
        # Unreadable answers were retried, too, and use up the same tries.
        return UsageRange(
            *(level.times(one[0]) for level, one in zip(uses, self._list_tries_and_shares(), strict=True))
        ).widen(_SHARED)

    def estimate_attempts(self, to_make: tuple[float, float, float]) -> tuple[float, float, float]:
        """Return how many conversations are made until `to_make` have passed (low, expected, high)."""
        low, expected, high = (
            count / max(one[1], _LEAST)
            for count, one in zip(to_make, self._list_tries_and_shares(), strict=True)
        )
        return low, expected, high

    def _list_tries_and_shares(self) -> Iterator[tuple[float, float]]:
        """Yield (tries of a conversation, final share that passes) at each level. `helps`: 1 for independent
        tries, 0 if scenarios whose first try fails never pass."""
        for share, helps in zip(self.shares, _HELPS, strict=True):
            alone = 1 - (1 - share) ** self.tries
            tried = helps * alone / share + (1 - helps) * (share + (1 - share) * self.tries)
            yield tried, helps * alone + (1 - helps) * share


def pass_rate(plan: Plan, runs: Sequence[EarlierRun], stated: float | None) -> PassRate | None:
    """Return the share of conversations that pass a plan's gates; None if it has no gates, or `runs` had the
    same. `stated`: the share given by the caller; None for the share in `runs`."""
    if not plan.job.gates or (runs and all(run.passing is None for run in runs) and stated is None):
        return None
    tries = 1 if plan.job.branch is not None else plan.job.asks
    again = f"; each is tried {tries} times at most" if tries > 1 else ""
    if stated is not None:
        share = max(stated, _LEAST)
        return PassRate((share, share, share), tries, f"gates: {share:.0%} pass, as given{again}")
    known = [run.passing for run in runs if run.passing is not None]
    looked, passed = sum(of for _, of in known), sum(passed for passed, _ in known)
    if not looked:
        best, usual, worst = ASSUMED
        basis = f"gates: {usual:.0%} pass, assumed between {worst:.0%} and {best:.0%}; --pass-rate sets it"
        return PassRate(ASSUMED, tries, f"{basis}{again}")
    share = passed / looked
    low, high = wilson(share, looked, Z95)
    shares = high, share, low
    basis = f"gates: {share:.0%} of {looked:,} conversations in those runs pass them"
    if any(gate.asks_of(plan.gates.layers) for gate in (*plan.gates.labelled, *plan.gates.ordered)):
        shares = high * ASSUMED[0], share * ASSUMED[1], low * ASSUMED[2]
        basis = (
            f"gates: {share:.0%} of {looked:,} conversations in those runs pass the gates without labels, "
            f"and of these {ASSUMED[1]:.0%} are assumed to pass the others, from {ASSUMED[2]:.0%} to "
            f"{ASSUMED[0]:.0%}; --pass-rate changes this"
        )
    least = max(shares[0], _LEAST), max(shares[1], _LEAST), max(shares[2], _LEAST)
    return PassRate(least, tries, f"{basis}{again}")
