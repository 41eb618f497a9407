"""The base classes of askers: units, a prompt and a reader for each, and the record that its ledger keeps of
an answer.

A subclass has `units`, and `task`, which starts the generator that asks about one unit and reads the answers.
Everything else (the ledger, the loop, --dry-run) is the engine's. A unit is (scenario, task), in ascending
order.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from edgen.asking.answering import Answerer
from edgen.config import CallSettings, Job
from edgen.core.digest import fingerprint
from edgen.core.values import Rejection, Reply, Request, TaskId
from edgen.core.version import __version__
from edgen.execution.session import RunSession
from edgen.prompting import Prompt
from edgen.protocols.base import Rules
from edgen.protocols.task import Settled, Spent, Task, Tasks
from edgen.runtime.snapshot import Title
from edgen.space.splits import group_hash
from edgen.store.ledger import RunPlan
from edgen.store.run_reader import RunReader

T = TypeVar("T")


class Asker(Tasks):
    """The base class of askers.

    job: the settings of the calls.
    id: the name of the ledger, and in a run that of the file of `facts` next to it.
    facts: who answers and how they are asked, for that file.
    shaping: what shapes the outcomes besides the answerer, the data and the number of asks.
    planned: the number of units. scenarios: one more than the last scenario with a unit.
    """

    outcomes: tuple[str, str] = ("answered", "unread")  # how progress calls units with and without a record
    roles: tuple[str, ...] = ("default",)  # the roles that requests name
    part: str = ""  # which of several askers of one command this is: an arm, or an annotator
    logprobs: bool = False  # the ledger keeps log probabilities

    def __init__(self, job: Job, *, called: str, identifier: str, facts: Mapping[str, Any] | None = None):
        """`called`: the name of the work in the progress display."""
        self.job = job
        self.call_settings = CallSettings.of(job)
        self.rules = Rules(asks=job.asks, seed=job.seed, backends=job.backends)
        self.id = identifier
        self.facts: dict[str, Any] = dict(facts or {})
        self.shaping: dict[str, Any] = {}
        self.planned = 0
        self.scenarios = 0
        self._called = called

    @property
    def title(self) -> Title:
        """Name the work for the progress display."""
        return Title(self._called, self.part, self.outcomes)

    @abstractmethod
    def units(self) -> Iterator[tuple[int, Any]]:
        """Yield every unit."""

    @abstractmethod
    def task(self, scenario: int, task: Any) -> Task:
        """Return the work on one unit, which `work` makes of a generator that asks and reads."""

    @abstractmethod
    def fingerprint(self, identities: Mapping[str, Mapping[str, Any]]) -> str:
        """Return a name for everything that shapes the outcomes, as `digest` makes it."""

    def calls(self, index: int, task: Any) -> tuple[int, int]:  # noqa: ARG002
        """Return the requests for one unit, each counted once: as expected, and at most."""
        return 1, 1

    def group(self, index: int) -> int:  # noqa: ARG002
        """Return the hash of the group that the split keeps on one side; 0 where nothing is split."""
        return 0

    def work(
        self,
        index: int,
        protocol: Generator[Request, Reply, T | Rejection],
        record: Callable[[T, Spent], object],
    ) -> Task:
        """Return the work on one unit. `record` makes what the ledger keeps of a result; a rejection has no
        record."""

        def settle(result: T | Rejection, spent: Spent) -> Settled:
            if isinstance(result, Rejection):
                return Settled.rejected(result)
            return Settled.accepted(msgspec.json.encode(record(result, spent)))

        return Task(protocol, self.group(index), settle)

    def plan(self, under: str) -> RunPlan:
        """Return what the ledger notes as planned, under a fingerprint."""
        return RunPlan(
            name=self.job.name,
            fingerprint=under,
            scenarios=self.scenarios,
            replicates=0,
            asked=self.planned,
            planned=self.planned or None,
        )

    def list_due_units(self, session: RunSession) -> Iterator[tuple[int, TaskId]]:
        """Yield the units without an outcome that still stands."""
        return session.list_pending(self.units(), 0, self.scenarios)

    async def work_through(self, session: RunSession) -> None:
        """Ask about every unit that is due. Raises what stopped it."""
        async with session.record():
            session.announce(self.plan(session.fingerprint))
            await session.scheduler.run(self.list_due_units(session))
            await session.ledger.flush()
            self.check(session)

    def check(self, session: RunSession) -> None:
        """Raise where the work has ended without a result."""

    @staticmethod
    def digest(facts: Mapping[str, Any], identities: Mapping[str, Mapping[str, Any]]) -> str:
        """Return the fingerprint, 16 hex digits, of facts that shape the outcomes, of the answerers, and of
        this edgen."""
        plain = {role: dict(identity) for role, identity in identities.items()}
        return fingerprint({**facts, "identities": plain, "edgen": __version__})


class FileAsker(Asker):
    """An asker for the file `out`, whose ledger is next to it. The job's `default` answers."""

    def __init__(self, job: Job, out: Path, called: str):
        super().__init__(job, called=called, identifier=out.name)
        self.out = out


class RunAsker(Asker):
    """An asker about the conversations of a run. `job`: the run's, with the settings of this asker."""

    def __init__(self, reader: RunReader, job: Job, identifier: str, facts: Mapping[str, Any], called: str):
        """`called`: the work's name after the run's."""
        super().__init__(job, called=f"{reader.name} {called}", identifier=identifier, facts=facts)
        self.reader = reader

    def fingerprint(self, identities: Mapping[str, Mapping[str, Any]]) -> str:
        """Return a name for the answerer and for what is asked about."""
        facts = {
            "judge": self.id,
            "asks": self.job.asks,
            "seed": self.job.seed,
            "run": self.reader.fingerprints,
            **self.shaping,
        }
        return self.digest(facts, identities)

    def group(self, index: int) -> int:
        """Return the hash of the group that a scenario belongs to."""
        return group_hash(self.job.split.by, self.job.seed, self.reader.scenario(index))


class PromptAsker(RunAsker):
    """An asker about a run with one template and one backend, the answerer, under one role."""

    role: str = "judge"

    def __init__(self, reader: RunReader, job: Job, answerer: Answerer, called: str):
        super().__init__(reader, job, answerer.id, answerer.facts, called)
        self.answerer = answerer
        self.roles = (self.role,)

    @property
    def prompt(self) -> Prompt:
        """The template."""
        return self.answerer.prompt
