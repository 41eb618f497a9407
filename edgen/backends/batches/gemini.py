"""The Gemini Developer API's batches, through Google's google-genai client.

A line's request is what the online adapter sends, to the byte, and its answer is read as the online adapter reads
it. Limits, states and shapes are those of Google's "Batch API" and "Rate limits" pages and of its generated client
library. A batch is found again by its display name, which is its token. How a batch stands is asked without the
client, whose `batches.get` leaves out how many requests are done and why a batch failed. The client sends a piece
of an upload up to three times; each piece names its place in the file, so that does no harm.
"""

from __future__ import annotations

import contextlib
import logging
import re
import warnings
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from edgen.backends.base import MAX_ANSWER
from edgen.backends.batches.base import Answered, Limits, Remote, Unanswered
from edgen.backends.batches.sdk import Place, at_most, client, members, number, sdk, text, whole
from edgen.backends.failures import ErrorBody, clean, failure, read_error, without_key
from edgen.backends.gemini import GeminiBackend, classify, model_path, read_reply
from edgen.backends.http import base_address, below
from edgen.config import GeminiConfig
from edgen.errors import CallError, FailureKind
from edgen.model import Request

if TYPE_CHECKING:
    import httpx2
    from google.genai.client import AsyncClient

_PAGE = 100  # batches asked for at a time
_encode = msgspec.json.Encoder().encode


