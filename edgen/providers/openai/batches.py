"""OpenAI's Batch API, and compatible services, through OpenAI's own client.

A line's body equals what the online adapter sends, byte for byte, and the same code reads the answer. Limits,
states and shapes are those of OpenAI's Batch guide and API reference. Lines of vLLM's `run-batch`
(`vllm/entrypoints/openai/run_batch.py`), which have an error next to a response without a body, are
supported, too. A batch is found by its metadata, whose key `edgen` holds its token.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from edgen.plugin import CallError, FailureKind, Reply, Request
from edgen.plugin.providers import (
    BatchLimits,
    BatchServices,
    Classify,
    ErrorBody,
    LineResult,
    NeverBegun,
    RemoteBatch,
    SdkBatches,
    Secrets,
    Sending,
    Sink,
    call_error,
    clean_message,
    encode,
    load_sdk,
    read_error,
    read_members,
    read_number_member,
    read_text_member,
    refusal_without_reason,
    without_secrets,
)
from edgen.providers.openai.online import classify, is_answer, read_block, read_reply
from edgen.providers.openai.service import ServiceBackend

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_CHUNK = 1 << 20  # bytes of a result file held in memory at a time
_PAGE = 100  # batches per page, the maximum


class Endpoint(NamedTuple):
    """Endpoint of a batch: the path of every line, independent of the service's address, and the reader of
    its answers."""

    path: Literal["/v1/chat/completions", "/v1/responses"]
    read_reply: Callable[[bytes], Reply | None]
    classify: Classify


COMPLETIONS = Endpoint("/v1/chat/completions", read_reply, classify)


def make_services(endpoint: Endpoint = COMPLETIONS) -> BatchServices:
    """Return the batch services of an endpoint."""
    return BatchServices(partial(OpenAIBatches, endpoint=endpoint), partial(read_line, endpoint=endpoint))


class OpenAIBatches(SdkBatches):
    """Client of the batches of one account, for one backend."""

    limits = BatchLimits(requests=50_000, bytes=200_000_000)

    def __init__(
        self, backend: ServiceBackend, environ: Mapping[str, str], patience: float, endpoint: Endpoint
    ) -> None:
        read = partial(read_line, endpoint=endpoint)
        super().__init__(backend, environ, patience, endpoint.classify, ("openai", "OpenAIError"), read)
        self._endpoint = endpoint

    @cached_property
    def client(self) -> AsyncOpenAI:
        """OpenAI's client, without retries. The key determines organisation and project."""
        module = load_sdk("openai", "openai")
        made: AsyncOpenAI = module.AsyncOpenAI(
            api_key="none",  # the client requires one; it is not sent
            base_url=str(self._base),
            max_retries=0,
            timeout=self._http.timeout,  # otherwise the client may use its own default of 600 s
            http_client=self._http,
            default_query=self._backend.query,
        )
        made.organization = made.project = None
        return made

    # -- lines

    def line(self, name: str, request: Request) -> bytes:
        """Return the request as a line of an input file. Raises CallError for a lone surrogate."""
        return b'{"custom_id":%b,"method":"POST","url":"%b","body":%b}' % (
            encode(name),
            self._endpoint.path.encode(),
            self._backend.body(request),
        )

    # -- calls

    async def upload(self, file: Path, token: str) -> str:
        """Upload an input file, read from disk while it is sent. Raises CallError, and OSError for the
        file."""
        with file.open("rb") as data:
            with self._calls.translate_errors():
                made = await self.client.files.create(
                    file=(f"{token}.jsonl", data, "application/jsonl"), purpose="batch"
                )
            return self._read_id(made)

    async def create(self, sending: Sending) -> RemoteBatch:
        """Create a batch at OpenAI. Raises SERVER_ERROR if the service does not find the file yet."""
        try:
            with self._calls.translate_errors():
                batch = await self.client.batches.create(
                    input_file_id=sending.file_id or "",
                    endpoint=self._endpoint.path,
                    completion_window="24h",
                    metadata={"edgen": sending.token},
                )
        except CallError as refusal:
            if refusal.status in (400, 404) and _NO_FILE.search(refusal.message):
                raise CallError(FailureKind.SERVER_ERROR, refusal.message, status=refusal.status) from None
            raise
        return self._read_batch(batch)

    async def find(self, sending: Sending) -> RemoteBatch | None:
        """Return the batch created with that token. Searches the whole list, newest first, since clocks may
        differ."""
        with self._calls.translate_errors():
            async for batch in self.client.batches.list(limit=_PAGE):
                if (batch.metadata or {}).get("edgen") == sending.token:
                    return self._read_batch(batch)
        return None

    async def state(self, remote_id: str) -> RemoteBatch:
        """Return the state of a batch."""
        with self._calls.translate_errors():
            batch = await self.client.batches.retrieve(remote_id)
        return self._read_batch(batch)

    async def _cancel(self, remote_id: str) -> None:
        await self.client.batches.cancel(remote_id)

    async def _delete(self, file_id: str) -> None:
        await self.client.files.delete(file_id)

    async def _fetch(self, file_id: str, sink: Sink) -> None:
        async with self.client.files.with_streaming_response.content(file_id) as response:
            async for chunk in response.iter_bytes(_CHUNK):
                await sink.write(chunk)

    # -- state of a batch

    def _read_batch(self, batch: Any) -> RemoteBatch:
        """Read OpenAI's batch object. Missing fields and fields of a wrong type are ignored."""
        outcome = _ENDED.get(str(getattr(batch, "status", None)))
        files = [getattr(batch, f"{name}_file_id", None) for name in ("output", "error")]
        counts = getattr(batch, "request_counts", None)
        done, failed, total = (_count(counts, name) for name in ("completed", "failed", "total"))
        self._filled |= {
            x for x, lines in zip(files, (done, failed), strict=True) if isinstance(x, str) and lines
        }
        return RemoteBatch(
            id=self._read_id(batch),
            state="working" if outcome is None else "ended",
            outcome=outcome,
            files=tuple(x for x in files if isinstance(x, str) and x) if outcome else (),
            done=None if done is None else done + (failed or 0),
            total=total,
            failure=self._read_refusal(getattr(batch, "errors", None)) if outcome == "failed" else None,
        )

    def _read_refusal(self, errors: Any) -> CallError:
        """Return why a batch was rejected as a whole: the kind of the first error, and the text of the first
        few."""
        data = getattr(errors, "data", None)
        found = [_read_problem(item) for item in data] if isinstance(data, list) else []
        if not found:
            return refusal_without_reason()
        words = "; ".join(said for _, said in found[:_WORDED])
        more = f"; and {len(found) - _WORDED} more" if len(found) > _WORDED else ""
        return CallError(found[0][0], clean_message(words, self._credentials.secrets) + more)


