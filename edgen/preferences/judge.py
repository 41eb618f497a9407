"""What a judge is, and its work on a run: a backend and a template, whose answers have a ledger of their own.

Whoever asks a judge about a run subclasses `JudgeTasks`: it says what is asked about and what is kept of an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, ClassVar, TypeVar

import msgspec

from edgen.config import Job
from edgen.core.digest import fingerprint
from edgen.core.errors import ShortError
from edgen.core.pair import Compare
from edgen.core.values import Rejection, Reply, Request
from edgen.preferences.run_tasks import RunTasks
from edgen.prompting import Prompt
from edgen.protocols.base import Rules
from edgen.protocols.task import Settled, Spent, Task
from edgen.providers import Backend
from edgen.store.run_reader import RunReader

T = TypeVar("T")


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


class JudgeTasks(RunTasks):
    """What one judge is asked about a run. `logprobs`: log probabilities are asked for, and kept."""

    logprobs = False
    unread_means: ClassVar[str]  # what a person can do where no answer can be read

    def __init__(self, reader: RunReader, job: Job, judge: Judge) -> None:
        super().__init__(reader, job, judge.id)
        self.judge = judge
        self.rules = Rules(asks=job.asks, seed=job.seed)
        self._unread_in_a_row = 0

    def work(
        self,
        index: int,
        protocol: Generator[Request, Reply, T | Rejection],
        record: Callable[[T, Spent], object],
    ) -> Task:
        """The work on one unit of a scenario; `record` makes of an answer that could be read what is kept of it."""

        def settle(result: T | Rejection, spent: Spent) -> Settled:
            if isinstance(result, Rejection):
                self.count_unread(result.detail)
                return Settled.rejected(result)
            self.count_read()
            return Settled.accepted(msgspec.json.encode(record(result, spent)))

        return Task(protocol, self.group(index), settle)

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
