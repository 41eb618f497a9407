"""The base classes of askers. A subclass declares what it asks. The engine does the rest: the ledger, the
loop, the estimate for --dry-run, the status.

A subclass has these methods:
    list_units  yields the units to ask about, as (scenario, task) in ascending order
    read_unit   returns the content of a unit's prompt
    ask         a generator that asks about a unit and reads the answers: one request, or several that depend
                on each other, such as a judge's votes in both orders, a list's windows, or a rollout's turns
    keep        returns the record of a result for the ledger
It can also override `count_calls`, `find_flaw` and the attributes below.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import msgspec

from edgen.asking.answering import Answerer
from edgen.config import CallSettings, Job
from edgen.core.digest import compute_fingerprint
from edgen.core.errors import RunError
from edgen.core.forms import Form
from edgen.core.plugins.faults import blame, refuse_value, require_type
from edgen.core.registry import find_plugin
from edgen.core.text import describe_type, shorten
from edgen.core.values import Rejection, Reply, Request, Status, TaskId
from edgen.core.version import __version__
from edgen.execution.progress import Title
from edgen.execution.session import RunSession
from edgen.planning.allowed_files import allow_all_files
from edgen.planning.load import load_template
from edgen.prompting import Prompt, load_prompt
from edgen.protocols.base import Question, Rules, Template, ask
from edgen.protocols.parts import Settled, Spent, Task, Tasks
from edgen.providers import Backend
from edgen.space import Space
from edgen.space.splits import hash_group
from edgen.store.ledger import RunPlan
from edgen.store.run_reader import RunReader

LEAST_REQUESTS = 50  # that a plugin's asker may make about one unit in any case
MOST_RECORD = 1_000_000  # bytes of the record that a plugin's asker keeps for a unit
_SLACK = 4  # times the requests that it expects

Unit = TypeVar("Unit")  # the content of a unit's prompt
Result = TypeVar("Result")  # the result of a unit
Answer = TypeVar("Answer")  # the result of one answer


def _check_request(name: str, left: Iterator[int], request: Any) -> Request:
    """Return a request of a plugin's asker about one unit. Raises FaultyPluginError for anything else, and
    when nothing is `left` of the requests that it may make."""
    if not isinstance(request, Request):
        refuse_value("asker", name, f"yielded {describe_type(request)}, not a Request")
    if next(left, None) is None:
        said = "asked far more requests about one unit than its `count_calls` gives, and did not end"
        refuse_value("asker", name, said)
    return request


def _require_order(name: str, units: Any) -> Iterator[tuple[int, Any]]:
    """Yield the units of a plugin's asker. Raises FaultyPluginError for one that is out of order: units that
    come again and again would have no end."""
    before: tuple[int, Any] = (-1, "")
    for unit in require_type("asker", name, units, Iterable, "units from `list_units`"):
        pair = isinstance(unit, tuple) and [*map(type, unit)] == [int, type(before[1])]
        if not pair or unit <= before:
            said = f"gave the unit {shorten(repr(unit), 80)} after {before!r}"
            refuse_value("asker", name, f"{said}; `list_units` yields (scenario, task) in ascending order")
        yield unit
        before = unit


class Asker(Tasks, Generic[Unit, Result]):
    """The base class of askers.

    job: the settings of the calls.
    id: the name of the ledger and, in a run, of the file of `facts` next to it.
    facts: the answerer and its settings, for that file.
    shaping: everything that shapes the outcomes except the answerer and the version of edgen.
    asks: the most requests for one answer, until it can be read.
    planned: the number of units, for display. scenarios: one more than the last scenario with a unit.
    """

    template: ClassVar[str]  # the name of a shipped template, or a file
    variables: ClassVar[Collection[str]]  # variables that the template may use
    expects: ClassVar[str | None] = None  # kind of answer, as templates name it; None: any
    key: ClassVar[str] = "--prompt"  # the option that names another template, for error messages
    nouns: ClassVar[str] = "units"  # the units, for --dry-run
    outcomes: tuple[str, str] = ("answered", "unread")  # for progress: units with and without a record
    roles: tuple[str, ...] = ("default",)  # the roles of the requests
    part: str = ""  # the arm, or the annotator, of one of several askers in a command
    logprobs: bool = False  # the ledger stores log probabilities
    begins_anew: ClassVar[bool] = False
    """Each start asks about all units, stored answers first, since the result is more than the sum of its
    records."""

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

    @abstractmethod
    def list_units(self) -> Iterator[tuple[int, Any]]:
        """Yield every unit."""

    @abstractmethod
    def read_unit(self, index: int, task: Any) -> Unit:
        """Return the content of a unit's prompt."""

    @abstractmethod
    def ask(self, unit: Unit) -> Generator[Request, Reply, Result | Rejection]:
        """Ask about a unit. Return the result, or a Rejection if no answer could be read."""

    @abstractmethod
    def keep(self, answer: Result, unit: Unit, spent: Spent) -> msgspec.Struct:
        """Return the record of a result in the ledger."""

    def find_flaw(self, record: Any) -> Rejection | None:  # noqa: ARG002
        """Return why a stored record is no valid answer; None if it is one."""
        return None

    def count_calls(self, index: int, task: Any) -> tuple[int, int]:  # noqa: ARG002
        """Return the expected and the maximum number of requests for one unit, without retries."""
        return 1, 1

    def find_group(self, index: int) -> int:  # noqa: ARG002
        """Return the hash of the group that a split keeps together; 0 if nothing is split."""
        return 0

    @property
    def title(self) -> Title:
        """Name the work for the progress display."""
        return Title(self._called, self.part, self.outcomes)

    def count(self) -> str:
        """Count the units, and return a digest of them."""
        digest = hashlib.blake2b(digest_size=8)
        name = getattr(self, "name", "")
        units = self.list_units()
        for unit in units if find_plugin("asker", name) is None else _require_order(name, units):
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
            require_type("asker", name, kept, msgspec.Struct, "a record from `keep`")
            if len(record) > MOST_RECORD and find_plugin("asker", name) is not None:
                said = f"returned a record of {len(record):,} bytes from `keep`; a unit has {MOST_RECORD:,} at most"
                refuse_value("asker", name, said)
            if (flaw := self.find_flaw(kept)) is not None:
                return Settled(Status.REJECTED, flaw.code, flaw.detail, record)
            return Settled.accepted(record)

        work = require_type("asker", name, self.ask(unit), Generator, "a generator from `ask`")
        check = None
        if find_plugin("asker", name) is not None:
            most = max(LEAST_REQUESTS, _SLACK * self.count_calls(scenario, task)[1] * self.asks)
            check = partial(_check_request, name, iter(range(most)))
        return Task(work, self.find_group(scenario), settle, name, check, "asker")

    def make_fingerprint(self, identities: Mapping[str, Mapping[str, Any]]) -> str:
        """Return a digest of everything that shapes the outcomes, 16 hex digits."""
        plain = {role: dict(identity) for role, identity in identities.items()}
        return compute_fingerprint({**self.shaping, "identities": plain, "edgen": __version__})

    def make_plan(self, under: str) -> RunPlan:
        """Return the plan that the ledger stores under a fingerprint."""
        return RunPlan(
            name=self.job.name,
            fingerprint=under,
            scenarios=self.scenarios,
            replicates=0,
            asked=self.planned,
            planned=self.planned or None,
        )

    def list_due_units(self, session: RunSession) -> Iterator[tuple[int, TaskId]]:
        """Yield the units without a valid outcome; all units if `begins_anew`."""
        return (
            self.list_units()
            if self.begins_anew
            else session.list_pending(self.list_units(), 0, self.scenarios)
        )

    async def work_through(self, session: RunSession) -> None:
        """Ask about every due unit. Raises the error that stopped it."""
        async with session.record():
            session.announce(self.make_plan(session.fingerprint))
            await session.scheduler.run(self.list_due_units(session))
            await session.ledger.flush()
            self.check(session)

    def check(self, session: RunSession) -> None:
        """Raise an error if the work has ended without a result."""


