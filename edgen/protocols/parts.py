"""Values that protocols and the rest of edgen exchange: the rules and templates of a job, and one unit of
work for a scheduler, which is a conversation, a comparison or any other task.

A brief is the text about a space for one of its roles.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from typing import Protocol as Face

import msgspec

from edgen.config import BackendConfig, Branch, CallSettings, TooLong
from edgen.core.forms import AnyForm, Form
from edgen.core.plugins.faults import blame
from edgen.core.registry import Kind
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
    """A protocol's view of a template: it renders variables to messages. It also has the variables that it
    reads, the schema of its answers, and the form to request."""

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
    settings: Any = None  # of the protocol
    branch: Branch | None = None  # branching of replicates; None: no branching
    words: OwnWords = ()  # the job's own words for the roles, for readers of replies
    roles: tuple[SpaceRole, ...] = msgspec.field(default_factory=list_layout_roles)  # roles of the space
    prepared: Any = None  # data shared by all conversations of a job (`SharedPreparation`)
    too_long: TooLong = "cut"  # the job's treatment of cut-off turns
    backends: Mapping[str, BackendConfig] = {}  # the job's backends, by role; empty: unknown
    several: bool = False  # a prompt may be sent for several answers (`Request.one_of_several`)
    book: SpaceBook | None = None  # the space, for the simulator

    def backend(self, role: str) -> BackendConfig | None:
        """Return the backend that answers a role; None if unknown."""
        return self.backends.get(role, self.backends.get("default"))

    def by_people(self, role: str) -> bool:
        """Return whether people answer for a role. They need a view of the role's knowledge."""
        return (backend := self.backend(role)) is not None and backend.BY_PEOPLE

    def scene(self, scenario: Scenario, role: str | None = None) -> Scene | None:
        """Return the simulator's knowledge of a scenario when it speaks for a role, or for all roles."""
        return None if self.book is None else Scene(self.book, scenario, role)

    @functools.cached_property
    def role_words(self) -> RoleWords:
        """The roles, for readers of replies."""
        return find_role_words(tuple(role.name for role in self.roles))

    @functools.cached_property
    def speakers(self) -> tuple[tuple[str, ...], ...]:
        """Each role with the job's own words for it; requests name the possible speakers by these."""
        own = dict(self.words)
        return tuple((role.name, *own.get(role.name, ())) for role in self.roles)

    def reading(self, reply: Reply) -> dict[str, Any]:
        """Return the arguments about a reply for the readers of turns and conversations."""
        return {**describe_ending(reply), "words": self.words, "roles": self.role_words}


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A template that a protocol uses."""

    name: str | None  # the job's, else a shipped one's; None: there is none
    key: str  # the key of the job that names it
    expects: str  # the kind of its answer, of this protocol or another
    variables: tuple[str, ...]  # variables that it may use
    file: Path | None = None  # the package's template for a job that names none; None: the job must name one
    reports: tuple[str, ...] = ()  # variables that a person is warned about if the template never uses them
    wholes: tuple[str, ...] = ()  # variables that contain all of `reports`
    shows: tuple[tuple[str, ...], ...] = ()  # the template must use all variables of one of these
    why: str = ""  # the reason for `shows`
    asked: str = "default"  # the role that answers it
    also: tuple[str, ...] = ()  # other roles that answer it
    stand_ins: Mapping[str, Any] = field(default_factory=dict)
    """Values for variables that are not texts, for a trial before any request."""


class ExpectedCall(NamedTuple):
    """A call that a conversation is expected to make, for an estimate."""

    role: str  # role that answers
    use: str  # use of the template
    tokens: tuple[float, float, float]  # tokens of the answer: low, expected, high
    hears: bool = False  # the prompt holds the conversation so far
    heard: bool = False  # later prompts hold the answer
    own: bool = False  # a branching replicate makes the call again for itself


class Rounds(NamedTuple):
    """The division of a job's scenarios by their index: `total` rounds of `size` scenarios each, the last
    with the rest.

    Later rounds may use the results of earlier ones, so they begin when these are settled.
    """

    total: int = 1
    size: int = 0

    def of(self, index: int) -> int:
        """Return the round of a scenario, counted from 0."""
        return min(index // self.size, self.total - 1) if self.total > 1 else 0

    def split(self, first: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Yield (round, first, end) of the scenarios first <= index < end."""
        while first < end:
            number = self.of(first)
            stop = end if number == self.total - 1 else min(end, (number + 1) * self.size)
            yield number, first, stop
            first = stop