class GeminiBatches:
    """The batches of one project, for one backend."""

    # Google bounds the bytes and not the requests; this many, so that one that expires takes no more with it.
    limits = Limits(requests=50_000, bytes=2_000_000_000)

    def __init__(
        self, config: GeminiConfig, backend: GeminiBackend, environ: Mapping[str, str], patience: float
    ) -> None:
        self._base = base_address(config.base_url)
        self._backend = backend
        self._model = model_path(config.model)
        self._key = backend.key
        self._place = Place(
            self._base, self._key, _classify, ("google.genai.errors", "APIError"), backend.hint
        )
        self._environ = environ
        self._patience = patience
        self._filled: set[str] = set()  # result files that hold lines, by what their batches say

    def __repr__(self) -> str:
        return f"GeminiBatches({self._backend!r})"

    @cached_property
    def _http(self) -> httpx2.AsyncClient:
        return client(self._base, self._key, self._environ, self._patience)

    @cached_property
    def client(self) -> AsyncClient:
        """Google's client for the Developer API, whatever GOOGLE_… says elsewhere; it tries once."""
        genai: Any = sdk("google.genai", "gemini")
        # It remarks on keys in the environment, which it is not to use, and on states that it does not know.
        logging.getLogger("google_genai").setLevel(logging.ERROR)
        warnings.filterwarnings("ignore", module=r"google\.genai")
        made: AsyncClient = genai.Client(
            api_key=self._key or "none",  # the client wants one; none is sent
            vertexai=False,
            http_options={
                "base_url": str(self._base),
                "api_version": "v1beta",
                # Milliseconds; it has to be said, or the client waits for ever.
                "timeout": max(1, round(self._patience * 1000)),
                "retry_options": {"attempts": 1},
                "httpx_async_client": self._http,
            },
        ).aio
        return made

    # -- lines

    def line(self, name: str, request: Request) -> bytes:
        """The request as a line of an input file. Raises CallError for half of a character."""
        return b'{"key":%b,"request":%b}' % (_encode(name), self._backend.body(request))

    def read(self, line: bytes) -> Answered | Unanswered | None:
        """What a line of a result file says; None if it is none. Never raises."""
        return read_line(line, self._key)

    # -- calls

    async def upload(self, file: Path, token: str) -> str:
        """Upload an input file, in pieces of 8 MiB. Raises CallError, and OSError for the file."""
        with self._place.calling():
            made = await self.client.files.upload(
                file=file, config={"display_name": token, "mime_type": "jsonl"}
            )
        return self._place.named(made.name)

    async def create(self, file_id: str, token: str) -> Remote:
        """Have Google begin."""
        with self._place.calling():
            job = await self.client.batches.create(
                model=self._model, src=file_id, config={"display_name": token}
            )
        return Remote(id=self._place.named(job.name), state="working")

    async def find(self, token: str) -> Remote | None:
        """The batch begun with `token`. The list is in no order that Google states, so all of it is looked at."""
        with self._place.calling():
            async for job in await self.client.batches.list(config={"page_size": _PAGE}):
                if job.display_name == token:
                    return Remote(id=self._place.named(job.name), state="working")
        return None

    async def state(self, remote_id: str) -> Remote:
        """How a batch stands."""
        url = str(below(self._base, f"v1beta/{_batch_path(remote_id)}"))
        with self._place.calling():
            answer = await self._http.get(url, headers={"x-goog-api-key": self._key or ""})
        if answer.status_code != 200:
            raise self._place.failure(answer.status_code, answer.headers, answer.content)
        return self._remote(remote_id, answer.content)

    async def cancel(self, remote_id: str) -> None:
        """Ask for the end of a batch."""
        try:
            with self._place.calling():
                await self.client.batches.cancel(name=remote_id)
        except CallError as refusal:  # one that has ended may be refused
            if refusal.status not in (400, 409) or (await self.state(remote_id)).state != "ended":
                raise

    async def forget(self, file_id: str) -> None:
        """Delete an uploaded file."""
        try:
            with self._place.calling():
                await self.client.files.delete(name=file_id)
        except CallError as refusal:
            if refusal.kind is not FailureKind.NOT_FOUND:
                raise

    async def download(self, file_id: str, to: Path, limit: int = MAX_ANSWER) -> None:
        """Write a result file to `to`, as it comes, a piece at a time. Raises CallError, OSError."""
        async with whole(to, self._place, filled=file_id in self._filled) as sink:
            with self._place.calling(), at_most(limit):
                await self.client.files.download(file=file_id, destination=sink)  # type: ignore[call-overload]

    async def aclose(self) -> None:
        """Close the connections. Never raises; may be called twice."""
        if "_http" in self.__dict__:
            with contextlib.suppress(Exception):
                await self._http.aclose()

    # -- how a batch stands

    def _remote(self, remote_id: str, operation: bytes) -> Remote:
        """Google's long-running operation of a batch: its state and counts are in its metadata, where its result
        file is as well as in its response."""
        parts = members(operation)
        metadata = members(parts.get("metadata", b""))
        if text(parts.get("name")) is None and not metadata:
            raise self._place.failure(200, {}, operation)
        stats = members(metadata.get("batchStats", b""))
        total, good, bad = (
            _count(stats.get(f"{name}equestCount")) for name in ("r", "successfulR", "failedR")
        )
        state = (text(metadata.get("state")) or "").rpartition("STATE_")[2]
        outcome = _ENDED.get(state)
        outputs = (parts.get("response", b""), metadata.get("output", b""))
        files = {name for output in outputs if (name := text(members(output).get("responsesFile")))}
        done = None if total is None else (good or 0) + (bad or 0)  # Google leaves out what is 0
        if done:
            self._filled |= files
        return Remote(
            id=remote_id,
            state="working" if outcome is None else "ended",
            outcome=outcome,
            files=tuple(sorted(files)) if outcome else (),
            done=done,
            total=total,
            failure=self._refusal(parts.get("error")) if outcome == "failed" else None,
        )

    def _refusal(self, error: bytes | None) -> CallError:
        """Why a batch was refused as a whole."""
        body = b'{"error":%b}' % (error or b"null")
        wrong = read_error(body)
        if wrong is None:
            return CallError(FailureKind.SERVER_ERROR, "the batch failed, and the service gave no reason")
        broken = self._place.failure(_http_status(wrong), {}, body)
        return CallError(broken.kind, broken.message, retry_after=broken.retry_after)  # no answer to a call


