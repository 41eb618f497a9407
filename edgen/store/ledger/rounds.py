"""Ends of rounds, noted in the ledger before the next round sends requests.

A note holds the conversations that had failed by then. Even if they succeed in a later session, later rounds
are made without them, so that these rounds' requests stay the same and are not paid twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from edgen.store.ledger.opening import decode_fact


class RoundEnd(msgspec.Struct, frozen=True):
    """The end of a round. `fingerprint`: of the job when last noted; `failed`: (scenario, task), in order."""

    fingerprint: str
    failed: tuple[tuple[int, int], ...]


def fact_of_round(number: int, size: int, replicates: int) -> str:
    """Return the name of the fact that round `number`, of that many scenarios and replicates, has ended."""
    return f"end of round {number} of {size}, {replicates} each"


def read_round_end(noted: str | None, path: Path) -> RoundEnd | None:
    """Return the end of a round, if the ledger has it."""
    return decode_fact(noted, RoundEnd, path, "a note about a round")


def ended_rounds(facts: Mapping[str, str], fingerprint: str, path: Path) -> int:
    """Return the number of rounds that have ended under a fingerprint."""
    ends = [read_round_end(noted, path) for name, noted in facts.items() if name.startswith("end of round ")]
    return sum(end is not None and end.fingerprint == fingerprint for end in ends)