class Starter(NamedTuple):
    """The start of a job by `edgen init`: a shipped job, shipped templates by the names of their copies, the
    role whose backend the job's first lines show, and a sentence for the help text.

    `folders`: shipped folders that the job names, by the key that names each.
    """

    job: str
    templates: Mapping[str, str]
    role: str
    help: str
    folders: Mapping[str, tuple[Folder, str]] = {}


def describe_ending(reply: Reply) -> dict[str, Any]:
    """Return how a reply ended, as arguments for all readers."""
    return {"finish_reason": reply.finish_reason, "refusal": reply.refusal}


@functools.cache
def find_role_words(names: tuple[str, ...]) -> RoleWords:
    """Return the words of a space's roles, for readers of replies."""
    from edgen.reading.roles import find_words

    return find_words(names)


class AnsweringModel(msgspec.Struct, frozen=True):
    """The model that answered: the backend's kind and the model's name."""

    backend: str
    model: str


class Spent(msgspec.Struct):
    """The totals of one task's calls, the answering models, and the end of the last answer."""

    asks: int = 0  # answered calls
    prompt_tokens: int = 0  # tokens of all calls
    completion_tokens: int = 0  # tokens of all calls
    finish_reason: str = "stop"  # of the last answer
    key: bytes | None = None  # the ledger's key of the last request; None before the first
    simulated: bool = False  # the simulator wrote at least one answer
    by_role: dict[str, AnsweringModel] = {}  # the answering model of each role
    times: list[AnswerTime] = []  # times of people's answers

    def add(self, reply: Reply, key: bytes, asked: Request, backend: str, model: str) -> None:
        """Count the answer to a request. `model` is used if the reply names no model."""
        self.asks += 1
        if reply.usage is not None:
            self.prompt_tokens += reply.usage.prompt_tokens
            self.completion_tokens += reply.usage.completion_tokens
        self.finish_reason = reply.finish_reason
        self.key = key
        self.simulated |= reply.simulated
        self.by_role[asked.role] = AnsweringModel(backend, _clean_model_name(reply.model or model))
        if (times := reply.given) is not None:
            place = asked.address
            self.times.append(
                AnswerTime(asked.role, place.step, place.attempt, *msgspec.structs.astuple(times))
            )


def _clean_model_name(name: str) -> str:
    """Return a model's name, which a service may choose freely, as one line without control characters."""
    if len(name) <= 200 and name.isprintable():
        return name.strip()
    return "".join(" " if is_forbidden(char) else char for char in name[:200]).strip()


class Settled(msgspec.Struct, frozen=True):
    """The end of a task: a record, or the reason why there is none. `additional`: further values to keep, as
    JSON, by name."""

    status: Status
    reason: str | None = None
    detail: str | None = None
    record: bytes | None = None
    additional: Mapping[str, bytes] = {}

    @classmethod
    def accepted(cls, record: bytes, additional: Mapping[str, bytes] | None = None) -> Settled:
        """Return the end of a task with a result. `record` and `additional` are kept."""
        return cls(Status.ACCEPTED, record=record, additional=additional or {})

    @classmethod
    def rejected(cls, rejection: Rejection) -> Settled:
        """Return the end of an answered task without a result."""
        return cls(Status.REJECTED, rejection.code, rejection.detail)


