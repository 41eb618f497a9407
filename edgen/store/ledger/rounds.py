"""The ends of rounds, noted in the ledger before anything of the next round is asked.

A note holds the conversations that had failed by then. Whatever becomes of them in a later session, they are no part of
what later rounds were made with; so what these have asked, and paid for, stays what they ask.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from edgen.store.ledger.opening import decode_fact


class RoundEnd(msgspec.Struct, frozen=True):
    """`fingerprint`: of the job as it was when it was noted last; `failed`: (scenario, task), in order."""

    fingerprint: str
    failed: tuple[tuple[int, int], ...]


def fact_of_round(number: int, size: int, replicates: int) -> str:
    """The name of the fact that round `number`, of so many scenarios and replicates, has ended."""
    return f"end of round {number} of {size}, {replicates} each"


def read_round_end(noted: str | None, path: Path) -> RoundEnd | None:
    """A fact of this kind of the ledger at `path`, if it is there."""
    return decode_fact(noted, RoundEnd, path, "a note about a round")


def ended_rounds(facts: Mapping[str, str], fingerprint: str, path: Path) -> int:
    """How many rounds have ended under a fingerprint."""
    ends = [read_round_end(noted, path) for name, noted in facts.items() if name.startswith("end of round ")]
    return sum(end is not None and end.fingerprint == fingerprint for end in ends)
