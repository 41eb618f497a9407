"""The base classes of askers. A subclass declares what it asks; the engine does everything else: the ledger,
the loop, the estimate for --dry-run, the status.

A declaration has
    list_units  the units that it asks about, as (scenario, task) in ascending order
    read_unit   what a unit's prompt shows
    ask         a generator that asks about a unit and reads the answers: one request, or several that depend
                on each other, such as a judge's votes in both orders, a list's windows, or a rollout's turns
    keep        the record of a result in the ledger
and, where they differ from the usual ones, `count_calls`, `find_flaw` and the attributes below.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import msgspec

from edgen.asking.answering import Answerer
from edgen.config import CallSettings, Job
from edgen.core.digest import compute_fingerprint
from edgen.core.errors import RunError
from edgen.core.forms import Form
from edgen.core.plugins.faults import blame, require_type
from edgen.core.text import shorten
from edgen.core.values import Rejection, Reply, Request, Status, TaskId
from edgen.core.version import __version__
from edgen.execution.progress import Title
from edgen.execution.session import RunSession
from edgen.planning.allowed_files import make_unlimited_reach
from edgen.prompting import Prompt, load_prompt
from edgen.protocols.base import Question, Rules, Template, ask
from edgen.protocols.parts import Settled, Spent, Task, Tasks
from edgen.providers import Backend
from edgen.space import Space
from edgen.space.splits import hash_group
from edgen.store.ledger import RunPlan
from edgen.store.run_reader import RunReader

Unit = TypeVar("Unit")  # what a unit's prompt shows
Result = TypeVar("Result")  # what is read of the answers about a unit
Answer = TypeVar("Answer")  # what is read of one answer


class Asker(Tasks, Generic[Unit, Result]):
    """The base class of askers.

    job: the settings of the calls.
    id: the name of the ledger, and in a run that of the file of `facts` next to it.
    facts: who answers and how they are asked, for that file.
    shaping: what shapes the outcomes besides the answerer and this edgen.
    asks: how often a request is made until its answer can be read.
    planned: the number of units that is displayed. scenarios: one more than the last scenario with a unit.
    """

    template: ClassVar[str]  # the name of a shipped template, or a file
    variables: ClassVar[Collection[str]]  # that the template may use
    expects: ClassVar[str | None] = None  # kind of its answer, as templates name it; None: any
    key: ClassVar[str] = "--prompt"  # how errors call the choice of another template
    nouns: ClassVar[str] = "units"  # what --dry-run calls the units
    outcomes: tuple[str, str] = ("answered", "unread")  # how progress calls units with and without a record
    roles: tuple[str, ...] = ("default",)  # the roles that requests name
    part: str = ""  # which of several askers of one command this is: an arm, or an annotator
    logprobs: bool = False  # the ledger keeps log probabilities
    begins_anew: ClassVar[bool] = False
    """Each start asks about all units, with the stored answers first: the result is no sum of records."""

    def __init__(self, job: Job, *, called: str, identifier: str, facts: Mapping[str, Any] | None = None):
        """`called`: the name of the work in the progress display."""
        self.job = job
        self.call_settings = CallSettings.of(job)
        self.rules = Rules(asks=job.asks, seed=job.seed, backends=job.backends)
        self.id = identifier
        self.facts: dict[str, Any] = dict(facts or {})
        self.shaping: dict[str, Any] = {}
        self.asks = job.asks
        self.planned = 0
        self.scenarios = 0
        self._called = called

    @classmethod
    def load_prompt(cls, named: str | None) -> Prompt:
        """Read the template; `named`: another one. Raises TemplateError."""
        path = make_unlimited_reach().require("prompts", named or cls.template, cls.key)
        return load_prompt(path, cls.variables, expects=cls.expects)

    @abstractmethod
    def list_units(self) -> Iterator[tuple[int, Any]]:
        """Yield every unit."""

    @abstractmethod
    def read_unit(self, index: int, task: Any) -> Unit:
        """Return what is shown of a unit."""

    @abstractmethod
    def ask(self, unit: Unit) -> Generator[Request, Reply, Result | Rejection]:
        """Ask about a unit, and return the result, or a Rejection if it could not be read."""

    @abstractmethod
    def keep(self, answer: Result, unit: Unit, spent: Spent) -> msgspec.Struct:
        """Return the record of a result in the ledger."""

    def find_flaw(self, record: Any) -> Rejection | None:  # noqa: ARG002
        """Return why a record, which is kept, is no answer; None if it is one."""
        return None

    def count_calls(self, index: int, task: Any) -> tuple[int, int]:  # noqa: ARG002
        """Return the requests for one unit, each counted once: as expected, and at most."""
        return 1, 1

    def find_group(self, index: int) -> int:  # noqa: ARG002
        """Return the hash of the group that the split keeps on one side; 0 where nothing is split."""
        return 0

    @property
    def title(self) -> Title:
        """Name the work for the progress display."""
        return Title(self._called, self.part, self.outcomes)

    def count(self) -> str:
        """Count the units, and return a digest of them."""
        digest = hashlib.blake2b(digest_size=8)
        for unit in self.list_units():
            digest.update("{} {}\n".format(*unit).encode())
            self.planned += 1
            self.scenarios = unit[0] + 1
        return digest.hexdigest()

    def make_task(self, scenario: int, task: Any) -> Task:
        """Return the work on one unit."""
        unit, name = self.read_unit(scenario, task), getattr(self, "name", "")

        def settle(result: Result | Rejection, spent: Spent) -> Settled:
            if isinstance(result, Rejection):
                return Settled.rejected(result)
            try:
                kept = self.keep(result, unit, spent)
                record = msgspec.json.encode(kept)
            except Exception as error:  # noqa: BLE001 - raised again
                blame("asker", name, error, f"for the answer {shorten(repr(result), 80)}")
            if (flaw := self.find_flaw(kept)) is not None:
                return Settled(Status.REJECTED, flaw.code, flaw.detail, record)
            return Settled.accepted(record)

        work = require_type("asker", name, self.ask(unit), Generator, "a generator from `ask`")
        return Task(work, self.find_group(scenario), settle)

    def make_fingerprint(self, identities: Mapping[str, Mapping[str, Any]]) -> str:
        """Return a name for everything that shapes the outcomes, 16 hex digits."""
        plain = {role: dict(identity) for role, identity in identities.items()}
        return compute_fingerprint({**self.shaping, "identities": plain, "edgen": __version__})

    def make_plan(self, under: str) -> RunPlan:
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
        """Yield the units without a valid outcome; all of them if the work begins again."""
        return (
            self.list_units()
            if self.begins_anew
            else session.list_pending(self.list_units(), 0, self.scenarios)
        )

    async def work_through(self, session: RunSession) -> None:
        """Ask about every unit that is due. Raises what stopped it."""
        async with session.record():
            session.announce(self.make_plan(session.fingerprint))
            await session.scheduler.run(self.list_due_units(session))
            await session.ledger.flush()
            self.check(session)

    def check(self, session: RunSession) -> None:
        """Raise where the work has ended without a result."""


class FileAsker(Asker[Unit, Result]):
    """An asker for the file `out`, whose ledger is next to it, with one template. The job's `default`
    answers; a scenario is one unit."""

    work: ClassVar[str]  # the name of a job without a file
    made_up: ClassVar[str]  # what is said of the simulator's answers

    @classmethod
    def require(cls, out: Path) -> None:
        """Raise UsageError where the file cannot be written; also once the ledger is locked, since another
        process may have written it."""

    def __init__(self, job: Job, prompt: Prompt, out: Path, called: str):
        super().__init__(job, called=called, identifier=out.name)
        self.prompt = prompt
        self.out = out

    def make_plan(self, under: str) -> RunPlan:
        """Return what the ledger notes as planned: scenarios with one conversation."""
        count = self.scenarios
        return RunPlan(self.job.name, under, scenarios=count, replicates=1, asked=count)


class RunAsker(Asker[Unit, Result]):
    """An asker about the conversations of a run. `job`: the run's, with the settings of this asker."""

    def __init__(self, reader: RunReader, job: Job, identifier: str, facts: Mapping[str, Any], called: str):
        """`called`: the work's name after the run's."""
        super().__init__(job, called=f"{reader.name} {called}", identifier=identifier, facts=facts)
        self.reader = reader
        self.shaping = {"judge": self.id, "asks": job.asks, "seed": job.seed, "run": reader.fingerprints}

    def find_group(self, index: int) -> int:
        """Return the hash of the group that a scenario belongs to."""
        return hash_group(self.job.split.by, self.job.seed, self.reader.scenario(index))