def _read_problem(item: Any) -> tuple[FailureKind, str]:
    """Return the kind and the text of one of the errors for which a batch was refused."""
    code, message, line = (getattr(item, name, None) for name in ("code", "message", "line"))
    code, message = str(code or ""), str(message or code or "no reason")
    if not isinstance(line, int):  # else it counts from 1
        line = None
    said = message if line is None else f"line {line}: {message}"
    if code in _WHOLE:
        return _WHOLE[code], said
    if _NO_ROOM.search(message):
        return FailureKind.RATE_LIMIT, said
    if line is None and _NO_FILE.search(message):
        return FailureKind.SERVER_ERROR, said
    return classify(400, ErrorBody(message, code)), said


def _count(counts: Any, name: str) -> int | None:
    found = getattr(counts, name, None)
    return found if isinstance(found, int) else None


# --- lines of results ----------------------------------------------------------------------------


def read_line(
    line: bytes, secrets: Secrets = (), endpoint: Endpoint = COMPLETIONS
) -> LineResult | NeverBegun | None:
    """Read a line of an output or error file, without `secrets`; None if it is invalid. Never raises."""
    parts = read_members(line)
    name = read_text_member(parts.get("custom_id"))
    if name is None or "body" in parts:  # the line of a request
        return None
    response, error = read_members(parts.get("response", b"")), parts.get("error", b"null")
    # vLLM gives a bare sentence, or an object that contains OpenAI's.
    error = b'{"error":%b}' % read_members(error).get("error", error)
    wrong = read_error(error)
    if wrong is not None and wrong.code in _NEVER_BEGUN:
        return NeverBegun(name, clean_message(wrong.message, secrets))
    status, body = read_number_member(response.get("status_code")), response.get("body", b"null")
    if status is not None and is_answer(status, body):
        reply = endpoint.read_reply(body) or read_block(body)
        if reply is not None:
            return LineResult(name, reply=without_secrets(reply, secrets))
    if wrong is not None and read_error(body) is None:
        body = error
    broken = call_error(
        500 if status is None else status, {}, body, classify=endpoint.classify, now=0.0, secrets=secrets
    )
    if status is None:  # there was no HTTP answer
        broken = CallError(broken.kind, broken.message)
    return LineResult(name, failure=broken)


_ENDED: dict[str, Literal["completed", "expired", "cancelled", "failed"]] = {
    "completed": "completed",
    "expired": "expired",
    "cancelled": "cancelled",
    "failed": "failed",
}
# Codes of lines whose request was never worked on.
_NEVER_BEGUN = frozenset({"batch_expired", "batch_cancelled", "batch_canceled"})
# Codes of whole batches that are not caused by their lines.
_WHOLE = {
    "token_limit_exceeded": FailureKind.RATE_LIMIT,  # too many queued tokens for one model
    "request_limit_exceeded": FailureKind.RATE_LIMIT,
    "rate_limit_exceeded": FailureKind.RATE_LIMIT,
    "server_error": FailureKind.SERVER_ERROR,
    "internal_error": FailureKind.SERVER_ERROR,
}
_NO_ROOM = re.compile(r"enqueued (token|request)s? limit|limit[^.]{0,100} enqueued", re.IGNORECASE)
# Services report a new file as unknown for a while, in different words.
_NO_FILE = re.compile(
    r"(cannot|can't|could not) find (the )?(input )?file|no such file|file\b.{0,200}\b(not (be )?found|not "
    r"exist)",
    re.IGNORECASE,
)
_WORDED = 3  # errors of a batch that are shown
