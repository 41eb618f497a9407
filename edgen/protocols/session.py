"""A conversation in progress, for protocols that play it from its first turn to its end.

`ask_turn` requests one of its turns. If the job allows it (`too_long`), a turn that a token limit cuts off is
kept up to its last complete sentence.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Generator, Mapping
from typing import Any, ClassVar, Protocol, TypeVar

import msgspec

from edgen.core.forms import AnyForm, Form
from edgen.core.people.requests import View
from edgen.core.values import (
    Address,
    Message,
    Rejection,
    RejectionReason,
    Reply,
    Request,
    Scenario,
)
from edgen.prompting import scenario_variables
from edgen.prompting.prompt import PICTURE, find_picture
from edgen.protocols.base import (
    AnswerForms,
    ConversationProtocol,
    Conversing,
    Prompting,
    Question,
    Rules,
    ask,
)
from edgen.reading.cut_off import without_end
from edgen.space.model import Space, SpaceRole

CUT_OFF = "cut_off"  # a flag: the turn was cut off, and ends with its last complete sentence


class Session(ABC):
    """The conversation of a scenario: each role's view of the scenario, and the address of the next request.
    `protocol` is the name of the asking protocol. `_repairs` and `_flags` occur once each, in the order of
    their first occurrence."""

    protocol: ClassVar[str]

    def __init__(
        self, scenario: Scenario, replicate: int, prompts: Mapping[str, Prompting], rules: Rules
    ) -> None:
        self._scenario, self._replicate = scenario, replicate
        self._prompts, self._rules = prompts, rules
        self._settings: Any = rules.settings
        self._prepared: Any = rules.prepared
        self._repairs: dict[str, None] = {}
        self._flags: dict[str, None] = {}
        self._step = 0

    @abstractmethod
    def play(self) -> Conversing:
        """Play the conversation from its first turn to its end."""

    @abstractmethod
    def opening(self) -> dict[str, tuple[Message, ...]]:
        """Return the first messages of each template, by use."""

    def forms(self) -> Mapping[str, Form]:
        """Return the forms of the answers to the messages of `opening`, by use. Call it after `opening`."""
        return {}

    def view(self, use: str, backend: str, role: str | None) -> View | None:
        """Return the view for a person who answers for a backend; None: the view of `edgen.protocols.views`.
        `use` is the use of the template, `role` the speaker as in `_question`."""
        return None

    def _seen(self, role: SpaceRole) -> dict[str, Any]:
        """Return the template variables on the scenario for a reader with the role's knowledge."""
        known = scenario_variables(self._scenario)
        picture = {PICTURE: find_picture(self._scenario, role.sees)}
        return picture | {
            name: value for name, value in known.items() if name == "index" or name in role.sees
        }

    def _about(self, role: SpaceRole, space: Space, but: Collection[str] = ()) -> list[str]:
        """Return the values that a role sees, one a line with its label, without the dimensions in `but`."""
        values = self._scenario.values
        return [
            f"{space[name].words}: {values[name]}" for name in role.sees if name in values and name not in but
        ]

    def _address(self) -> Address:
        """Return the address of the next request, and count it."""
        self._step += 1
        return Address(self._scenario.index, self._replicate, step=self._step - 1)

    def _note_findings(self, said: Spoken) -> None:
        """Add the repairs and flags of a turn to those of the conversation."""
        self._repairs |= dict.fromkeys(said.repairs)
        self._flags |= dict.fromkeys(said.flags)

    def _question(
        self, use: str, messages: tuple[Message, ...], backend: str, form: AnyForm, role: str | None = None
    ) -> Question:
        """Return the next request, with the template of this use and the form of the answer. `role` is the
        speaker, by the space's name."""
        prompt = self._prompts[use]
        return Question(
            self._address(),
            messages,
            self.protocol,
            backend,
            prompt.schema,
            form=prompt.form(form, backend),
            scene=self._rules.scene(self._scenario, role),
            view=self.view(use, backend, role) if self._rules.by_people(backend) else None,
        )

    def _random(self, place: str) -> random.Random:
        """Return random numbers for one purpose, named by `place`; all replicates of a scenario get the same
        ones."""
        return random.Random(f"{self._rules.seed}/{self._scenario.index}/{place}")  # noqa: S311 - reproducible, not secret


