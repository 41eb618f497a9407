"""Base classes of protocols: plain generators that yield requests, receive replies, and return a result.

A protocol does no I/O and reads no clock, so any driver can run it: the online engine, a provider's batch
API, a test that replays a list. A call that failed for good is thrown into it as CallError; a protocol that
cannot use the error lets it pass.

Every use of a model is a `Protocol`: a judge, an annotator, a space's growth. A protocol that makes
conversations is a `ConversationProtocol`. A job names it, and the object gives the rest of edgen everything
that it needs to know.

Optional abilities are parts (`PARTS`). `RolesAndSettings`, for checks of jobs, is in `edgen.config.job`.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar

import msgspec

from edgen.config import Job, find_job_protocol
from edgen.config.job import FindFile, RolesAndSettings
from edgen.core.errors import CallError, FailureKind
from edgen.core.forms import AnswerKind, Form
from edgen.core.people.requests import View
from edgen.core.plugin_checks import find_misplaced_names, find_unfit_fields
from edgen.core.registry import part_of
from edgen.core.values import (
    Address,
    Conversation,
    Message,
    Recorded,
    Rejection,
    RejectionReason,
    Reply,
    Request,
    Role,
    Scenario,
    Turn,
)
from edgen.protocols.parts import (
    Conversing,
    ExpectedCall,
    Prompting,
    Result,
    Rounds,
    Rules,
    Starter,
    Template,
    describe_ending,
    find_role_words,
)
from edgen.protocols.reasons import DeclaredReason, list_reason_flaws
from edgen.protocols.simulation import Simulation
from edgen.reading.hollow import find_hollow, find_hollow_turn
from edgen.space.model import Scene, Space

__all__ = [
    "ConversationProtocol", "Conversing", "ExpectedCall", "FindFile", "NoSettings", "Prompting",
    "Protocol", "Question", "Result", "Rounds", "Rules", "Simulation", "Starter", "Template", "ask",
    "describe_ending", "find_role_words", "make_call_seed", "transcript_of", "unread",
]  # fmt: skip

T = TypeVar("T")
_SAME_AGAIN = "not requested again, because the same request at temperature 0 gets the same answer"
_NO_MORE_ROOM = (FailureKind.BAD_REQUEST, FailureKind.CONTEXT_OVERFLOW)
_NEVER_ASKED = Rejection(RejectionReason.EMPTY, "it was never asked")


class Protocol(ABC):
    """A use of models.

    `name` is its entry point's name. `precedence`: of the protocols that recognise a prompt, the served
    simulator uses the lowest. `answers`: the kinds of answers that it reads, which templates name under
    `expects`. `reasons`: its own reasons for rejections, besides those of `RejectionReason`.
    """

    name: ClassVar[str]
    precedence: ClassVar[int] = 0
    answers: ClassVar[tuple[AnswerKind, ...]] = ()
    reasons: ClassVar[tuple[DeclaredReason, ...]] = ()


class NoSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a protocol that has none."""


class SimulatedAnswers:
    """Let the simulator answer the protocol's requests."""

    def simulated(self, request: Simulation) -> str | None:
        """Return the simulator's answer; None if the prompt does not belong to this protocol."""
        return None

    def simulated_labels(self, role: str, text: str) -> tuple[str, ...] | None:
        """Return the labels of a turn that the simulator wrote under this protocol; None for a turn by
        others."""
        return None


class SelfDescription:
    """Texts about the conversations of a protocol for users, cards and reports."""

    starter: ClassVar[Starter | None] = None
    """How `edgen init --protocol NAME` starts a job."""
    about_leaks: ClassVar[str] = ""
    """The meaning of a leak under this protocol, for a reader of a report. `{roles}` stands for the roles of
    the conversations, as in "student or teacher"."""
    probability_setting: ClassVar[str] = ""
    """The setting of a job that makes conversations state a probability, as in `selfplay: {closing:
    student}`; empty: there is none. `{role}` stands for the last role of the space."""

    def probability_by(self, settings: Any) -> str | None:
        """Return who states the probability of a conversation; None for the protocol's name. Runs in which
        this differs cannot be compared in their probabilities."""
        return None

    def caveats(self, settings: Any) -> Iterator[str]:
        """Yield the sentences of a card about conversations of this protocol. Without any, the card names the
        protocol."""
        yield from ()


class AnswerForms:
    """Request structured answers: by the schema next to a template, or by a form of the protocol."""

    sends_schemas: ClassVar[bool] = False
    """Whether requests carry the schemas of their templates."""

    def forms(self, scenario: Scenario, prompts: Mapping[str, Prompting], rules: Rules) -> Mapping[str, Form]:
        """Return the forms of the answers to the messages of `opening`, by use; empty if the protocol states
        none."""
        return {}


