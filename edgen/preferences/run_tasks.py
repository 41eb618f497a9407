"""Work on what a run holds, as a scheduler's tasks: judges' and continuations alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from edgen.config import CallSettings, Job
from edgen.core.digest import fingerprint
from edgen.core.version import __version__
from edgen.execution.session import Session
from edgen.protocols.task import Tasks
from edgen.space.splits import group_hash
from edgen.store.ledger import RunPlan
from edgen.store.run_reader import RunReader


class RunTasks(Tasks):
    """What is asked about a run. `job` is the run's, with the settings of whoever asks; `id` names in 16 hex digits who
    answers and how it is asked. A unit is (scenario, task), in ascending order."""

    def __init__(self, reader: RunReader, job: Job, identifier: str) -> None:
        self.job = job
        self.call_settings = CallSettings.of(job)
        self.id = identifier
        self.reader = reader
        self.shaping: dict[
            str, Any
        ] = {}  # what shapes the outcomes besides who answers, run and number of asks
        self.planned = 0
        self.scenarios = 0

    def units(self) -> Iterator[tuple[int, str]]:
        """All that is asked about."""
        raise NotImplementedError

    def fingerprint(self, identities: Mapping[str, Mapping[str, Any]]) -> str:
        """A name, 16 hex digits, for who answers and what is asked about."""
        return fingerprint(
            {
                "judge": self.id,
                "identities": {role: dict(identity) for role, identity in identities.items()},
                "asks": self.job.asks,
                "seed": self.job.seed,
                "run": self.reader.fingerprints,
                "edgen": __version__,
                **self.shaping,
            }
        )

    def group(self, index: int) -> int:
        """The hash of the group that a scenario belongs to."""
        return group_hash(self.job.split.by, self.job.seed, self.reader.scenario(index))

    async def work_through(self, session: Session) -> None:
        """Ask about what has no answer yet. Raises what stopped it."""
        async with session.record():
            plan = RunPlan(
                name=self.job.name,
                fingerprint=session.fingerprint,
                scenarios=self.scenarios,
                replicates=0,
                asked=self.planned,
                planned=self.planned or None,
            )
            session.announce(plan)
            await session.scheduler.run(session.pending(self.units(), 0, self.scenarios))
            await session.ledger.flush()