class PlayedProtocol(AnswerForms, ConversationProtocol):
    """A protocol whose conversations a `Session` plays, from the first turn to the end."""

    @abstractmethod
    def session(self) -> type[Session]:
        """Return the class that plays a conversation."""

    def start(
        self, scenario: Scenario, replicate: int, prompts: Mapping[str, Prompting], rules: Rules
    ) -> Conversing:
        """Start the work on one conversation."""
        return self.session()(scenario, replicate, prompts, rules).play()

    def opening(
        self, scenario: Scenario, prompts: Mapping[str, Prompting], rules: Rules
    ) -> dict[str, tuple[Message, ...]]:
        """Return the first messages of each template."""
        return self.session()(scenario, 0, prompts, rules).opening()

    def forms(self, scenario: Scenario, prompts: Mapping[str, Prompting], rules: Rules) -> Mapping[str, Form]:
        """Return the forms of the answers to the messages of `opening`."""
        session = self.session()(scenario, 0, prompts, rules)
        session.opening()
        return session.forms()


class Spoken(Protocol):
    """A turn as read: a struct with its text, repairs and flags."""

    @property
    def text(self) -> str: ...

    @property
    def repairs(self) -> tuple[str, ...]: ...

    @property
    def flags(self) -> tuple[str, ...]: ...


S = TypeVar("S", bound=Spoken)
Read = Callable[[Reply], S | Rejection]


def ask_turn(question: Question, rules: Rules, read: Read[S]) -> Generator[Request, Reply, S | Rejection]:
    """Request a turn as `ask` does. The job says whether a cut-off turn is kept, retried or rejected."""
    final = frozenset([RejectionReason.TRUNCATED] if rules.too_long == "reject" else [])

    def read_cut(reply: Reply) -> S | Rejection:
        said = read(reply)
        cut = isinstance(said, Rejection) and said.reason is RejectionReason.TRUNCATED
        kept = _read_kept(question, reply, read) if cut and rules.too_long == "cut" else None
        return said if kept is None else kept

    return (yield from ask(question, rules, read_cut, final))


def _read_kept(question: Question, reply: Reply, read: Read[S]) -> S | None:
    """Return the complete part of a turn that was cut off; None if there is none.

    The reply is read as if it had ended at the cut, with and without its last sentence. The part that is kept
    must begin the text that was read: otherwise it was an announcement, a thought or an action.
    """
    whole = without_end(reply.text)
    if whole is None or reply.finish_reason not in ("length", "stop"):
        return None
    said, kept = (
        read(reply if question.form is None else question.form.content(reply))
        for reply in (msgspec.structs.replace(reply, text=text, finish_reason="stop") for text in whole)
    )
    if isinstance(said, Rejection) or isinstance(kept, Rejection) or not said.text.startswith(kept.text):
        return None
    if not kept.text:
        return None if said.text else kept
    changed: Any = kept
    flagged: S = msgspec.structs.replace(changed, flags=(*kept.flags, CUT_OFF))
    return flagged


def join_brief(brief: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return the brief of a role that does not open, as one message, so that the next message is another
    role's."""
    text = "\n\n".join([message.content for message in brief])
    return (Message(brief[0].role, text),)


def append_message(messages: list[Message], message: Message) -> None:
    """Add a message. Two messages of one role in a row become one, since many models reject them."""
    if messages and messages[-1].role == message.role:
        message = Message(message.role, f"{messages.pop().content}\n\n{message.content}")
    messages.append(message)