@dataclass(frozen=True, slots=True)
class Task:
    """One task."""

    protocol: Generator[Request, Reply, Any]
    """Yields requests and returns a result."""
    group: int
    """The hash of the group that the split keeps on one side."""
    settled: Callable[[Any, Spent], Settled]
    """Makes an outcome of the result."""
    made_by: str = ""
    """The name of the protocol if a job names it, or of the asker."""
    check: Callable[[Any], Request] | None = None
    """Checks each request of a plugin's protocol or asker."""
    kind: Literal["protocol", "asker"] = "protocol"
    """The kind of the object that `made_by` names."""


class Tasks(Face):
    """The source of a scheduler's tasks.

    `sharers`: the number of tasks that may make the same request, except for the address; 1 if none does.
    `useless_help`: advice if hardly any answer is usable; empty: the reasons suffice.
    """

    call_settings: CallSettings
    sharers: int = 1
    useless_help: str = ""

    def make_task(self, scenario: int, task: Any) -> Task:
        """Return the work of one task of a scenario."""
        ...

    def list_sibling_tasks(self, scenario: int, task: Any) -> Iterable[TaskId]:
        """Return the other tasks of a scenario that may begin with the same request, for an independent
        answer each."""
        return ()

    def make_fingerprint(self, identities: Mapping[str, Mapping[str, Any]]) -> str:
        """Return a fingerprint of everything that shapes the outcomes. `identities`: the backends'
        identities, by role."""
        ...


Labels = Mapping[str, str]  # people's name for each dimension

TURN_VARIABLES = ("role", "others", "brief")
CONVERSATION_VARIABLES = ("space_roles", "space_goal", "scenario_lines", "roles", "probability")


def labels_of(space: Space) -> dict[str, str]:
    """Return people's name for each dimension of a space, in the space's order."""
    return {one.name: one.words for one in space.dimensions}


def describe_values(scenario: Scenario, names: Collection[str], labels: Labels) -> str:
    """Return a line for each of these dimensions: its label, its value and the fields of the value's
    entry."""
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
    """Return whether a field's value fits in a line: a text, a number, a list of these, or nothing."""
    if isinstance(value, list | tuple):
        return all(isinstance(one, str | int | float) for one in value)
    return value is None or isinstance(value, str | int | float)


def _join_value(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def make_turn_variables(
    scenario: Scenario, roles: Sequence[SpaceRole], role: SpaceRole, labels: Labels
) -> dict[str, str]:
    """Return the variables of a template for one role's turns, besides the dimensions that the role sees."""
    return {
        "role": role.name,
        "others": join_list(other.name for other in roles if other.name != role.name),
        "brief": describe_values(scenario, role.sees, labels),
    }


def conversation_variables(
    scenario: Scenario, roles: Sequence[SpaceRole], labels: Labels, goal: str
) -> dict[str, Any]:
    """Return the variables of a template for whole conversations, besides the dimensions.

    `roles` lists, by role, the labels of the dimensions that it sees. `probability` names the event; it is
    empty without a learner.
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
    """Return a judge's template variables about a space, with the scenario's values by their labels."""
    return {
        "space_roles": join_list(role.name for role in space.roles),
        "space_goal": space.description or "",
        "scenario_lines": "\n".join(f"- {one.words}: {scenario[one.name]}" for one in space.dimensions),
    }


def learner(roles: Sequence[SpaceRole]) -> str | None:
    """Return the role that learns; None if no role teaches."""
    names = [role.name for role in roles]
    return next(filter(learns, names), None) if any(map(teaches, names)) else None


def close_generator(kind: Kind, name: str, work: Generator[Any, Any, Any]) -> None:
    """Close a generator of the object of this kind and name. Raises FaultyPluginError if a plugin's generator
    yields again or raises."""
    try:
        work.close()
    except BaseException as error:  # noqa: BLE001 - raised again
        blame(kind, name, error, "when its generator was closed")
