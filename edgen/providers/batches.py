"""Interface of a provider's batch service: upload files, create and watch a batch, download files, read
lines.

Each call makes one attempt. Every failure is a CallError, classified as in the online adapters. Retries and
storage are handled elsewhere.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import msgspec

from edgen.core.errors import CallError
from edgen.core.values import MAX_ANSWER, Address, Reply, Request

_PREFIX = 16  # bytes of a key in a custom id: enough to be unique in a run
_ID = re.compile(r"(\d{1,13})-(\d{1,5})-(\d{1,2})-([0-9a-f]{32})(?:-[a-z2-7]{8})?")


def make_custom_id(address: Address, key: bytes, mark: str = "") -> str:
    """Return a request's custom id in a batch's files, at most 64 characters: scenario, step and attempt, the
    start of its key (which depends on its task), and the batch's `mark`, if any."""
    name = f"{address.scenario}-{address.step}-{address.attempt}-{key[:_PREFIX].hex()}"
    return f"{name}-{mark}" if mark else name


def mark_of(token: str) -> str:
    """Return a mark for the requests of a batch that cannot carry its token: 40 bits of a digest, as eight
    letters and digits."""
    return base64.b32encode(hashlib.sha256(token.encode()).digest()[:5]).decode().lower()


def read_custom_id(text: str) -> tuple[int, int, int, bytes] | None:
    """Return scenario, step, attempt and first key bytes of a custom id; None if edgen did not write it."""
    found = _ID.fullmatch(text)
    if found is None:
        return None
    scenario, step, attempt = (int(part) for part in found.groups()[:3])
    return scenario, step, attempt, bytes.fromhex(found[4])


# Valid names of files and batches. They become part of addresses, so only Google's two path prefixes are
# allowed.
_NAME = re.compile(r"(?:(?:batches|files)/)?[A-Za-z0-9_=+~:@,-][A-Za-z0-9._=+~:@,-]{0,1023}")


def is_id(name: str) -> bool:
    """Return whether a name is a valid id of a file or a batch."""
    return _NAME.fullmatch(name) is not None


class BatchLimits(msgspec.Struct, frozen=True):
    """Limits of one batch by the provider's documentation: requests, and bytes of its file."""

    requests: int
    bytes: int


class OversizedError(CallError):
    """A result file is too large to read; a retry would not help."""


class LineResult(msgspec.Struct, frozen=True):
    """Result of one request, from a line of a result file. `failure` is set if there is no reply."""

    id: str
    reply: Reply | None = None
    failure: CallError | None = None


class NeverBegun(msgspec.Struct, frozen=True):
    """A line for a request that was never worked on, since its batch expired or was cancelled."""

    id: str
    why: str


class RemoteBatch(msgspec.Struct, frozen=True, kw_only=True):
    """A batch as the provider reports it."""

    id: str  # the provider's id
    state: Literal["working", "ended"]
    """`ended` stands for every end; `outcome` distinguishes them."""
    outcome: Literal["completed", "expired", "cancelled", "failed"] | None = None  # None while it is working
    files: tuple[str, ...] = ()
    """The provider's ids of the result files, in reading order. Every outcome may have some."""
    done: int | None = None
    """Requests that are done; None if the provider does not say."""
    total: int | None = None
    """Requests in the batch; None if the provider does not say."""
    failure: CallError | None = None
    """The reason why a batch was refused as a whole."""


class Sending(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that is or may be created."""

    token: str  # identifies the batch at the provider
    file: Path = Path()  # path of its requests
    file_id: str | None = None  # the provider's id of the uploaded file; None before the upload
    requests: int = 0  # number of requests
    asked_at: float | None = None  # seconds since the epoch of the attempt to create it; None before
    others: frozenset[str] = frozenset()  # ids of other known batches


class Suspects(msgspec.Struct, frozen=True):
    """Running batches that may be the wanted one. This is known once they have ended."""

    ids: tuple[str, ...]


class BatchService(Protocol):
    """One provider's batch service for one backend of a job. Made by `edgen.providers.make_batch_service`.

    Network calls raise CallError; cancellation passes through.
    """

    @property
    def limits(self) -> BatchLimits: ...

    @property
    def settles(self) -> float | None:
        """Seconds until an unconfirmed `create` is listed or has failed; None if `find` needs no wait.

        `find` recognises a batch that carries its token. Otherwise its custom ids carry the token's mark.
        """

    @property
    def client(self) -> Any:
        """The vendor's SDK. Raises InputError if the extra is not installed."""

    def line(self, name: str, request: Request) -> bytes:
        """Return the request as a line of an input file without line feed, with `name` as its custom id.
        Raises CallError if the request cannot be written."""

    def read(self, line: bytes) -> LineResult | NeverBegun | None:
        """Read a line of a result file; None if it is invalid."""

    async def upload(self, file: Path, token: str) -> str | None:
        """Upload an input file under a name made from `token`. Return the provider's id of it. Services
        without upload return what `find` needs later, if anything."""

    async def create(self, sending: Sending) -> RemoteBatch:
        """Create a batch, with the token where `find` looks for it."""

    async def find(self, sending: Sending) -> RemoteBatch | Suspects | None:
        """Return the batch that was created for `sending`; None if the provider lists none."""

    async def state(self, remote_id: str) -> RemoteBatch:
        """Return the state of a batch. Raises NOT_FOUND if the provider does not have that id (any more)."""

    async def cancel(self, remote_id: str) -> None:
        """Request cancellation of a batch, which takes effect later. An ended batch is left unchanged."""

    async def forget(self, file_id: str) -> None:
        """Delete an uploaded file; a missing file is not an error."""

    async def download(self, file_id: str, to: Path, limit: int = MAX_ANSWER) -> None:
        """Write a result file of at most `limit` bytes to `to`, whole or not at all. Raises BAD_RESPONSE for
        invalid files, OSError for disk errors."""

    async def aclose(self) -> None:
        """Release connections. Never raises; may be called twice."""


ReadLine = Callable[[bytes], LineResult | NeverBegun | None]


class BatchServices(NamedTuple):
    """The batch services of one provider. `open` makes the service for a backend, an environment and seconds
    of patience (see `edgen.providers.make_batch_service`). `read_line` reads a line of a result file, as
    `BatchService.read` does, without key or network."""

    open: Callable[[Any, Mapping[str, str], float], BatchService]
    read_line: ReadLine
