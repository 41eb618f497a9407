"""The values that a protocol and the rest of edgen pass to each other: the rules and templates of a job, and
one unit of work as a scheduler sees it, which is a conversation, a comparison or any other task.

Briefs are the texts about a space for each of its roles.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from typing import Protocol as Face

import msgspec

from edgen.config import BackendConfig, Branch, CallSettings, TooLong
from edgen.core.forms import AnyForm, Form
from edgen.core.resources import Folder
from edgen.core.text import is_forbidden, join_list
from edgen.core.values import (
    AnswerTime,
    Conversation,
    Message,
    Rejection,
    Reply,
    Request,
    Scenario,
    Status,
    TaskId,
)
from edgen.reading.roles import learns, teaches
from edgen.space.model import Scene, Space, SpaceBook, SpaceRole, list_layout_roles

if TYPE_CHECKING:
    from edgen.reading.roles import OwnWords, RoleWords


Result = Conversation | Rejection
Conversing = Generator[Request, Reply, Result]


class Prompting(Face):
    """A protocol's view of a template: variables in, messages out, the variables that it reads, the schema of
    its answers, and whether they are requested by a form."""

    @property
    def schema(self) -> bytes | None: ...

    @property
    def variables_used(self) -> frozenset[str]: ...

    def form(self, form: AnyForm, role: str = "") -> Form | None: ...

    def messages(self, variables: Mapping[str, Any]) -> tuple[Message, ...]: ...


class Rules(msgspec.Struct, frozen=True, dict=True):
    """Rules of a job's requests."""

    asks: int  # tries for one answer before the last one counts as rejected
    seed: int  # seed of the job
    settings: Any = None  # the protocol's own
    branch: Branch | None = None  # branching of replicates; None without it
    words: OwnWords = ()  # the job's own words for the roles, for reading replies
    roles: tuple[SpaceRole, ...] = msgspec.field(default_factory=list_layout_roles)  # roles of the space
    prepared: Any = None  # data that the protocol made once for all of a job's conversations
    too_long: TooLong = "cut"  # treatment of cut-off turns, as in the job
    backends: Mapping[str, BackendConfig] = {}  # the job's, by role; empty: unknown
    several: bool = False  # several answers to one prompt are wanted (`Request.one_of_several`)
    book: SpaceBook | None = None  # the space, as the simulator speaks of it

    def backend(self, role: str) -> BackendConfig | None:
        """Return the backend that answers a role; None if unknown."""
        return self.backends.get(role, self.backends.get("default"))

    def by_people(self, role: str) -> bool:
        """Return whether people answer for a role, who need a view of what it knows."""
        return (backend := self.backend(role)) is not None and backend.BY_PEOPLE

    def scene(self, scenario: Scenario, role: str | None = None) -> Scene | None:
        """Return what the simulator knows of a scenario when it speaks for a role, or for all."""
        return None if self.book is None else Scene(self.book, scenario, role)

    @functools.cached_property
    def role_words(self) -> RoleWords:
        """The readers' knowledge of the roles."""
        return find_role_words(tuple(role.name for role in self.roles))

    @functools.cached_property
    def speakers(self) -> tuple[tuple[str, ...], ...]:
        """Each role with the job's own words for it, as requests name the possible speakers."""
        own = dict(self.words)
        return tuple((role.name, *own.get(role.name, ())) for role in self.roles)

    def reading(self, reply: Reply) -> dict[str, Any]:
        """Return how a reply of any role is read, in the arguments of the readers of turns and
        conversations."""
        return {**describe_ending(reply), "words": self.words, "roles": self.role_words}


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A template of a protocol."""

    name: str | None  # the job's, else a shipped one's; None: the job names none
    key: str  # of the job, that names it
    expects: str  # the kind of its answer, the protocol's own or another's
    variables: tuple[str, ...]  # those that it may use
    file: Path | None = None  # the package's own for a job that names none; None: the job has to name one
    reports: tuple[str, ...] = ()  # variables that a person is warned of if it never uses them
    wholes: tuple[str, ...] = ()  # variables that contain all of `reports`
    shows: tuple[tuple[str, ...], ...] = ()  # it has to use all variables of one of these
    why: str = ""  # the reason for `shows`
    asked: str = "default"  # the role that gets it
    also: tuple[str, ...] = ()  # other roles that get it
    stand_ins: Mapping[str, Any] = field(default_factory=dict)
    """Values for variables that are no texts, for a trial before any request."""


class ExpectedCall(NamedTuple):
    """A call that a conversation is expected to make, for an estimate."""

    role: str  # role that answers
    use: str  # of the template
    tokens: tuple[float, float, float]  # of its answer: low, expected, high
    hears: bool = False  # its prompt holds the conversation so far
    heard: bool = False  # its answer is in later prompts
    own: bool = False  # a replicate that leaves another one makes it for itself all the same


class Rounds(NamedTuple):
    """Division of a job's scenarios by their index: `total` rounds of `size` scenarios each, the last with
    the rest.

    Later rounds may use the results of earlier ones; they begin when these are settled.
    """

    total: int = 1
    size: int = 0

    def of(self, index: int) -> int:
        """Return the round of a scenario, counted from 0."""
        return min(index // self.size, self.total - 1) if self.total > 1 else 0

    def split(self, first: int, end: int) -> Iterator[tuple[int, int, int]]:
        """(round, first, end) of the scenarios first <= index < end."""
        while first < end:
            number = self.of(first)
            stop = end if number == self.total - 1 else min(end, (number + 1) * self.size)
            yield number, first, stop
            first = stop


class Starter(NamedTuple):
    """Start of `edgen init`: a shipped job, shipped templates by the names of their copies, the role whose
    backend the job's first lines show, and a sentence for the help text.

    `folders`: shipped folders that the job names, by the key that names each.
    """

    job: str
    templates: Mapping[str, str]
    role: str
    help: str
    folders: Mapping[str, tuple[Folder, str]] = {}


def describe_ending(reply: Reply) -> dict[str, Any]:
    """Return how a reply ended, in the arguments of all readers."""
    return {"finish_reason": reply.finish_reason, "refusal": reply.refusal}


@functools.cache
def find_role_words(names: tuple[str, ...]) -> RoleWords:
    """Return the readers' knowledge of a space's roles."""
    from edgen.reading.roles import find_words

    return find_words(names)


class AnsweringModel(msgspec.Struct, frozen=True):
    """The answering party: the backend's kind and the model's name."""

    backend: str
    model: str


class Spent(msgspec.Struct):
    """Sums over one task's calls, the answering parties, and the end of the last answer."""

    asks: int = 0  # answered calls
    prompt_tokens: int = 0  # of all calls
    completion_tokens: int = 0  # of all calls
    finish_reason: str = "stop"  # of the last answer
    key: bytes | None = None  # of the last request in the ledger; None before the first
    simulated: bool = False  # no model wrote at least one answer
    by_role: dict[str, AnsweringModel] = {}  # answering party of each role
    times: list[AnswerTime] = []  # of people's answers

    def add(self, reply: Reply, key: bytes, asked: Request, backend: str, model: str) -> None:
        """Count the answer to a request. `model` serves where the reply does not name its own."""
        self.asks += 1
        if reply.usage is not None:
            self.prompt_tokens += reply.usage.prompt_tokens
            self.completion_tokens += reply.usage.completion_tokens
        self.finish_reason = reply.finish_reason
        self.key = key
        self.simulated |= reply.simulated
        self.by_role[asked.role] = AnsweringModel(backend, _clean_model_name(reply.model or model))
        if (given := reply.given) is not None:
            place = asked.address
            self.times.append(
                AnswerTime(asked.role, place.step, place.attempt, *msgspec.structs.astuple(given))
            )