class FileAsker(Asker[Unit, Result]):
    """An asker that makes the file `out`, with its ledger next to it and one template. The job's `default`
    answers; a scenario is one unit."""

    work: ClassVar[str]  # the name of a job without a file
    made_up: ClassVar[str]  # a note about the simulator's answers

    @classmethod
    def load_prompt(cls, named: str | None) -> Prompt:
        """Read the template; `named` replaces the default. Raises TemplateError."""
        path = allow_all_files().require("prompts", named or cls.template, cls.key)
        return load_prompt(path, cls.variables, expects=cls.expects)

    @classmethod
    def require(cls, out: Path) -> None:
        """Raise UsageError if the file cannot be written. Called again once the ledger is locked, since
        another process may have written the file."""

    def __init__(self, job: Job, prompt: Prompt, out: Path, called: str):
        super().__init__(job, called=called, identifier=out.name)
        self.prompt = prompt
        self.out = out

    def make_plan(self, under: str) -> RunPlan:
        """Return the plan that the ledger stores: scenarios with one conversation."""
        count = self.scenarios
        return RunPlan(self.job.name, under, scenarios=count, replicates=1, asked=count)


class RunAsker(Asker[Unit, Result]):
    """An asker about the conversations of a run. `job`: the run's, with the settings of this asker."""

    def __init__(self, reader: RunReader, job: Job, identifier: str, facts: Mapping[str, Any], called: str):
        """`called`: the name of the work, displayed after the run's name."""
        super().__init__(job, called=f"{reader.name} {called}", identifier=identifier, facts=facts)
        self.reader = reader
        self.shaping = {"judge": self.id, "asks": job.asks, "seed": job.seed, "run": reader.fingerprints}

    def find_group(self, index: int) -> int:
        """Return the hash of the group that a scenario belongs to."""
        return hash_group(self.job.split.by, self.job.seed, self.reader.scenario(index))


