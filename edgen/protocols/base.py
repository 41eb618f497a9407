"""What a protocol is: a plain generator that yields requests, is sent replies, and returns a result.

It does no I/O and reads no clock, so whoever drives it is exchangeable: the online engine, a
provider's batch API, a test that replays a list. A call that failed for good is thrown into it as
CallError; a protocol that has no use for that lets it through.

Whatever asks is a `Protocol`: a judge, an annotator, a space's growth. One that makes conversations is a
`ConversationProtocol`; a job names it, and all that the rest of edgen has to know of it stands on the object.
"""

from __future__ import annotations

import functools
import hashlib
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar
from typing import Protocol as Face

import msgspec

from edgen.config import Branch, Job
from edgen.core.answer_kinds import AnswerKind
from edgen.core.errors import CallError, FailureKind, Problem
from edgen.core.resources import Folder
from edgen.core.values import (
    Address,
    Conversation,
    Message,
    Rejection,
    RejectionReason,
    Reply,
    Request,
    Scenario,
    Turn,
)
from edgen.space.education import ROLES
from edgen.space.model import Space, SpaceRole

if TYPE_CHECKING:
    from edgen.families.base import Recorded
    from edgen.machines.model import Machine
    from edgen.protocols.session import Session
    from edgen.protocols.stage import Stage
    from edgen.reading.roles import OwnWords, RoleWords

Result = Conversation | Rejection
Conversing = Generator[Request, Reply, Result]
T = TypeVar("T")
FindFile = Callable[[Folder, str, str], Path]
"""Where a file is that a job names: the shipped folder of its kind, the name, the job's key. Raises a FileError for one that
the job may not have read."""

_NO_MORE_ROOM = (FailureKind.BAD_REQUEST, FailureKind.CONTEXT_OVERFLOW)


class Prompting(Face):
    """What a protocol needs of a template: variables in, messages out, and the schema that answers have to fit."""

    @property
    def schema(self) -> bytes | None: ...

    def messages(self, variables: Mapping[str, Any]) -> tuple[Message, ...]: ...


class Rules(msgspec.Struct, frozen=True, dict=True):
    """How a job asks. `asks`: how often one answer is asked for before the last one counts as rejected. `settings`:
    the protocol's own. `words`: a job's own for the roles, by which replies are read. `roles`: the space's.
    `prepared`: what the protocol made once for all of a job's conversations."""

    asks: int
    seed: int
    settings: Any = None
    branch: Branch | None = None
    words: OwnWords = ()
    roles: tuple[SpaceRole, ...] = ROLES
    prepared: Any = None

    @functools.cached_property
    def role_words(self) -> RoleWords:
        """What the readers know of the roles."""
        return role_words(tuple(role.name for role in self.roles))

    def reading(self, reply: Reply) -> dict[str, Any]:
        """How a reply of any role is read, as the readers of turns and conversations take it."""
        return {**ended(reply), "words": self.words, "roles": self.role_words}


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A template that a protocol asks with. `expects`: the kind of its answer, the protocol's own or another's.

    `name`: the job's, else a shipped one's; None: the job names none. `file`: the one that a package brings for a job
    that names none; without it, the job has to name one. `key`: the job's key that names it.
    `variables`: what it may use. `reports`: those of them that a person is told of where it never uses them.
    `shows`: it has to use all variables of one of these, for the reason `why`. `asked`: the role that is asked with it.
    `stand_ins` are values for variables that are no texts, with which it is tried before anything is asked.
    """

    name: str | None
    key: str
    expects: str
    variables: tuple[str, ...]
    file: Path | None = None
    reports: tuple[str, ...] = ()
    shows: tuple[tuple[str, ...], ...] = ()
    why: str = ""
    asked: str = "default"
    stand_ins: Mapping[str, Any] = field(default_factory=dict)


class ExpectedCall(NamedTuple):
    """A call that a conversation is expected to make, for an estimate.

    `tokens`: of its answer: low, expected, high. `hears`: its prompt holds what was said before. `heard`: what it
    says is in later prompts. `own`: a replicate that leaves another one makes it for itself all the same.
    """

    role: str
    use: str
    tokens: tuple[float, float, float]
    hears: bool = False
    heard: bool = False
    own: bool = False


class Rounds(NamedTuple):
    """How a job's scenarios are divided by their index: `total` rounds of `size` scenarios each, the last with all that
    are left. What a round has made, later ones may build on; they begin when it is settled."""

    total: int = 1
    size: int = 0

    def of(self, index: int) -> int:
        """The round of a scenario, counted from 0."""
        return min(index // self.size, self.total - 1) if self.total > 1 else 0

    def split(self, first: int, end: int) -> Iterator[tuple[int, int, int]]:
        """(round, first, end) of the scenarios first <= index < end."""
        while first < end:
            number = self.of(first)
            stop = end if number == self.total - 1 else min(end, (number + 1) * self.size)
            yield number, first, stop
            first = stop


class Starter(NamedTuple):
    """What `edgen init` begins with: a shipped job, shipped templates by the names of their copies, the role whose
    backend the job's first lines show, and a sentence for the help text. `folders`: shipped folders that the job names, by the
    key that names each."""

    job: str
    templates: Mapping[str, str]
    role: str
    help: str
    folders: Mapping[str, tuple[Folder, str]] = {}


class Simulation(Face):
    """What the simulator offers to a protocol that answers its own prompts.

    `messages` are those of the request, `text` what all of them say, `fault` a content fault or None, `random` in [0, 1)
    drawn from the request's seed; `confusion` how often a labeller takes a label for which other, empty for one that makes no mistakes.
    `say` speaks a rule of the phrase book, `pick` takes one of several texts. The others answer what
    edgen's own protocols ask: each returns None where the messages ask something else.
    """

    messages: Sequence[Message]
    fault: str | None
    confusion: Mapping[str, Mapping[str, float]]

    @property
    def text(self) -> str: ...
    def random(self) -> float: ...
    def say(self, rule: str, **slots: str) -> str: ...
    def pick(self, ways: Sequence[str]) -> str: ...
    def conversation(self) -> str | None: ...
    def turn(self) -> str | None: ...
    def probability(self) -> str | None: ...
    def verdict(self) -> str | None: ...
    def sheet(self) -> str | None: ...
    def scores(self) -> str | None: ...
    def values(self) -> str | None: ...


class Protocol:
    """Whatever asks models. `name` is that of its entry point.

    `precedence`: of the protocols that take a prompt for theirs, the served simulator believes the lowest. `answers`:
    the kinds of answers that it reads, which templates name under `expects`.
    """

    name: ClassVar[str]
    precedence: ClassVar[int] = 0
    answers: ClassVar[tuple[AnswerKind, ...]] = ()

    def simulated(self, request: Simulation) -> str | None:
        """What the simulator answers; None where the prompt is none of this protocol's."""
        return None

    def simulated_labels(self, role: str, text: str) -> tuple[str, ...] | None:
        """What a turn does that the simulator said under this protocol; None where it said no such turn."""
        return None


