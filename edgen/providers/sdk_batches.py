"""Base of batch services built on vendors' SDKs: calls, files and result lines.

A file is written next to its destination until it is complete.
"""

from __future__ import annotations

import codecs
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from edgen.core.errors import CallError, FailureKind
from edgen.core.files import Part
from edgen.core.system import run_in_thread
from edgen.core.values import MAX_ANSWER
from edgen.providers.batches import LineResult, NeverBegun, RemoteBatch
from edgen.providers.failures import Classify, Secrets, decode, scrub
from edgen.providers.sdk import SdkCalls, build_http_client, limit_download

if TYPE_CHECKING:
    import httpx2


class SdkBatches:
    """Client of the batches of one account, for one backend. `classify` and `errors`: see SdkCalls."""

    settles: float | None = None

    def __init__(
        self,
        backend: Any,
        environ: Mapping[str, str],
        patience: float,
        classify: Classify,
        errors: tuple[str, str],
        read_line: Callable[[bytes, Secrets], LineResult | NeverBegun | None],
    ) -> None:
        """`read_line`: reads a line of a result file, without these secrets."""
        self._backend = backend
        self._base = backend.base
        self._credentials = backend.credentials
        self._calls = SdkCalls(backend.base, backend.credentials, classify, errors)
        self._read_line = read_line
        self._environ = environ
        self._patience = patience
        self._filled: set[str] = set()  # result files that must contain lines, according to their batches

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._backend!r})"

    @cached_property
    def _http(self) -> httpx2.AsyncClient:
        return build_http_client(self._base, self._calls, self._environ, self._patience)

    def read(self, line: bytes) -> LineResult | NeverBegun | None:
        """Read a line of a result file; None if it is invalid. Never raises."""
        return self._read_line(line, self._credentials.secrets)

    async def state(self, remote_id: str) -> RemoteBatch:
        """Return the state of a batch."""
        raise NotImplementedError

    async def cancel(self, remote_id: str) -> None:
        """Request cancellation of a batch, which may take minutes."""
        try:
            with self._calls.translate_errors():
                await self._cancel(remote_id)
        except CallError as refusal:  # an ended batch may refuse
            if refusal.status not in (400, 409) or (await self.state(remote_id)).state != "ended":
                raise

    async def forget(self, file_id: str) -> None:
        """Delete an uploaded file."""
        try:
            with self._calls.translate_errors():
                await self._delete(file_id)
        except CallError as refusal:
            if refusal.kind is not FailureKind.NOT_FOUND:
                raise

    async def download(self, file_id: str, to: Path, limit: int = MAX_ANSWER) -> None:
        """Stream a result file to `to`. Raises CallError, OSError."""
        async with write_result_file(to, self._calls, filled=file_id in self._filled) as sink:
            with self._calls.translate_errors(), limit_download(limit):
                await self._fetch(file_id, sink)

    async def aclose(self) -> None:
        """Close the connections. Never raises; may be called twice."""
        if "_http" in self.__dict__:
            with contextlib.suppress(Exception):
                await self._http.aclose()

    def _read_id(self, made: Any) -> str:
        """Return the id of an object that the SDK created. Raises CallError if it has none."""
        return self._calls.read_id(getattr(made, "id", None))

    async def _cancel(self, remote_id: str) -> None:
        raise NotImplementedError

    async def _delete(self, file_id: str) -> None:
        raise NotImplementedError

    async def _fetch(self, file_id: str, sink: Sink) -> None:
        raise NotImplementedError


def refusal_without_reason() -> CallError:
    """Return the failure of a batch that was refused without a reason."""
    return CallError(FailureKind.SERVER_ERROR, "the batch failed, and the service gave no reason")


class Sink:
    """A file that threads write. Raises OSError for disk errors."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._first = self._last = b""  # first and last byte that is not white space

    async def write(self, chunk: bytes) -> None:
        await run_in_thread(self._file.write, chunk)
        if said := chunk.strip():
            self._first, self._last = self._first or said[:4], said[-1:]

    def explain_invalid_file(self, *, filled: bool) -> str | None:
        """Explain why the written bytes are not a result file; None if they may be one. `filled`: it must
        have lines. Only the first and the last line are checked; both must be objects."""
        if not self._first:
            return "empty, though its batch has answers" if filled else None
        if not self._first.removeprefix(codecs.BOM_UTF8).startswith(b"{"):
            return f"no JSON lines; it begins with {self._first!r}"
        return None if self._last == b"}" else "cut off in the middle of a line"


@contextlib.asynccontextmanager
async def write_result_file(to: Path, place: SdkCalls, *, filled: bool = False) -> AsyncIterator[Sink]:
    """Write a result file from `place` within the body. It appears at `to`, on disk, only if the body
    succeeds. `filled`: it must not be empty. Raises CallError for an invalid file."""
    part = Part(to)  # not in a thread, which could create the file after a cancellation
    try:
        sink = Sink(part.file)
        yield sink
        if (wrong := sink.explain_invalid_file(filled=filled)) is not None:
            raise CallError(FailureKind.BAD_RESPONSE, f"the result file that {place.name} gave is {wrong}")
        await run_in_thread(_settle, part)
    finally:
        part.discard()


def _settle(part: Part) -> None:
    part.close()
    part.publish()


_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_TEXT = msgspec.json.Decoder(str)
_NUMBER = msgspec.json.Decoder(int)


def read_members(value: bytes) -> dict[str, bytes]:
    """Return the members of a JSON object, each as its JSON; empty if `value` is not an object. Never raises.

    Values that msgspec rejects (some servers pass on lone surrogates and raw control characters of models)
    are read leniently, and their members are encoded again.
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
    """Return a JSON string, without lone surrogates; None for other values."""
    found = None if value is None else decode(_TEXT, value)
    return None if found is None else scrub(found)


def read_number_member(value: bytes | None) -> int | None:
    """Return a JSON integer; None for other values."""
    try:
        return None if value is None else _NUMBER.decode(value)
    except ValueError:
        return None