class PromptAsker(RunAsker[Unit, Result]):
    """An asker about a run with one template and one backend, the answerer, under one role.

    A package adds a judge, an annotator, a writer or another asker about turns or conversations by an entry
    point of the group `edgen.askers`: the class, under its `name`.
    """

    name: ClassVar[str]  # of its entry point
    taken_by: ClassVar[str] = ""
    """The command and option that take the asker's name. The base class of each kind sets it."""
    in_facts: ClassVar[bool] = (
        True  # whether `facts` include the name; False for edgen's own, whose ledgers are older than names
    )
    shows: ClassVar[tuple[tuple[str, ...], ...]] = ()
    """The template must use all variables of one of these groups."""
    why: ClassVar[str] = "it asks about these"  # the error about a template that uses no group
    protocol: ClassVar[str] = ""  # protocol that the simulator imitates; empty: by the prompt
    role: ClassVar[str] = "judge"  # the role of the backend that answers
    settable: ClassVar[tuple[str, ...]] = ("backends", "limits", "batch", "asks", "forms")
    """The keys of the job that `--set` may change."""
    of_what: ClassVar[str]  # the work, in the error about a key that does not apply
    nothing: ClassVar[str] = "there is nothing to ask about"  # for the error: no conversation was accepted

    @classmethod
    def require(cls, reader: RunReader, job: Job) -> None:  # noqa: ARG003
        """Raise RunError or UsageError if this asker cannot ask about the run."""
        if not reader.accepted:
            path = reader.rundir.path
            raise RunError(f"{path}: no conversation was accepted in this run, so {cls.nothing}.")

    @classmethod
    def name_in_facts(cls) -> dict[str, str]:
        """Return the asker's name as part of an answerer's facts, since it shapes the answers."""
        return {"asker": cls.name} if cls.in_facts else {}

    @classmethod
    def make_template(cls, named: str | None) -> Template:
        """Return the template that the class declares; `named` replaces it for the same use."""
        own = Path(cls.template) if named is None else None
        file = own if own is not None and own.is_absolute() else None  # the class's package
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
    def read_prompt(cls, named: str | None, space: Space) -> Prompt:
        """Read the template for a run of a space. Raises TemplateError."""
        return load_template(cls.make_template(named), allow_all_files(), space)

    @classmethod
    def find_answerer(cls, backend: Backend, prompt: Prompt) -> Answerer:
        """Return the answerer that consists of a backend and a template."""
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
        """Return the form of the answer about a unit; None if the template describes it sufficiently."""
        return None

    def question(
        self,
        unit: Any,
        variables: Mapping[str, Any],
        read: Callable[[Reply], Answer | Rejection],
        step: int = 0,
    ) -> Generator[Request, Reply, Answer | Rejection]:
        """Ask about a unit with the template, and retry until an answer can be read. `step`: the number of
        the question, from 0, if a unit needs several."""
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