def _clean_model_name(name: str) -> str:
    """Return a model's name, which a service may choose freely, as one line without control characters."""
    if len(name) <= 200 and name.isprintable():
        return name.strip()
    return "".join(" " if is_forbidden(char) else char for char in name[:200]).strip()


class Settled(msgspec.Struct, frozen=True):
    """The end of a task: a record, or a reason for its absence. `beside`: further values to keep, as JSON, by
    name."""

    status: Status
    reason: str | None = None
    detail: str | None = None
    record: bytes | None = None
    beside: Mapping[str, bytes] = {}

    @classmethod
    def accepted(cls, record: bytes, beside: Mapping[str, bytes] | None = None) -> Settled:
        """Return the end with a result: `record` is kept, and so is `beside`."""
        return cls(Status.ACCEPTED, record=record, beside=beside or {})

    @classmethod
    def rejected(cls, rejection: Rejection) -> Settled:
        """Return the end of an answered task without a result."""
        return cls(Status.REJECTED, rejection.code, rejection.detail)


@dataclass(frozen=True, slots=True)
class Task:
    """`protocol` yields requests and returns a result; `settled` makes an outcome of that.

    `group` is the hash of the group that the split keeps on one side. `made_by` is the protocol's name, where
    a job names one.
    """

    protocol: Generator[Request, Reply, Any]
    group: int
    settled: Callable[[Any, Spent], Settled]
    made_by: str = ""
    check: Callable[[Any], Request] | None = None
    """Checks each request of a plugin's protocol."""


