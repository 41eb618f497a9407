"""What batch services behind the vendors' SDKs share: their calls, their files, the lines of their results.

A file is written beside its place until it is whole.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from edgen.core.errors import CallError, FailureKind
from edgen.core.files import Part
from edgen.providers.base import MAX_ANSWER
from edgen.providers.batches import RemoteBatch
from edgen.providers.failures import Classify, decode, scrub
from edgen.providers.sdk import SdkCalls, http_client, limit_answer

if TYPE_CHECKING:
    import httpx2


class SdkBatches:
    """The batches of one account, for one backend. `classify` and `errors`: see SdkCalls."""

    settles: float | None = None

    def __init__(
        self,
        backend: Any,
        environ: Mapping[str, str],
        patience: float,
        classify: Classify,
        errors: tuple[str, str],
    ) -> None:
        self._backend = backend
        self._base = backend.base
        self._credentials = backend.credentials
        self._calls = SdkCalls(backend.base, backend.credentials, classify, errors)
        self._environ = environ
        self._patience = patience
        self._filled: set[str] = set()  # result files that hold lines, by what their batches say

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._backend!r})"

    @cached_property
    def _http(self) -> httpx2.AsyncClient:
        return http_client(self._base, self._credentials, self._environ, self._patience)

    async def state(self, remote_id: str) -> RemoteBatch:
        """How a batch stands."""
        raise NotImplementedError

    async def cancel(self, remote_id: str) -> None:
        """Ask for the end of a batch, which may take minutes."""
        try:
            with self._calls.calling():
                await self._cancel(remote_id)
        except CallError as refusal:  # one that has ended may be refused
            if refusal.status not in (400, 409) or (await self.state(remote_id)).state != "ended":
                raise

    async def forget(self, file_id: str) -> None:
        """Delete an uploaded file."""
        try:
            with self._calls.calling():
                await self._delete(file_id)
        except CallError as refusal:
            if refusal.kind is not FailureKind.NOT_FOUND:
                raise

    async def download(self, file_id: str, to: Path, limit: int = MAX_ANSWER) -> None:
        """Write a result file to `to`, as it comes, a piece at a time. Raises CallError, OSError."""
        async with write_result_file(to, self._calls, filled=file_id in self._filled) as sink:
            with self._calls.calling(), limit_answer(limit):
                await self._fetch(file_id, sink)

    async def aclose(self) -> None:
        """Close the connections. Never raises; may be called twice."""
        if "_http" in self.__dict__:
            with contextlib.suppress(Exception):
                await self._http.aclose()

    def _id(self, made: Any) -> str:
        """The id of what the SDK says was made. Raises CallError if it has none."""
        return self._calls.read_id(getattr(made, "id", None))

    async def _cancel(self, remote_id: str) -> None:
        raise NotImplementedError

    async def _delete(self, file_id: str) -> None:
        raise NotImplementedError

    async def _fetch(self, file_id: str, sink: Sink) -> None:
        raise NotImplementedError


def refusal_without_reason() -> CallError:
    """Why a batch was refused as a whole, where nobody says why."""
    return CallError(FailureKind.SERVER_ERROR, "the batch failed, and the service gave no reason")


class Sink:
    """A file that is being written, in threads. Raises OSError as the disk does."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._first = self._last = b""  # of its bytes that are no white space

    async def write(self, chunk: bytes) -> None:
        await asyncio.to_thread(self._file.write, chunk)
        if said := chunk.strip():
            self._first, self._last = self._first or said[:4], said[-1:]

    def wrong(self, *, filled: bool) -> str | None:
        """Why what was written is no result file, if it cannot be one. `filled`: it must have lines. Each of its
        lines is an object; nothing is asked of those between the first and the last."""
        if not self._first:
            return "empty, though its batch has answers" if filled else None
        if not self._first.removeprefix(codecs.BOM_UTF8).startswith(b"{"):
            return f"no JSON lines; it begins with {self._first!r}"
        return None if self._last == b"}" else "cut off in the middle of a line"


@contextlib.asynccontextmanager
async def write_result_file(to: Path, place: SdkCalls, *, filled: bool = False) -> AsyncIterator[Sink]:
    """What the body writes, a result file from `place`, is at `to` when it ends, on the disk; if it does not end
    well, nothing is. `filled`: it cannot be empty. Raises CallError for what is no such file."""
    part = Part(to)  # not in a thread, which would still make it after a cancellation
    try:
        sink = Sink(part.file)
        yield sink
        if (wrong := sink.wrong(filled=filled)) is not None:
            raise CallError(FailureKind.BAD_RESPONSE, f"the result file that {place.name} gave is {wrong}")
        await asyncio.to_thread(_settle, part)
    finally:
        part.discard()


def _settle(part: Part) -> None:
    part.close()
    part.publish()


_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_TEXT = msgspec.json.Decoder(str)
_NUMBER = msgspec.json.Decoder(int)


def read_members(value: bytes) -> dict[str, bytes]:
    """The members of a JSON object, each as its JSON; none where `value` is no object. Never raises.

    A value that msgspec refuses (models write lone surrogates and raw control characters, which some servers pass
    on) is read leniently, its members written anew.
    """
    try:
        return {name: bytes(member) for name, member in _MEMBERS.decode(value).items()}
    except (ValueError, RecursionError):
        pass
    try:
        read: Any = json.loads(value, strict=False)
        return (
            {name: json.dumps(member).encode() for name, member in read.items()}
            if isinstance(read, dict)
            else {}
        )
    except (ValueError, RecursionError):
        return {}


def read_text_member(value: bytes | None) -> str | None:
    """A JSON string, without lone surrogates; None for anything else."""
    found = None if value is None else decode(_TEXT, value)
    return None if found is None else scrub(found)


def read_number_member(value: bytes | None) -> int | None:
    """A JSON integer, None for anything else."""
    try:
        return None if value is None else _NUMBER.decode(value)
    except ValueError:
        return None