class SharedPreparation:
    """Prepare data that conversations share: once for a job, or again for each of several rounds."""

    def prepare(self, job: Job, space: Space) -> Any:
        """Return the data that all conversations of a job share. It is made once, and each conversation finds
        it in its rules. Raises JobError if the space does not suit the protocol."""
        return None

    def rounds(self, job: Job) -> Rounds:
        """Return the rounds of a job; most jobs have one."""
        return Rounds()

    def prepare_round(self, prepared: Any, made: Iterable[Recorded]) -> Any:
        """Return the data that conversations of the next round share. `prepared` is the last round's data,
        `made` its accepted conversations in the order of scenarios.

        Pure; memory does not grow with the number of conversations.
        """
        return prepared


def find_rounds(job: Job) -> Rounds:
    """Return the rounds of a job."""
    return part_of(find_job_protocol(job), SharedPreparation).rounds(job)


class TurnByTurn:
    """Make conversations of agents, with a call for each turn: replicates may leave at a turn, exports train
    one of the agents, and a policy under training may play it."""

    def leaves(self, job: Job, calls: int, level: int) -> Sequence[int]:
        """Return the calls at which a replicate may leave the first one in a branching job
        (`RolesAndSettings.branches`). `calls`: calls of a conversation."""
        return (0,)

    def trained(self, job: Job) -> Role | None:
        """Return the role that exports train by default; None for the space's first. The job has
        `speakers`."""
        return None

    def stage(self, scenario: Scenario, prompts: Mapping[str, Prompting], rules: Rules) -> Any:
        """Return the agents of a scenario, turn by turn (`edgen.protocols.stage.Stage`); None if others
        cannot play any single one of them."""
        return None


class ConversationProtocol(Protocol):
    """A way from a scenario to a conversation.

    `name` and the four methods here are required. Other abilities are in PARTS. For a protocol that plays a
    conversation turn by turn, `PlayedProtocol` (in `session`) has two of the four.
    """

    Config: ClassVar[type[msgspec.Struct]] = NoSettings
    """The struct of the job's key with the protocol's name. All its fields have defaults."""

    @abstractmethod
    def templates(self, job: Job, space: Space | None) -> dict[str, Template]:
        """Return the templates of conversations by use. Without a space, they need no variables."""

    @abstractmethod
    def start(
        self, scenario: Scenario, replicate: int, prompts: Mapping[str, Prompting], rules: Rules
    ) -> Conversing:
        """Start the work on one conversation. Return a generator that yields requests, receives replies and
        returns the result."""

    @abstractmethod
    def opening(
        self, scenario: Scenario, prompts: Mapping[str, Prompting], rules: Rules
    ) -> dict[str, tuple[Message, ...]]:
        """Return the first messages of each template."""

    @abstractmethod
    def expected(self, job: Job, level: int) -> tuple[ExpectedCall, ...]:
        """Return the calls of one conversation: few (`level` 0), the expected number (1), or the maximum
        (2)."""


PARTS = (
    SimulatedAnswers,
    SelfDescription,
    RolesAndSettings,
    AnswerForms,
    SharedPreparation,
    TurnByTurn,
)
"""The optional parts of a protocol."""


def list_flaws(protocol: Protocol) -> Iterator[str]:
    """Yield the reasons why an object cannot be used as a protocol, as clauses."""
    answers = protocol.answers
    if not isinstance(answers, tuple) or not all(isinstance(one, AnswerKind) for one in answers):
        yield f"has `answers` that are not a tuple of AnswerKind: {answers!r}"
    yield from find_misplaced_names(protocol, PARTS)
    yield from list_reason_flaws(protocol.reasons)
    if not isinstance(protocol, ConversationProtocol):
        return
    config = protocol.Config
    if not isinstance(config, type) or not issubclass(config, msgspec.Struct):
        yield f"has a `Config` that is not a msgspec.Struct: {config!r}"
    elif required := [field.name for field in msgspec.structs.fields(config) if field.required]:
        yield f"has a `Config` with a field without a default: {', '.join(required)}"
    else:
        yield from find_unfit_fields(config)


def make_call_seed(seed: int, address: Address) -> int:
    """Return the seed of one call, in [0, 2**31): a pure function of the job's seed and the address."""
    place = f"{seed}/{address.scenario}/{address.task}/{address.step}/{address.attempt}"
    return int.from_bytes(hashlib.blake2b(place.encode(), digest_size=4).digest(), "big") >> 1