class PromptAsker(RunAsker[Unit, Result]):
    """An asker about a run with one template and one backend, the answerer, under one role.

    A package adds a judge, an annotator, a writer or another asker about turns or conversations by an entry
    point of the group `edgen.askers`: the class, by its `name`.
    """

    name: ClassVar[str]  # of its entry point
    taken_by: ClassVar[str] = ""
    """The command and its option that take the name of such an asker; the base class of a kind sets it."""
    in_facts: ClassVar[bool] = (
        True  # whether its answerers are named after it; ledgers of edgen's own are older
    )
    shows: ClassVar[tuple[tuple[str, ...], ...]] = ()
    """A template has to use all variables of one of these."""
    why: ClassVar[str] = "it asks about these"  # said of a template that uses none of them
    protocol: ClassVar[str] = ""  # whose answers the simulator gives; empty: those that fit the prompt
    role: ClassVar[str] = "judge"  # under which the backend answers
    settable: ClassVar[tuple[str, ...]] = ("backends", "limits", "batch", "asks", "forms")
    """The keys of the job that `--set` may change."""
    of_what: ClassVar[str]  # the work that these keys are for, in the error about another one
    nothing: ClassVar[str] = "there is nothing to ask about"  # said of a run without accepted conversations

    @classmethod
    def require(cls, reader: RunReader, job: Job) -> None:  # noqa: ARG003
        """Raise RunError or UsageError where a run cannot be asked about."""
        if not reader.accepted:
            path = reader.rundir.path
            raise RunError(f"{path}: no conversation was accepted in this run, so {cls.nothing}.")

    @classmethod
    def name_in_facts(cls) -> dict[str, str]:
        """Return what the facts of an answerer say of the asker, which shapes its answers."""
        return {"asker": cls.name} if cls.in_facts else {}

    @classmethod
    def make_template(cls, named: str | None) -> Template:
        """Return the template that the class declares; `named`: another one of the same use."""
        own = Path(cls.template) if named is None else None
        file = own if own is not None and own.is_absolute() else None  # of the class's package
        return Template(
            name=named if named is not None or file is not None else cls.template,
            file=file,
            key=cls.key,
            expects=cls.expects or "",
            variables=tuple(cls.variables),
            shows=cls.shows,
            why=cls.why,
            asked=cls.role,
        )

    @classmethod
    def read_prompt(cls, named: str | None, space: Space) -> Prompt:  # noqa: ARG003
        """Read the template for a run of a space. Raises TemplateError."""
        return cls.load_prompt(named)

    @classmethod
    def find_answerer(cls, backend: Backend, prompt: Prompt) -> Answerer:
        """Return the answerer that a backend is with a template."""
        return Answerer.of(backend, prompt)

    def __init__(self, reader: RunReader, job: Job, answerer: Answerer, called: str):
        super().__init__(reader, job, answerer.id, answerer.facts, called)
        self.answerer = answerer
        self.roles = (self.role,)

    @property
    def prompt(self) -> Prompt:
        """The template."""
        return self.answerer.prompt

    def make_form(self, unit: Unit) -> Form | None:  # noqa: ARG002
        """Return the form of the answer about a unit, None if the template's words suffice."""
        return None

    def question(
        self,
        unit: Any,
        variables: Mapping[str, Any],
        read: Callable[[Reply], Answer | Rejection],
        step: int = 0,
    ) -> Generator[Request, Reply, Answer | Rejection]:
        """Ask about a unit with the template, again until an answer can be read. `step`: the number of the
        question, from 0, where one depends on another or there are several."""
        form = self.make_form(unit)
        question = Question(
            msgspec.structs.replace(unit.address, step=step),
            self.prompt.messages(variables),
            self.protocol,
            self.role,
            self.prompt.schema,
            form=None if form is None else self.prompt.form(form),
        )
        return (yield from ask(question, self.rules, read))
