"""The calls that askers would make, for --dry-run. Nothing is sent or written."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec

from edgen.asking.asker import Asker
from edgen.config import find_backend
from edgen.core.values import Status
from edgen.store.ledger import LedgerReader


class NeededCalls(msgspec.Struct, frozen=True, kw_only=True):
    """The calls that an asker needs: expected, and at most, with every retry that the job allows and every
    turn."""

    units: str  # their name in plural
    stored: int  # units with stored answers
    missing: int  # the other units
    expected: int  # calls for the missing units
    at_most: int  # calls for the missing units
    provider: str  # the backend's type

    def plus(self, other: NeededCalls) -> NeededCalls:
        """Return the sum of both."""
        counts = ("stored", "missing", "expected", "at_most")
        sums = {name: getattr(self, name) + getattr(other, name) for name in counts}
        return msgspec.structs.replace(self, **sums)

    @property
    def calls(self) -> dict[str, int]:
        """The numbers of calls alone."""
        return {"expected": self.expected, "at_most": self.at_most}

    def describe(self, verb: str) -> dict[str, Any]:
        """Return the part of `--dry-run --json` about the units to judge, play or write."""
        return {"there": self.stored, f"to_{verb}": self.missing, "calls": self.calls}

    def lines(self) -> list[str]:
        """Return the lines for the terminal."""
        return [
            f"{self.units:<10} {self.missing:,} without a stored answer, {self.stored:,} with one",
            f"backend    {self.provider}",
            (
                f"calls      {self.expected:,} expected, at most {self.at_most:,}; none was made, and "
                "nothing was written"
            ),
        ]


def count_needs(
    asker: Asker[Any, Any], ledger: Path | None, found: list[tuple[int, Any]] | None = None
) -> NeededCalls:
    """Return the calls that an asker needs for the units without an answer in a ledger. `found` collects
    these units."""
    missing = expected = most = 0
    for index, task in find_unanswered(asker, ledger):
        if found is not None:
            found.append((index, task))
        one, all_turns = asker.count_calls(index, task)
        missing, expected, most = missing + 1, expected + one, most + all_turns * asker.asks
    stored = 0 if asker.begins_anew else asker.planned - missing
    return NeededCalls(
        units=asker.nouns,
        stored=stored,
        missing=asker.planned - stored,
        expected=expected,
        at_most=most,
        provider=find_backend(asker.job, asker.roles[0]).provider,
    )


def find_unanswered(asker: Asker[Any, Any], ledger: Path | None) -> Iterator[tuple[int, Any]]:
    """Yield the units without an answer in the ledger, including failed ones."""
    if asker.begins_anew or ledger is None or not ledger.exists():
        yield from asker.list_units()
        return
    with LedgerReader(ledger) as view:
        for index, those in groupby(asker.list_units(), key=lambda unit: unit[0]):
            known = view.read_outcomes(index)
            for _, task in those:
                if known.get(task, (Status.FAILED,))[0] == Status.FAILED:
                    yield index, task
