"""What a judge is, and its work on a run: a backend and a template, whose answers have a ledger of their own.

Whoever asks a judge about a run subclasses `JudgeTasks`: it says what is asked about and what is kept of an answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import msgspec

from edgen.config import CallSettings, Job
from edgen.core.digest import fingerprint
from edgen.core.errors import ShortError
from edgen.core.pair import Compare
from edgen.core.version import __version__
from edgen.execution.session import Session
from edgen.prompting import Prompt
from edgen.protocols.base import Rules
from edgen.protocols.task import Task
from edgen.providers import Backend
from edgen.space.splits import group_hash
from edgen.store.ledger import RunPlan
from edgen.store.run_reader import RunReader


class Judge(msgspec.Struct, frozen=True, kw_only=True):
    """Who judges, and how it is asked. `id` names all that shapes an answer but the conversations, in 16 hex digits:
    backend, template and, where it compares, the way of comparing. `facts` are what is noted beside its ledger."""

    id: str
    model: str
    prompt: Prompt
    facts: dict[str, Any]

    @classmethod
    def of(cls, backend: Backend, prompt: Prompt, compare: Compare | None = None) -> Judge:
        """The judge that a backend is with a template."""
        identity = dict(backend.identity)
        way = {} if compare is None else {"compare": compare}
        name = fingerprint((identity, prompt.sha256, *way.values()))
        template = {"name": prompt.name, "sha256": prompt.sha256, "text": prompt.text}
        if prompt.schema is not None:
            template["schema"] = prompt.schema.decode()
        facts = {"judge": name, "backend": identity, **way, "template": template}
        return cls(id=name, model=backend.model, prompt=prompt, facts=facts)


class JudgeTasks:
    """What one judge is asked about a run, as the scheduler's tasks. `job` is the run's, with the settings of whoever
    asks. A unit is (scenario, number), in ascending order."""

    sharers = 1
    unread_means: ClassVar[str]  # what a person can do where no answer can be read

    def __init__(self, reader: RunReader, job: Job, judge: Judge) -> None:
        self.job = job
        self.call_settings = CallSettings.of(job)
        self.judge = judge
        self.reader = reader
        self.rules = Rules(asks=job.asks, seed=job.seed)
        self.shaping: dict[str, Any] = {}  # what shapes the outcomes besides judge, run and number of asks
        self.planned = 0
        self.scenarios = 0
        self._unread_in_a_row = 0

    def units(self) -> Iterator[tuple[int, str]]:
        """All that the judge is asked about."""
        raise NotImplementedError

    def task(self, index: int, name: str) -> Task:
        """The work on one unit."""
        raise NotImplementedError

    def fingerprint(self, identities: Mapping[str, Mapping[str, Any]]) -> str:
        """A name, 16 hex digits, for the judge and what it is asked about."""
        return fingerprint(
            {
                "judge": self.judge.id,
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

    def count_read(self) -> None:
        self._unread_in_a_row = 0

    def count_unread(self, detail: str) -> None:
        """Raise ShortError where no answer can be read any more: the rest would be paid for in vain."""
        self._unread_in_a_row += 1
        if self._unread_in_a_row >= self.job.limits.stop_after_failures:
            raise ShortError(
                f"{self._unread_in_a_row} answers of the judge in a row could not be read, so the rest was not asked "
                f"({detail}). {self.unread_means}"
            )

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