class ConversationProtocol(Protocol):
    """How a scenario becomes a conversation. `Config` is the job's key of the protocol's name, as a typed struct.

    `about_leaks` tells a reader of a report what a leak means under this protocol; `about_probability`, what to do
    where conversations have no probability. `sends_schemas`: its requests carry the schemas of their templates.
    """

    Config: ClassVar[type[msgspec.Struct]]
    starter: ClassVar[Starter | None] = None
    branches: ClassVar[bool] = False
    sends_schemas: ClassVar[bool] = False
    about_leaks: ClassVar[str] = ""
    about_probability: ClassVar[str] = ""

    def problems(self, job: Job) -> Iterator[Problem]:
        """What of a job does not go together, as far as its file tells."""
        yield from ()

    def role_problems(self, job: Job) -> Iterator[Problem]:
        """What of a job does not fit its `speakers`, the roles of its space."""
        yield from ()

    def with_files(self, job: Job, find: FindFile) -> Job:
        """The job with what its settings name by file in place of the names, so that a run's copy of it stands by itself
        and all that shapes answers is in it. Raises FileErrors."""
        return job

    def machine(self, job: Job) -> Machine | None:
        """The state machine by which a job's conversations are guided, as a run's copy of the job holds it; None where
        nobody is guided."""
        return None

    def roles(self, job: Job) -> tuple[str, ...]:
        """The roles that conversations ask, as `backends` names them; the one that a record names comes first."""
        return ("default",)

    def prepare(self, job: Job, space: Space) -> Any:
        """What all conversations of a job share, made once; each finds it in its rules. Raises JobError where the
        space is none for the protocol."""
        return None

    def rounds(self, job: Job) -> Rounds:
        """The rounds that a job is made in; most are made in one."""
        return Rounds()

    def prepare_round(self, prepared: Any, made: Iterable[Recorded]) -> Any:
        """What the conversations of the next round share, out of what those of the last one shared and the accepted ones
        that it made, in the order of scenarios. Pure; memory does not grow with how many there are."""
        return prepared

    @abstractmethod
    def templates(self, job: Job, space: Space | None) -> dict[str, Template]:
        """The templates that conversations are asked with, by what they are for. Without a space, nobody asks what
        they may use."""

    def session(self) -> type[Session]:
        """What plays a conversation, where `start` and `opening` are not given."""
        raise NotImplementedError

    def start(
        self, scenario: Scenario, replicate: int, prompts: Mapping[str, Prompting], rules: Rules
    ) -> Conversing:
        """The work on one conversation."""
        return self.session()(scenario, replicate, prompts, rules).play()

    def opening(
        self, scenario: Scenario, prompts: Mapping[str, Prompting], rules: Rules
    ) -> dict[str, tuple[Message, ...]]:
        """The messages of each template as the conversation begins."""
        return self.session()(scenario, 0, prompts, rules).opening()

    @abstractmethod
    def expected(self, job: Job, level: int) -> tuple[ExpectedCall, ...]:
        """The calls of one conversation: few (0), as many as expected (1), or the most (2)."""

    def leaves(self, job: Job, calls: int, level: int) -> Sequence[int]:
        """At which of so many calls a replicate may leave the first one, where the job branches."""
        return (0,)

    def role_of(self, job: Job, step: int) -> str:
        """The role that is asked at a step, most likely."""
        return "default"

    def probability_by(self, settings: Any) -> str:
        """Who says how probable it is that the student understood: runs that differ in it cannot be compared in it."""
        return self.name

    def caveats(self, settings: Any) -> Iterator[str]:
        """What a card has to say of conversations that were made so."""
        yield f"The conversations were made under the protocol {self.name}."

    def stage(self, scenario: Scenario, prompts: Mapping[str, Prompting], rules: Rules) -> Stage | None:
        """The agents of a scenario, turn by turn; None where no single one of them can be played by others."""
        return None


