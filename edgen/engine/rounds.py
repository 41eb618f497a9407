"""Drives tasks by provider batch jobs: rounds of all requests that wait for an answer, each one batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from edgen.backends.batches import Batches
from edgen.engine.drive import Driver
from edgen.engine.line import Line
from edgen.engine.task import Tasks
from edgen.errors import EdgenError, UsageError
from edgen.events import Events
from edgen.ledger import Batch, Ledger
from edgen.limits import Budget


@dataclass(frozen=True, slots=True)
class BatchWay:
    """The batch service of each backend, by its name in the job. `write_only`: the folder that request files are
    written to, where nothing is to be sent."""

    services: Mapping[str, Batches]
    write_only: Path | None = None


def still_out(batches: Sequence[Batch]) -> UsageError:
    """Why a run whose batches are out is not gone on with call by call."""
    return UsageError(f"{len(batches)} batches of this run are out.")


class Rounds:
    """Like a Driver, by batches."""

    def __init__(
        self,
        tasks: Tasks,
        lines: Mapping[str, Line],
        ledger: Ledger,
        online: Driver,
        way: BatchWay,
        events: Events,
        budget: Budget | None,
    ) -> None:
        self.tally = online.tally

    @property
    def stopped(self) -> EdgenError | None:
        return None

    @property
    def in_flight(self) -> int:
        return 0

    @property
    def paused_for(self) -> float:
        return 0.0

    def stop(self, reason: EdgenError) -> None: ...

    def hurry(self) -> None: ...

    async def run(self, units: Iterator[tuple[int, int]]) -> None: ...
