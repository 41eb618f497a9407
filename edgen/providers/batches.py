"""What a provider's batch service is to edgen: files up, a batch begun and watched, files down, lines read.

One attempt each; every failure is a CallError, classified as the online adapters do. Who retries, what is
stored and when is other people's business.
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
from edgen.core.values import Address, Reply, Request
from edgen.providers.base import MAX_ANSWER

_PREFIX = 16  # bytes of a key in a custom id: enough that no two of a run are ever the same
_ID = re.compile(r"(\d{1,13})-(\d{1,5})-(\d{1,2})-([0-9a-f]{32})(?:-[a-z2-7]{8})?")


def custom_id(address: Address, key: bytes, mark: str = "") -> str:
    """The name of a request in a batch's files, 64 characters at most: scenario, step and attempt, and how its key
    begins, which is made of its task as well; then the batch's `mark`, where it has one."""
    name = f"{address.scenario}-{address.step}-{address.attempt}-{key[:_PREFIX].hex()}"
    return f"{name}-{mark}" if mark else name


def mark_of(token: str) -> str:
    """What the requests of a batch are known by where the batch itself cannot carry its token: 40 bits of a digest, as
    eight letters and digits."""
    return base64.b32encode(hashlib.sha256(token.encode()).digest()[:5]).decode().lower()


def read_custom_id(text: str) -> tuple[int, int, int, bytes] | None:
    """Scenario, step, attempt and the first bytes of the key that a custom id holds; None if it is none of edgen's."""
    found = _ID.fullmatch(text)
    if found is None:
        return None
    scenario, step, attempt = (int(part) for part in found.groups()[:3])
    return scenario, step, attempt, bytes.fromhex(found[4])


# What a service may call a file or a batch: it goes into addresses, so it is no path but Google's two.
_NAME = re.compile(r"(?:(?:batches|files)/)?[A-Za-z0-9_=+~:@,-][A-Za-z0-9._=+~:@,-]{0,1023}")


def is_id(name: str) -> bool:
    """Whether a service can have given this id to a file or a batch."""
    return _NAME.fullmatch(name) is not None


class BatchLimits(msgspec.Struct, frozen=True):
    """What one batch can hold, by the provider's documentation: requests, and bytes of its file."""

    requests: int
    bytes: int


class OversizedError(CallError):
    """A file of results is larger than may be read; asking for it again would change nothing."""


class LineResult(msgspec.Struct, frozen=True):
    """A line of a result file: what became of one request. `failure` is set where there is no reply."""

    id: str
    reply: Reply | None = None
    failure: CallError | None = None


class NeverBegun(msgspec.Struct, frozen=True):
    """A line that says that a request was never worked on: its batch expired or was cancelled first."""

    id: str
    why: str


class RemoteBatch(msgspec.Struct, frozen=True, kw_only=True):
    """A batch as the provider has it.

    `state` is `working` until it has `ended`, whatever the end was; `outcome` then says which. `files` are the
    provider's names of its result files, in the order in which they are to be read; there may be some whatever
    the outcome. `done` and `total` count requests, None where the provider does not say. `failure` is why a batch
    was refused as a whole.
    """

    id: str
    state: Literal["working", "ended"]
    outcome: Literal["completed", "expired", "cancelled", "failed"] | None = None
    files: tuple[str, ...] = ()
    done: int | None = None
    total: int | None = None
    failure: CallError | None = None


class Sending(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that is to be begun, or was perhaps: its token, its file here, what `upload` returned of it, and how many
    requests it holds. `asked_at`: when the provider was asked to begin, in seconds since the epoch. `others`: ids of
    batches that are known to be another one of the run."""

    token: str
    file: Path = Path()
    file_id: str | None = None
    requests: int = 0
    asked_at: float | None = None
    others: frozenset[str] = frozenset()


class Suspects(msgspec.Struct, frozen=True):
    """Batches at work, one of which may be the one that was looked for: that shows when they have ended."""

    ids: tuple[str, ...]


class BatchService(Protocol):
    """One provider's batch service for one backend of a job. Made by `edgen.providers.make_batch_service`.

    Whatever goes over the network raises CallError; cancellation passes through.
    """

    @property
    def limits(self) -> BatchLimits: ...

    @property
    def settles(self) -> float | None:
        """None where a batch carries its token, so that `find` knows it. Otherwise its custom ids carry the token's mark, and
        this is the seconds after which a `create` that nobody heard of has made a batch that is listed, or never will."""

    @property
    def client(self) -> Any:
        """The vendor's SDK. Raises InputError where the extra is not installed."""

    def line(self, name: str, request: Request) -> bytes:
        """The request as a line of an input file, `name` its custom id, without its line feed. Raises CallError where the request
        cannot be written."""

    def read(self, line: bytes) -> LineResult | NeverBegun | None:
        """What a line of a result file says; None if it is no such line."""

    async def upload(self, file: Path, token: str) -> str | None:
        """Upload an input file under a name made of `token`; returns the provider's name of it. Where no file goes up,
        what `find` will need to know instead, if anything."""

    async def create(self, sending: Sending) -> RemoteBatch:
        """Have the provider begin, with the token where `find` finds it."""

    async def find(self, sending: Sending) -> RemoteBatch | Suspects | None:
        """The batch that was begun for `sending`, None if there is none among all that the provider lists."""

    async def state(self, remote_id: str) -> RemoteBatch:
        """How a batch stands. NOT_FOUND where the provider has none of that id (any more)."""

    async def cancel(self, remote_id: str) -> None:
        """Ask for the end of a batch; it ends some time after. One that has ended is left as it is."""

    async def forget(self, file_id: str) -> None:
        """Delete an uploaded file; one that is gone already is no failure."""

    async def download(self, file_id: str, to: Path, limit: int = MAX_ANSWER) -> None:
        """Write a result file of at most `limit` bytes to `to`, whole or not at all; BAD_RESPONSE for what can be
        none. Raises OSError as the disk does."""

    async def aclose(self) -> None:
        """Release connections. Never raises; may be called twice."""


ReadLine = Callable[[bytes], LineResult | NeverBegun | None]


class BatchServices(NamedTuple):
    """All batch services of one provider. `open` makes the one for a backend, given an environment and seconds
    of patience; see `edgen.providers.make_batch_service`. `read_line` reads a line of a
    result file, as `BatchService.read` does, without a key or a network."""

    open: Callable[[Any, Mapping[str, str], float], BatchService]
    read_line: ReadLine
