"""Messages between head and workers: tagged structs in MessagePack, many to a frame."""

from __future__ import annotations

from typing import Literal

import msgspec

from edgen.core.errors import CallError, EdgenError, FailureKind
from edgen.core.values import Address, Reply, Request, TaskId
from edgen.protocols.parts import Settled

LEASE = 5.0  # seconds in which a permit holds, by the worker's clock, from the sign of life that it answers
PATIENCE = 10.0  # seconds after which a silent worker is given up
BEAT = 1.0  # seconds between two signs of life

Unit = tuple[int, TaskId]
Asking = Literal["models", "slots", "load"]  # a method of a backend


class CallFailure(msgspec.Struct, frozen=True, array_like=True, tag="failure"):
    """A CallError."""

    kind: str
    message: str
    status: int | None
    retry_after: float | None
    unsent: bool

    @classmethod
    def of(cls, error: CallError) -> CallFailure:
        """Return the error in this form."""
        return cls(str(error.kind), error.message, error.status, error.retry_after, error.unsent)

    @property
    def error(self) -> CallError:
        """The error."""
        return CallError(
            FailureKind(self.kind),
            self.message,
            status=self.status,
            retry_after=self.retry_after,
            unsent=self.unsent,
        )


# -- to a worker


class SetTasks(msgspec.Struct, frozen=True, array_like=True, tag="equip"):
    """From now on, units are of these tasks, as `shipping.pack` packed them."""

    packed: bytes


class Permit(msgspec.Struct, frozen=True, array_like=True, tag="permit"):
    """Make one attempt at the server of a backend: with the open request of a unit, whose reply the unit
    takes at once; or with a pickled request, which takes the scene of the unit's."""

    number: int  # of the permit
    backend: str  # its name in the job
    server: str  # its address; empty for a backend with one
    unit: Unit | None  # with an open request; None for a request of its own
    way: str = "schema"  # form of the unit's request (`client.form_support`); empty: not known yet
    request: bytes = b""  # pickled; empty: the unit's
    heard: float = 0.0
    """The moment of the worker's last sign of life that the head had, by the worker's clock: a worker that
    was frozen meanwhile finds it too long ago, however late it reads this."""


class StartUnit(msgspec.Struct, frozen=True, array_like=True, tag="take"):
    """Work on a unit. `stored`: its replies by key. `first`: makes the attempt at its first request at once,
    or a `AttemptResult` with neither reply nor failure where the permit does not fit."""

    unit: Unit
    stored: dict[bytes, Reply]
    first: Permit | None = None


class UnitReply(msgspec.Struct, frozen=True, array_like=True, tag="answered"):
    """The reply to a unit's request from elsewhere, or why there is none."""

    unit: Unit
    reply: Reply | None
    failure: CallFailure | None = None


class ServerQuestion(msgspec.Struct, frozen=True, array_like=True, tag="question"):
    """Ask a server of a backend about itself."""

    number: int
    backend: str
    server: str
    about: Asking


class Heartbeat(msgspec.Struct, frozen=True, array_like=True, tag="beat"):
    """A sign of life, in both directions, at a moment by the clock of its sender."""

    at: float


ToWorker = SetTasks | StartUnit | Permit | UnitReply | ServerQuestion | Heartbeat


# -- from a worker


class Hello(msgspec.Struct, frozen=True, array_like=True, tag="hello"):
    """The first message: which worker this is, and the secret that the head gave it."""

    number: int
    secret: bytes


class OpenRequest(msgspec.Struct, frozen=True, array_like=True, tag="asked"):
    """The open request of a unit."""

    unit: Unit  # scenario and task
    request: Request  # without its scene
    key: bytes  # of the request, in the ledger
    replayed: int  # replies used from the ledger since the last message
    refused: str  # why the previous reply was unusable; empty if it was usable
    first: Request | None = None
    """The unit's first request, if it was made with its permit and the reply is unusable."""


class AttemptResult(msgspec.Struct, frozen=True, array_like=True, tag="called"):
    """The result of an attempt: a reply, or why there is none. `checksum`: the reply's in the ledger, if it
    is to the unit's open request."""

    number: int
    reply: Reply | None
    failure: CallFailure | None = None
    checksum: int | None = None


class ServerAnswer(msgspec.Struct, frozen=True, array_like=True, tag="told"):
    """The answer to a question: one of the two."""

    number: int
    value: list[str] | int | None
    failure: CallFailure | None = None


class UnitOutcome(msgspec.Struct, frozen=True, array_like=True, tag="ended"):
    """The outcome of a unit."""

    unit: Unit  # scenario and task
    settled: Settled | None  # None: its last request got no answer
    failure: CallFailure | None  # that left its last request without an answer; None: it has an outcome
    group: int  # the split's group hash
    last_key: bytes | None  # of its last request in the ledger
    simulated: bool  # no model wrote at least one answer
    replayed: int  # replies used from the ledger
    refused: str  # why its last answer was unusable; empty if it was usable
    checksums: tuple[int, int] | None = None  # of the outcome and its record in the ledger
    first: Request | None = None  # as in OpenRequest


class FirstReply(msgspec.Struct, frozen=True, array_like=True, tag="first"):
    """The reply to a unit's first request, which the head has not seen. The head stores most texts and reads
    none, so the text is next to the reply, as bytes that are not decoded."""

    number: int  # of the permit
    reply: Reply  # of the service, with an empty text
    text: bytes  # of the reply, in UTF-8
    address: Address  # of the request
    key: bytes  # of the request, in the ledger
    role: str  # of the job, that was asked
    charged_tokens: int  # as counted, or the maximum
    cost_usd: float | None  # US dollars; None without a price
    checksum: int  # of the reply, in the ledger
    ended: UnitOutcome | None = None  # the unit's outcome, if it asks nothing more

    @property
    def whole_reply(self) -> Reply:
        """The reply with its text."""
        return msgspec.structs.replace(self.reply, text=self.text.decode())


class WorkerFailure(msgspec.Struct, frozen=True, array_like=True, tag="broken"):
    """An error that stops the run: an EdgenError or a bug."""

    message: str  # the EdgenError's; empty for a bug
    code: int = 1  # its exit code
    reason: str = "error"  # in one word
    fault: str = ""  # a bug's traceback

    @property
    def error(self) -> EdgenError:
        """The error."""
        raised = EdgenError(self.message or f"A worker failed: {self.fault}")
        raised.exit_code, raised.reason = self.code, self.reason
        return raised


ToHead = (
    Hello | OpenRequest | AttemptResult | FirstReply | ServerAnswer | UnitOutcome | WorkerFailure | Heartbeat
)
