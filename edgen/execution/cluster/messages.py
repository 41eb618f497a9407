"""Messages between head and workers: tagged structs in MessagePack, many to a frame."""

from __future__ import annotations

from typing import Literal

import msgspec

from edgen.core.errors import CallError, EdgenError, FailureKind
from edgen.core.values import Address, Reply, Request, TaskId
from edgen.protocols.parts import Settled

LEASE = 5.0  # seconds that a permit is valid, by the worker's clock, from the sign of life that it states
PATIENCE = 10.0  # seconds after which the head gives up a silent worker
BEAT = 1.0  # seconds between two signs of life

Unit = tuple[int, TaskId]
Asking = Literal["models", "slots", "load"]  # a method of a backend


class CallFailure(msgspec.Struct, frozen=True, array_like=True, tag="failure"):
    """A CallError as a message."""

    kind: str
    message: str
    status: int | None
    retry_after: float | None
    unsent: bool

    @classmethod
    def of(cls, error: CallError) -> CallFailure:
        """Return an error as a message."""
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
    """Use these tasks for all units from now on; packed by `shipping.pack`."""

    packed: bytes


class Permit(msgspec.Struct, frozen=True, array_like=True, tag="permit"):
    """Make one attempt at a server of a backend. The request is a unit's open request, and the unit continues
    with the reply at once; or it is a pickled request, with the scene of the unit's request."""

    number: int  # of the permit
    backend: str  # its name in the job
    server: str  # its address; empty for a backend with one
    unit: Unit | None  # unit with the open request; None if only the pickled request counts
    way: str = "schema"  # way of the unit's request (`client.form_support`); empty: not known yet
    request: bytes = b""  # pickled request; empty: the unit's
    heard: float = 0.0
    """Time of the worker's last sign of life that the head has received, by the worker's clock. So a worker
    that was frozen sees that the permit is too old, however late it reads it."""


class StartUnit(msgspec.Struct, frozen=True, array_like=True, tag="take"):
    """Work on a unit. `stored`: its replies by key. `first`: a permit to make the attempt at its first
    request at once. If the permit does not fit, the worker sends an `AttemptResult` with neither reply nor
    failure."""

    unit: Unit
    stored: dict[bytes, Reply]
    first: Permit | None = None


class UnitReply(msgspec.Struct, frozen=True, array_like=True, tag="answered"):
    """The reply to a unit's request that another worker or the ledger gave, or the call's failure."""

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
    """A sign of life, in both directions. `at`: seconds of the sender's clock."""

    at: float


ToWorker = SetTasks | StartUnit | Permit | UnitReply | ServerQuestion | Heartbeat


# -- from a worker


class Hello(msgspec.Struct, frozen=True, array_like=True, tag="hello"):
    """A worker's first message: its number, and the secret that the head gave it."""

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
    """The unit's first request, if its attempt was made by a permit in StartUnit and the reply is
    unusable."""


class AttemptResult(msgspec.Struct, frozen=True, array_like=True, tag="called"):
    """The result of an attempt: a reply or a failure. `checksum`: the reply's checksum in the ledger, if it
    answers the unit's open request."""

    number: int
    reply: Reply | None
    failure: CallFailure | None = None
    checksum: int | None = None


class ServerAnswer(msgspec.Struct, frozen=True, array_like=True, tag="told"):
    """The answer to a ServerQuestion: a value or a failure."""

    number: int
    value: list[str] | int | None
    failure: CallFailure | None = None


class UnitOutcome(msgspec.Struct, frozen=True, array_like=True, tag="ended"):
    """The outcome of a unit."""

    unit: Unit  # scenario and task
    settled: Settled | None  # None: its last request got no answer
    failure: CallFailure | None  # failure of its last request; None: it has an outcome
    group: int  # the split's group hash
    last_key: bytes | None  # ledger's key of its last answered request
    simulated: bool  # the simulator wrote at least one answer
    replayed: int  # replies used from the ledger
    refused: str  # why its last answer was unusable; empty if it was usable
    checksums: tuple[int, int] | None = None  # of the outcome and its record in the ledger
    first: Request | None = None  # as in OpenRequest


class FirstReply(msgspec.Struct, frozen=True, array_like=True, tag="first"):
    """The reply to a unit's first request, which the head has not seen. The head stores most texts without
    reading them, so the text is a field of its own, in bytes."""

    number: int  # of the permit
    reply: Reply  # reply of the service, with an empty text
    text: bytes  # text of the reply, in UTF-8
    address: Address  # of the request
    key: bytes  # of the request, in the ledger
    role: str  # role that answered
    charged_tokens: int  # tokens as counted; the maximum without counts
    cost_usd: float | None  # US dollars; None without a price
    checksum: int  # the reply's checksum in the ledger
    ended: UnitOutcome | None = None  # the unit's outcome, if it has no further request

    @property
    def whole_reply(self) -> Reply:
        """The reply with its text."""
        return msgspec.structs.replace(self.reply, text=self.text.decode())


class WorkerFailure(msgspec.Struct, frozen=True, array_like=True, tag="broken"):
    """An error that stops the run: an EdgenError or a bug."""

    message: str  # message of the EdgenError; empty for a bug
    code: int = 1  # its exit code
    reason: str = "error"  # one word for the status
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
