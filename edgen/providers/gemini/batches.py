"""The Gemini Developer API's batches, through Google's google-genai client.

A line's request equals what the online adapter sends, byte for byte, and the same code reads the answer.
Limits, states and shapes are those of Google's "Batch API" and "Rate limits" pages and of its generated
client library. A batch is found by its display name, which is its token. The client's `batches.get` omits the
number of finished requests and the failure, so the state of a batch is read without it. The client sends a
piece of an upload up to three times. Each piece states its offset, so that is idempotent.
"""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from edgen.plugin import CallError, FailureKind, Request
from edgen.plugin.providers import (
    BatchLimits,
    ErrorBody,
    LineResult,
    NeverBegun,
    RemoteBatch,
    SdkBatches,
    Secrets,
    Sending,
    Sink,
    append_path,
    call_error,
    clean_message,
    encode,
    load_sdk,
    read_error,
    read_members,
    read_number_member,
    read_text_member,
    refusal_without_reason,
    system_certificates,
    without_secrets,
)
from edgen.providers.gemini.online import GeminiBackend, classify, make_model_path, read_reply

if TYPE_CHECKING:
    from google.genai.client import AsyncClient

_PAGE = 100  # batches per page of the list


class GeminiBatches(SdkBatches):
    """Client of the batches of one project, for one backend."""

    # Google limits bytes, not requests; this number limits the loss if a batch expires.
    limits = BatchLimits(requests=50_000, bytes=2_000_000_000)

    def __init__(self, backend: GeminiBackend, environ: Mapping[str, str], patience: float) -> None:
        super().__init__(
            backend, environ, patience, _classify, ("google.genai.errors", "APIError"), read_line
        )
        self._model = make_model_path(backend.model)

    @cached_property
    def client(self) -> AsyncClient:
        """Google's client for the Developer API, without settings from GOOGLE_… variables and without
        retries."""
        genai: Any = load_sdk("google.genai", "gemini")
        # It warns about keys in the environment, which it must not use, and about unknown states.
        logging.getLogger("google_genai").setLevel(logging.ERROR)
        warnings.filterwarnings("ignore", module=r"google\.genai")
        trusted = system_certificates()  # otherwise the client creates contexts that are never used
        made: AsyncClient = genai.Client(
            api_key="none",  # the client requires one; it is not sent
            vertexai=False,
            http_options={
                "base_url": str(self._base),
                "api_version": "v1beta",
                # Milliseconds. Without a timeout the client waits forever.
                "timeout": max(1, round(self._patience * 1000)),
                "retry_options": {"attempts": 1},
                "httpx_async_client": self._http,
                "client_args": {"verify": trusted},
                "async_client_args": {"ssl": trusted},
            },
        ).aio
        return made

    # -- lines

    def line(self, name: str, request: Request) -> bytes:
        """Return the request as a line of an input file. Raises CallError for a lone surrogate."""
        return b'{"key":%b,"request":%b}' % (encode(name), self._backend.body(request))

    # -- calls

    async def upload(self, file: Path, token: str) -> str:
        """Upload an input file, in pieces of 8 MiB. Raises CallError, and OSError for the file."""
        with self._calls.translate_errors():
            made = await self.client.files.upload(
                file=file, config={"display_name": token, "mime_type": "jsonl"}
            )
        return self._calls.read_id(made.name)

    async def create(self, sending: Sending) -> RemoteBatch:
        """Create a batch at Google."""
        with self._calls.translate_errors():
            job = await self.client.batches.create(
                model=self._model, src=sending.file_id or "", config={"display_name": sending.token}
            )
        return RemoteBatch(id=self._calls.read_id(job.name), state="working")

    async def find(self, sending: Sending) -> RemoteBatch | None:
        """Return the batch created with that token. The list is in no stated order, so search all of it."""
        with self._calls.translate_errors():
            async for job in await self.client.batches.list(config={"page_size": _PAGE}):
                if job.display_name == sending.token:
                    return RemoteBatch(id=self._calls.read_id(job.name), state="working")
        return None

    async def state(self, remote_id: str) -> RemoteBatch:
        """Return the state of a batch."""
        url = str(append_path(self._base, f"v1beta/{_make_batch_path(remote_id)}"))
        with self._calls.translate_errors():
            answer = await self._http.get(url)
        if answer.status_code != 200:
            raise self._calls.make_failure(answer.status_code, answer.headers, answer.content)
        return self._read_operation(remote_id, answer.content)

    async def _cancel(self, remote_id: str) -> None:
        await self.client.batches.cancel(name=remote_id)

    async def _delete(self, file_id: str) -> None:
        await self.client.files.delete(name=file_id)

    async def _fetch(self, file_id: str, sink: Sink) -> None:
        await self.client.files.download(file=file_id, destination=sink)  # type: ignore[call-overload]

    # -- state of a batch

    def _read_operation(self, remote_id: str, operation: bytes) -> RemoteBatch:
        """Read Google's long-running operation. Its metadata holds state and counts, and its response may
        hold the result file."""
        parts = read_members(operation)
        metadata = read_members(parts.get("metadata", b""))
        if read_text_member(parts.get("name")) is None and not metadata:
            raise self._calls.make_failure(200, {}, operation)
        stats = read_members(metadata.get("batchStats", b""))
        total, good, bad = (
            _count(stats.get(f"{name}equestCount")) for name in ("r", "successfulR", "failedR")
        )
        state = (read_text_member(metadata.get("state")) or "").rpartition("STATE_")[2]
        outcome = _ENDED.get(state)
        outputs = (parts.get("response", b""), metadata.get("output", b""))
        files = {
            name
            for output in outputs
            if (name := read_text_member(read_members(output).get("responsesFile")))
        }
        done = None if total is None else (good or 0) + (bad or 0)  # Google omits zeros
        if done:
            self._filled |= files
        return RemoteBatch(
            id=remote_id,
            state="working" if outcome is None else "ended",
            outcome=outcome,
            files=tuple(sorted(files)) if outcome else (),
            done=done,
            total=total,
            failure=self._read_refusal(parts.get("error")) if outcome == "failed" else None,
        )

    def _read_refusal(self, error: bytes | None) -> CallError:
        """Return the reason why a batch was refused as a whole."""
        body = b'{"error":%b}' % (error or b"null")
        wrong = read_error(body)
        if wrong is None:
            return refusal_without_reason()
        broken = self._calls.make_failure(_find_http_status(wrong), {}, body)
        # not an answer to a call
        return CallError(broken.kind, broken.message, retry_after=broken.retry_after)