class Tasks(Face):
    """Source of a scheduler's tasks.

    `sharers`: the number of tasks that may make the same request, up to the address; 1 if none does.
    `useless_help`: advice if hardly any answer is usable; empty: the reasons suffice.
    """

    call_settings: CallSettings
    sharers: int = 1
    useless_help: str = ""

    def make_task(self, scenario: int, task: Any) -> Task:
        """Return the work on one task of a scenario."""
        ...

    def list_twins(self, scenario: int, task: Any) -> Iterable[TaskId]:
        """Return the other tasks of a scenario that may begin with the same question, each for an answer of
        its own."""
        return ()

    def make_fingerprint(self, identities: Mapping[str, Mapping[str, Any]]) -> str:
        """Return a name for everything that shapes the outcomes, with the backends' identities by role."""
        ...


Labels = Mapping[str, str]  # what people call each dimension

TURN_VARIABLES = ("role", "others", "brief")
CONVERSATION_VARIABLES = ("space_roles", "space_goal", "scenario_lines", "roles", "probability")


def labels_of(space: Space) -> dict[str, str]:
    """Return what people call each dimension of a space, in the space's order."""
    return {one.name: one.label or one.name.replace("_", " ") for one in space.dimensions}


def describe_values(scenario: Scenario, names: Collection[str], labels: Labels) -> str:
    """Return a line for each of these dimensions: its label, its value and what the value says of itself."""
    return "\n".join(
        f"- {labels.get(name, name.replace('_', ' '))}: {scenario.values[name]}{_describe_fields(scenario, name)}"
        for name in scenario.values
        if name in names
    )


def _describe_fields(scenario: Scenario, name: str) -> str:
    said = [
        f"{field.replace('_', ' ')}: {_join_value(value)}"
        for field, value in scenario.fields.get(name, {}).items()
        if is_worded(value) and value is not None
    ]
    return f" ({'; '.join(said)})" if said else ""


def is_worded(value: Any) -> bool:
    """Return whether what an entry says of itself can stand in a line: a text, a number, a list of these, or
    nothing."""
    if isinstance(value, list | tuple):
        return all(isinstance(one, str | int | float) for one in value)
    return value is None or isinstance(value, str | int | float)


def _join_value(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def make_turn_variables(
    scenario: Scenario, roles: Sequence[SpaceRole], role: SpaceRole, labels: Labels
) -> dict[str, str]:
    """Return the variables of a template for one role's turns, in addition to the dimensions that the role
    sees."""
    return {
        "role": role.name,
        "others": join_list(other.name for other in roles if other.name != role.name),
        "brief": describe_values(scenario, role.sees, labels),
    }


def conversation_variables(
    scenario: Scenario, roles: Sequence[SpaceRole], labels: Labels, goal: str
) -> dict[str, Any]:
    """Return the variables of a template for whole conversations, in addition to the dimensions.

    `roles` says by name what each role sees; `probability` names the event, and is empty without a
    learner.
    """
    seen = {
        role.name: ", ".join(
            labels.get(name, name.replace("_", " ")) for name in scenario.values if name in role.sees
        )
        for role in roles
    }
    return {
        "space_roles": join_list(seen),
        "space_goal": goal,
        "scenario_lines": describe_values(scenario, scenario.values, labels),
        "roles": seen,
        "probability": f"the {taught} understood the material" if (taught := learner(roles)) else "",
    }


def describe_space(space: Space, scenario: Scenario) -> dict[str, str]:
    """Return the variables of a judge's template on a space and on a scenario's values, by
    their labels."""
    names = [role.name for role in space.roles]
    return {
        "space_roles": " and ".join([", ".join(names[:-1]), names[-1]]),
        "space_goal": space.description or "",
        "scenario_lines": "\n".join(
            f"- {one.label or one.name.replace('_', ' ')}: {scenario[one.name]}" for one in space.dimensions
        ),
    }


def learner(roles: Sequence[SpaceRole]) -> str | None:
    """Return the role that learns, None if no role teaches another one."""
    names = [role.name for role in roles]
    return next(filter(learns, names), None) if any(map(teaches, names)) else None
