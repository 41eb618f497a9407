"""What a job's gates cost: how many conversations pass them, and so how often one is asked for and how many are made.

Runs that had the same gates tell all by themselves. Of runs without gates the conversations are held against the job's;
where there are none, and for gates on labels that nobody gave, a share is assumed, or said by whoever asks. Each try is
taken to be labelled, those too that fail a gate before. Near-duplicates are not reckoned with: how many there are depends
on all the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from edgen.cost.history import EarlierRun
from edgen.cost.usage import Range
from edgen.planning.plan import Plan
from edgen.stats.quantiles import Z95, wilson

ASSUMED = (0.95, 0.8, 0.5)  # of conversations pass, where nothing tells: for what is low, expected and high
# How far asking again helps: what fails once may fail again, for it is the same scenario.
_HELPS = (1.0, 0.5, 0.0)
_SHARED = 1.1
_LEAST = 0.02  # a share below which nobody plans on


class PassRate(NamedTuple):
    """The share of conversations that pass, for what is low, expected and high, how often each is tried at most, and what
    it rests on."""

    shares: tuple[float, float, float]
    tries: int
    basis: str

    def spread(self, uses: Range) -> Range:
        """What conversations use that are asked for again, given what each uses once."""
        # What could not be read was asked for again, too, and uses up the same tries.
        return Range(*(level.times(one[0]) for level, one in zip(uses, self._each(), strict=True))).widened(
            _SHARED
        )

    def planned(self, to_make: tuple[float, float, float]) -> tuple[float, float, float]:
        """How many are made until so many have passed."""
        low, expected, high = (
            count / max(one[1], _LEAST) for count, one in zip(to_make, self._each(), strict=True)
        )
        return low, expected, high

    def _each(self) -> Iterator[tuple[float, float]]:
        """How often one conversation is tried, and the share of conversations that pass in the end: between tries that know
        nothing of each other (`helps` 1), and a scenario of which none passes where the first does not (0)."""
        for share, helps in zip(self.shares, _HELPS, strict=True):
            alone = 1 - (1 - share) ** self.tries
            tried = helps * alone / share + (1 - helps) * (share + (1 - share) * self.tries)
            yield tried, helps * alone + (1 - helps) * share


def pass_rate(plan: Plan, runs: Sequence[EarlierRun], said: float | None) -> PassRate | None:
    """The share of conversations that pass the gates of a plan; None where it has none, or `runs` had the same. `said`:
    the share that is taken for true, None for what is known."""
    if not plan.job.gates or (runs and all(run.passing is None for run in runs) and said is None):
        return None
    tries = 1 if plan.job.branch is not None else plan.job.asks
    again = f"; each is tried {tries} times at most" if tries > 1 else ""
    if said is not None:
        share = max(said, _LEAST)
        return PassRate((share, share, share), tries, f"gates: {share:.0%} are said to pass{again}")
    known = [run.passing for run in runs if run.passing is not None]
    looked, passed = sum(of for _, of in known), sum(passed for passed, _ in known)
    if not looked:
        best, usual, worst = ASSUMED
        basis = f"gates: {usual:.0%} are taken to pass, from {worst:.0%} to {best:.0%}; --pass-rate says otherwise"
        return PassRate(ASSUMED, tries, f"{basis}{again}")
    share = passed / looked
    low, high = wilson(share, looked, Z95)
    shares = high, share, low
    basis = f"gates: {share:.0%} of {looked:,} conversations there pass them"
    if any(gate.asks_of(plan.gates.layers) for gate in (*plan.gates.labelled, *plan.gates.ordered)):
        shares = high * ASSUMED[0], share * ASSUMED[1], low * ASSUMED[2]
        basis = (
            f"gates: {share:.0%} of {looked:,} conversations there pass those that ask for no labels, and of these "
            f"{ASSUMED[1]:.0%} are taken to pass the others, from {ASSUMED[2]:.0%} to {ASSUMED[0]:.0%}; --pass-rate says otherwise"
        )
    least = max(shares[0], _LEAST), max(shares[1], _LEAST), max(shares[2], _LEAST)
    return PassRate(least, tries, f"{basis}{again}")
