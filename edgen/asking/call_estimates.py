"""The calls that askers would make, for --dry-run: nothing is sent and nothing is written."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from edgen.asking.asker import Asker
from edgen.asking.ledger_paths import AskerFolder
from edgen.core.values import Status
from edgen.store.ledger import LedgerReader


class CallsNeeded(msgspec.Struct, frozen=True):
    """Calls: as expected, and if each answer is asked for as often as the job allows and every turn is
    taken."""

    expected: int = 0
    at_most: int = 0

    def plus(self, other: CallsNeeded) -> CallsNeeded:
        """Return the sum of both."""
        return CallsNeeded(self.expected + other.expected, self.at_most + other.at_most)


class Needs(NamedTuple):
    """Units with a stored answer, units without one, and the calls for the latter."""

    stored: int = 0
    missing: int = 0
    calls: CallsNeeded = CallsNeeded()

    def describe(self, verb: str) -> dict[str, Any]:
        """Return the part of `--dry-run --json` about units to judge, play or write."""
        return {"there": self.stored, f"to_{verb}": self.missing, "calls": self.calls}

    def plus(self, other: Needs) -> Needs:
        """Return the sum of both."""
        calls = self.calls.plus(other.calls)
        return Needs(self.stored + other.stored, self.missing + other.missing, calls)


class NeededCalls(msgspec.Struct, frozen=True, kw_only=True):
    """Calls that an asker needs."""

    units: str  # what they are, in plural
    stored: int  # units with stored answers
    missing: int  # the other units
    expected: int  # calls for these
    at_most: int  # calls for these
    provider: str  # the backend's type

    @classmethod
    def of(cls, asker: Asker[Any, Any], needs: Needs) -> NeededCalls:
        """Return what `--dry-run` prints of one asker."""
        return cls(
            units=asker.nouns,
            stored=needs.stored,
            missing=needs.missing,
            expected=needs.calls.expected,
            at_most=needs.calls.at_most,
            provider=asker.job.backends[asker.roles[0]].provider,
        )

    def lines(self) -> list[str]:
        """Return the lines for a person."""
        return [
            f"{self.units:<10} {self.missing:,} without a stored answer, {self.stored:,} with one",
            f"backend    {self.provider}",
            (
                f"calls      {self.expected:,} expected, at most {self.at_most:,}; none was made, and "
                "nothing was written"
            ),
        ]


def needs_of(asker: Asker[Any, Any], place: AskerFolder) -> Needs:
    """Return what an asker would take."""
    return count_needs(asker, place.ledger(asker))


def count_needs(asker: Asker[Any, Any], ledger: Path | None) -> Needs:
    """Return what an asker would take besides the answers in a ledger."""
    missing = expected = most = 0
    for index, task in find_unanswered(asker, ledger):
        one, all_turns = asker.calls(index, task)
        missing, expected, most = missing + 1, expected + one, most + all_turns * asker.asks
    stored = 0 if asker.begins_anew else asker.planned - missing
    return Needs(stored, asker.planned - stored, CallsNeeded(expected, most))


def find_unanswered(asker: Asker[Any, Any], ledger: Path | None) -> Iterator[tuple[int, Any]]:
    """Yield the units that have no answer in the ledger; failed ones have none."""
    if asker.begins_anew or ledger is None or not ledger.exists():
        yield from asker.units()
        return
    with LedgerReader(ledger) as view:
        for index, those in groupby(asker.units(), key=lambda unit: unit[0]):
            known = view.outcomes(index)
            for _, task in those:
                if known.get(task, (Status.FAILED,))[0] == Status.FAILED:
                    yield index, task
