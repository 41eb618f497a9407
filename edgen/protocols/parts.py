"""The values that a protocol and the rest of edgen pass to each other."""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from typing import Protocol as Face

import msgspec

from edgen.config import Branch
from edgen.core.resources import Folder
from edgen.core.values import Conversation, Message, Rejection, Reply, Request
from edgen.space.five_lists import ROLES
from edgen.space.model import SpaceRole

if TYPE_CHECKING:
    from edgen.reading.roles import OwnWords, RoleWords

Result = Conversation | Rejection
Conversing = Generator[Request, Reply, Result]
FindFile = Callable[[Folder, str, str], Path]
"""Where a file is that a job names: the shipped folder of its kind, the name, the job's key. Raises a
FileError for one that the job may not have read."""


class Prompting(Face):
    """What a protocol needs of a template: variables in, messages out, which variables it reads, and the
    schema that its answers have to fit."""

    @property
    def schema(self) -> bytes | None: ...

    @property
    def variables_used(self) -> frozenset[str]: ...

    def messages(self, variables: Mapping[str, Any]) -> tuple[Message, ...]: ...


class Rules(msgspec.Struct, frozen=True, dict=True):
    """How a job asks. `asks`: how often one answer is asked for before the last one counts as rejected.
    `settings`: the protocol's own. `words`: a job's own for the roles, by which replies are read. `roles`:
    the space's. `prepared`: what the protocol made once for all of a job's conversations."""

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
    `wholes`: variables that hold all of `reports`. `shows`: it has to use all variables of one of these, for the reason `why`. `asked`: the role that is asked with it.
    `stand_ins` are values for variables that are no texts, with which it is tried before anything is asked.
    """

    name: str | None
    key: str
    expects: str
    variables: tuple[str, ...]
    file: Path | None = None
    reports: tuple[str, ...] = ()
    wholes: tuple[str, ...] = ()
    shows: tuple[tuple[str, ...], ...] = ()
    why: str = ""
    asked: str = "default"
    stand_ins: Mapping[str, Any] = field(default_factory=dict)


class ExpectedCall(NamedTuple):
    """A call that a conversation is expected to make, for an estimate.

    `tokens`: of its answer: low, expected, high. `hears`: its prompt holds what was said before. `heard`:
    what it says is in later prompts. `own`: a replicate that leaves another one makes it for itself all the
    same.
    """

    role: str
    use: str
    tokens: tuple[float, float, float]
    hears: bool = False
    heard: bool = False
    own: bool = False


class Rounds(NamedTuple):
    """How a job's scenarios are divided by their index: `total` rounds of `size` scenarios each, the last
    with all that are left. What a round has made, later ones may build on; they begin when it is settled."""

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
    """What `edgen init` begins with: a shipped job, shipped templates by the names of their copies, the role
    whose backend the job's first lines show, and a sentence for the help text. `folders`: shipped folders
    that the job names, by the key that names each."""

    job: str
    templates: Mapping[str, str]
    role: str
    help: str
    folders: Mapping[str, tuple[Folder, str]] = {}


class Simulation(Face):
    """What the simulator offers to a protocol that answers its own prompts.

    `messages` are those of the request, `text` what all of them say, `fault` a content fault or None,
    `random` in [0, 1) drawn from the request's seed; `confusion` how often a labeller takes a label for which
    other, empty for one that makes no mistakes. `say` speaks a rule of the phrase book, `pick` takes one of
    several texts, `as_json` puts words under a key where the request asks for JSON. The others answer what
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
    def as_json(self, key: str, words: str) -> str: ...
    def conversation(self) -> str | None: ...
    def turn(self) -> str | None: ...
    def probability(self) -> str | None: ...
    def verdict(self) -> str | None: ...
    def scores(self) -> str | None: ...
    def values(self) -> str | None: ...


def ended(reply: Reply) -> dict[str, Any]:
    """How a reply came to its end, as all readers take it."""
    return {"finish_reason": reply.finish_reason, "refusal": reply.refusal}


@functools.cache
def role_words(names: tuple[str, ...]) -> RoleWords:
    """What the readers know of a space's roles."""
    from edgen.reading.roles import words_of

    return words_of(names)