def call_seed(seed: int, address: Address) -> int:
    """The seed of one call, in [0, 2**31): a pure function of the job's seed and the address."""
    place = f"{seed}/{address.scenario}/{address.task}/{address.step}/{address.attempt}"
    return int.from_bytes(hashlib.blake2b(place.encode(), digest_size=4).digest(), "big") >> 1


class Question(NamedTuple):
    """One thing to be asked: where, with what, by which protocol, and which role of the job answers; `schema`: that of
    the template; `logprobs`: see Request; `alike`: where the very same will be asked again, for an answer of its own."""

    address: Address
    messages: tuple[Message, ...]
    protocol: str
    role: str = "default"
    schema: bytes | None = None
    logprobs: int | None = None
    alike: tuple[Address, ...] = ()

    def request(self, address: Address, seed: int, scale: int = 1) -> Request:
        """It as asked at an address, with this job's seed."""
        return Request(
            address,
            self.messages,
            seed=call_seed(seed, address),
            role=self.role,
            max_tokens_scale=scale,
            protocol=self.protocol,
            schema=self.schema,
            logprobs=self.logprobs,
        )


def ask(
    question: Question, rules: Rules, read: Callable[[Reply], T | Rejection]
) -> Generator[Request, Reply, T | Rejection]:
    """Ask until `read` makes something of an answer; the last rejection if it never does.

    Every ask starts afresh, never with the wreck in the prompt; an answer that was cut off is asked
    for with twice the room.
    """
    first = question.address
    scale = 1
    result: T | Rejection = Rejection(RejectionReason.EMPTY, "it was never asked")
    for attempt in range(rules.asks):
        address = Address(first.scenario, first.task, first.step, attempt)
        request = question.request(address, rules.seed, scale)
        if question.alike and attempt == 0:
            alike = tuple(question.request(other, rules.seed) for other in question.alike)
            request = msgspec.structs.replace(request, alike=alike)
        try:
            reply = yield request
        except CallError as failure:
            if scale > 1 and failure.kind in _NO_MORE_ROOM:
                return result  # the model has no more room to give: it stays cut off
            raise
        result = read(reply)
        if not isinstance(result, Rejection):
            return result
        if result.reason is RejectionReason.TRUNCATED:
            scale *= 2
    return result


def ended(reply: Reply) -> dict[str, Any]:
    """How a reply came to its end, as all readers take it."""
    return {"finish_reason": reply.finish_reason, "refusal": reply.refusal}


def unread(reply: Reply, detail: str) -> Rejection:
    """Why an answer that could not be read is none: it was cut off, or says something else."""
    cut = reply.finish_reason == "length"
    return Rejection(RejectionReason.TRUNCATED if cut else RejectionReason.UNREAD, detail)


def transcript_of(turns: Iterable[Turn]) -> str:
    """A conversation as a judge is shown it: a line a turn, no end marker."""
    return "\n".join([f"{turn.role}: {turn.text}" for turn in turns])


@functools.cache
def role_words(names: tuple[str, ...]) -> RoleWords:
    """What the readers know of a space's roles."""
    from edgen.reading.roles import TEACHER_STUDENT, RoleWords

    return TEACHER_STUDENT if {*names} == {*TEACHER_STUDENT.names} else RoleWords(names)