def read_line(line: bytes, secrets: Secrets = ()) -> LineResult | NeverBegun | None:
    """Read a line of a result file, without `secrets`; None if it is invalid. Never raises."""
    parts = read_members(line)
    name = read_text_member(parts.get("key"))
    if name is None or "request" in parts:  # the line of a request
        return None
    error = b'{"error":%b}' % (parts.get("error") or parts.get("status") or b"null")
    wrong = read_error(error)
    if wrong is None:
        body = parts.get("response", b"null")
        reply = read_reply(body)
        if reply is not None:
            return LineResult(name, reply=without_secrets(reply, secrets))
        return LineResult(
            name, failure=call_error(200, {}, body, classify=classify, now=0.0, secrets=secrets)
        )
    status = _find_http_status(wrong)
    if status == _CANCELLED or (status == 504 and _WHOLE_BATCH.search(wrong.message)):
        return NeverBegun(name, clean_message(wrong.message, secrets))
    return LineResult(
        name, failure=call_error(status, {}, error, classify=classify, now=0.0, secrets=secrets)
    )


def _make_batch_path(remote_id: str) -> str:
    """Return `batches/NAME`. Raises CallError for an invalid name, which would lead to another path."""
    if not re.fullmatch(r"(batches/)?[A-Za-z0-9][A-Za-z0-9._-]*", remote_id):
        raise CallError(
            FailureKind.NOT_FOUND,
            f"{clean_message(remote_id)} is not the name of a batch, such as batches/abc123",
        )
    return remote_id if remote_id.startswith("batches/") else f"batches/{remote_id}"


def _count(value: bytes | None) -> int | None:
    """Read a 64-bit integer, which Google writes as a string."""
    written = read_text_member(value)
    return (
        int(written)
        if written is not None and re.fullmatch(r"\d{1,18}", written)
        else read_number_member(value)
    )


_ENDED: dict[str, Literal["completed", "expired", "cancelled", "failed"]] = {
    "SUCCEEDED": "completed",
    "PARTIALLY_SUCCEEDED": "completed",
    "EXPIRED": "expired",
    "CANCELLED": "cancelled",
    "FAILED": "failed",
}

# --- errors -----------------------------------------------------------------------------

_CANCELLED = 499
_WHOLE_BATCH = re.compile(r"(?i)\bbatch\b|\bexpired\b")
# google.rpc.Code to HTTP, by code.proto of google/rpc.
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


def _find_http_status(error: ErrorBody) -> int:
    """Return the HTTP status of an error in a line, which may be given as such, as a google.rpc.Code, or by
    name."""
    code = int(error.code) if re.fullmatch(r"\d{1,3}", error.code) else 0
    if 400 <= code < 600:
        return code
    return _BY_NUMBER.get(code) or _STATUSES.get(error.status, (0, 500))[1]


def _classify(status: int, error: ErrorBody) -> FailureKind:
    """Classify as online, except that Google reports a missing file as one that the user may not read."""
    if status == 403 and "may not exist" in error.message:
        return FailureKind.NOT_FOUND
    return classify(status, error)