SERVICE = GeminiBatches  # what the table in this package makes


def read_line(line: bytes, key: str | None = None) -> Answered | Unanswered | None:
    """What a line of a result file says, without `key`; None if it is none. Never raises."""
    parts = members(line)
    name = text(parts.get("key"))
    if name is None or "request" in parts:  # the line of a request
        return None
    error = b'{"error":%b}' % (parts.get("error") or parts.get("status") or b"null")
    wrong = read_error(error)
    if wrong is None:
        body = parts.get("response", b"null")
        reply = read_reply(body)
        if reply is not None:
            return Answered(name, reply=without_key(reply, key))
        return Answered(name, failure=failure(200, {}, body, classify=classify, now=0.0, key=key))
    status = _http_status(wrong)
    if status == _CANCELLED or (status == 504 and _WHOLE_BATCH.search(wrong.message)):
        return Unanswered(name, clean(wrong.message, key))
    return Answered(name, failure=failure(status, {}, error, classify=classify, now=0.0, key=key))


def _batch_path(remote_id: str) -> str:
    """`batches/NAME`. Raises CallError for what is no name of a batch, which would be asked for elsewhere."""
    if not re.fullmatch(r"(batches/)?[A-Za-z0-9][A-Za-z0-9._-]*", remote_id):
        raise CallError(
            FailureKind.NOT_FOUND, f"{clean(remote_id)} is no name of a batch, as in batches/abc123"
        )
    return remote_id if remote_id.startswith("batches/") else f"batches/{remote_id}"


def _count(value: bytes | None) -> int | None:
    """A 64-bit integer as Google writes it, which is as a string."""
    written = text(value)
    return int(written) if written is not None and re.fullmatch(r"\d{1,18}", written) else number(value)


_ENDED: dict[str, Literal["completed", "expired", "cancelled", "failed"]] = {
    "SUCCEEDED": "completed",
    "PARTIALLY_SUCCEEDED": "completed",
    "EXPIRED": "expired",
    "CANCELLED": "cancelled",
    "FAILED": "failed",
}

# --- what goes wrong -----------------------------------------------------------------------------

_CANCELLED = 499
_WHOLE_BATCH = re.compile(r"(?i)\bbatch\b|\bexpired\b")
# google.rpc.Code to HTTP, as google/rpc/code.proto has it.
_STATUSES = {
    "CANCELLED": (1, _CANCELLED),
    "UNKNOWN": (2, 500),
    "INVALID_ARGUMENT": (3, 400),
    "DEADLINE_EXCEEDED": (4, 504),
    "NOT_FOUND": (5, 404),
    "ALREADY_EXISTS": (6, 409),
    "PERMISSION_DENIED": (7, 403),
    "RESOURCE_EXHAUSTED": (8, 429),
    "FAILED_PRECONDITION": (9, 400),
    "ABORTED": (10, 409),
    "OUT_OF_RANGE": (11, 400),
    "UNIMPLEMENTED": (12, 501),
    "INTERNAL": (13, 500),
    "UNAVAILABLE": (14, 503),
    "DATA_LOSS": (15, 500),
    "UNAUTHENTICATED": (16, 401),
}
_BY_NUMBER = dict(_STATUSES.values())


def _http_status(error: ErrorBody) -> int:
    """The HTTP status of an error in a line: it names that, a google.rpc.Code, or the word of one."""
    code = int(error.code) if re.fullmatch(r"\d{1,3}", error.code) else 0
    if 400 <= code < 600:
        return code
    return _BY_NUMBER.get(code) or _STATUSES.get(error.status, (0, 500))[1]


def _classify(status: int, error: ErrorBody) -> FailureKind:
    """As online; but Google says of a file that is gone that it may not be ours."""
    if status == 403 and "may not exist" in error.message:
        return FailureKind.NOT_FOUND
    return classify(status, error)