class Question(NamedTuple):
    """A request without the job's seed."""

    address: Address  # of the first call in the run
    messages: tuple[Message, ...]  # the prompt
    protocol: str  # name of the asking protocol
    role: str = "default"  # the job's role that answers
    schema: bytes | None = None  # the template's; None without one
    logprobs: int | None = None  # see Request
    same_prompt: tuple[Address, ...] = ()
    """Addresses at which the same request is made again, for an independent answer each."""
    speakers: tuple[tuple[str, ...], ...] = ()  # see Request
    form: Form | None = None  # of the answer, as returned by the template's `Prompting.form`
    several: bool = False  # the same prompt is also sent elsewhere, for an independent answer
    scene: Scene | None = None  # see Request
    view: View | None = None  # see Request

    def request(self, address: Address, seed: int, scale: int = 1) -> Request:
        """Return the request at an address. `seed`: the job's; `scale`: factor for the token limit."""
        messages, schema = self.messages, self.schema
        prose: tuple[Message, ...] = ()
        if self.form is not None:
            messages, schema = self.form.add_to(messages), self.form.schema
            prose = () if self.form.required else self.messages
        return Request(
            address,
            messages,
            seed=make_call_seed(seed, address),
            role=self.role,
            max_tokens_scale=scale,
            protocol=self.protocol,
            schema=schema,
            prose=prose,
            logprobs=self.logprobs,
            speakers=self.speakers,
            one_of_several=self.several or bool(self.same_prompt),
            scene=self.scene,
            view=self.view,
        )


def ask(
    question: Question,
    rules: Rules,
    read: Callable[[Reply], T | Rejection],
    final: Collection[str] = (),
) -> Generator[Request, Reply, T | Rejection]:
    """Request answers until `read` accepts one. Return its result, else the last rejection; a rejection for a
    reason in `final` ends the retries.

    A retry never shows the rejected answer; after a cut-off answer it has a higher token limit. A placeholder
    or an echo of the prompt is rejected. A retry that would repeat an earlier request at temperature 0 is
    sent in another form, or not at all.
    """
    first = question.address
    if rules.several and not question.several:
        question = question._replace(several=True)
    scale = 1
    sent: list[Request] = []
    result: T | Rejection = _NEVER_ASKED
    for attempt in range(rules.asks):
        address = Address(first.scenario, first.task, first.step, attempt)
        request = question.request(address, rules.seed, scale)
        if sent:
            unlike = _find_unlike_request(request, sent, rules)
            if unlike is None:
                assert isinstance(result, Rejection), "something was sent before"
                return msgspec.structs.replace(result, detail=f"{result.detail}; {_SAME_AGAIN}")
            request = unlike
        sent.append(request)
        if question.same_prompt and attempt == 0:
            same_prompt = tuple(question.request(other, rules.seed) for other in question.same_prompt)
            request = msgspec.structs.replace(request, same_prompt=same_prompt)
        if attempt and isinstance(result, Rejection):
            request = msgspec.structs.replace(request, retry_reason=result.code)
        try:
            reply = yield request
        except CallError as failure:
            if (scale > 1 or request.other_form) and failure.kind in _NO_MORE_ROOM:
                return result  # the model has no more tokens to give, or the service rejects the other form
            raise
        result = read(reply if question.form is None else question.form.content(reply))
        result = refuse_hollow(result, request)
        if not isinstance(result, Rejection) or result.reason in final:
            return result
        if result.reason is RejectionReason.TRUNCATED:
            scale *= 2
    return result


def _find_unlike_request(request: Request, sent: Sequence[Request], rules: Rules) -> Request | None:
    """Return a request that can get another answer than the earlier ones; None if there is none."""
    backend = rules.backend(request.role)
    if backend is None or not backend.repeats:
        return request
    gone = [(one.messages, one.schema, backend.room(one.max_tokens_scale)) for one in sent]
    if (request.messages, request.schema, room := backend.room(request.max_tokens_scale)) not in gone:
        return request
    if not request.prose or (request.prose, None, room) in gone:
        return None
    return msgspec.structs.replace(request, messages=request.prose, schema=None, prose=(), other_form=True)


def unread(reply: Reply, detail: str) -> Rejection:
    """Return the rejection of an unreadable answer, which was cut off or says something else."""
    cut = reply.finish_reason == "length"
    return Rejection(RejectionReason.TRUNCATED if cut else RejectionReason.UNREAD, detail)


def transcript_of(turns: Iterable[Turn]) -> str:
    """Return a conversation as text for a judge: a line per turn, without an end marker."""
    return "\n".join([f"{turn.role}: {turn.text}" for turn in turns])


def refuse_hollow(result: T | Rejection, request: Request) -> T | Rejection:
    """Return the result of reading an answer; a rejection if it is a placeholder or an echo of the request.
    From a list of texts, only such texts are removed."""
    read: Any = result
    if isinstance(read, Conversation):
        return find_hollow_turn([turn.text for turn in read.turns], request.messages) or result
    if isinstance(read, list) and read and all(isinstance(text, str) for text in read):
        found = [find_hollow(text, request.messages) for text in read]
        kept: Any = [text for text, why in zip(read, found, strict=True) if why is None]
        return kept or found[0] or result
    if not hasattr(read, "repairs"):  # not a text of a speaker
        return result
    why = find_hollow(read.text, request.messages, opening=request.address.step == 0)
    flagged = why is not None and why.reason is RejectionReason.LOOP and why.reason in _list_flags(read)
    return result if why is None or flagged else why


def _list_flags(read: Any) -> Sequence[str]:
    flags: Sequence[str] = getattr(read, "flags", ())
    return flags
