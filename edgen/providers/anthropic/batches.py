"""Anthropic's Message Batches, through Anthropic's own client.

A request's `params` are what the online adapter sends, to the byte, and its answer is read as the online adapter reads
it. Limits, states and shapes are those of Anthropic's API reference and of the SDK anthropic 2.12.

A batch is one call that holds all of its requests, and it carries no name of ours. So the custom ids end with a mark made
of its token. What was begun without anybody hearing of it is looked for among the batches that are newer than the newest
one before it and have as many requests; the custom ids tell whose it is once it has ended, and not before.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from yarl import URL

from edgen.core.errors import CallError, FailureKind
from edgen.core.values import Request
from edgen.providers.anthropic.online import AnthropicBackend, classify, read_reply
from edgen.providers.batches import (
    BatchLimits,
    LineResult,
    NeverBegun,
    RemoteBatch,
    Sending,
    Suspects,
    mark_of,
)
from edgen.providers.failures import Secrets, call_error, read_error, without_secrets
from edgen.providers.http import append_path
from edgen.providers.sdk import load_sdk
from edgen.providers.sdk_batches import SdkBatches, Sink, read_members, read_text_member

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

_BATCHES = "v1/messages/batches"
_CHUNK = 1 << 20  # bytes of a file that are held at a time
_PAGE = 100  # batches asked for at a time
_DAY = 86_400.0  # seconds: no two clocks are that far apart
_encode = msgspec.json.Encoder().encode


class AnthropicBatches(SdkBatches):
    """The batches of one workspace, for one backend."""

    # 256 MB at most, the braces around the requests included.
    limits = BatchLimits(requests=100_000, bytes=255_000_000)
    # A call that takes longer than ten minutes is none that the service answers; its SDK's own timeout says so, too.
    settles: float | None = 600.0

    def __init__(self, backend: AnthropicBackend, environ: Mapping[str, str], patience: float) -> None:
        super().__init__(backend, environ, patience, classify, ("anthropic", "AnthropicError"))
        self._strangers: set[tuple[str, str]] = set()  # tokens, each with a batch that is not its own

    @cached_property
    def client(self) -> AsyncAnthropic:
        """Anthropic's client, its retries off, whatever ANTHROPIC_… says elsewhere."""
        module = load_sdk("anthropic", "anthropic")
        made: AsyncAnthropic = module.AsyncAnthropic(
            api_key="none",  # else the client looks for one by itself; this is not sent
            base_url=str(self._base),
            max_retries=0,
            timeout=self._http.timeout,  # the client's own may be taken for nobody's, and be 600 s
            http_client=self._http,
            open_telemetry=False,
        )
        made._custom_headers = {}  # those of ANTHROPIC_CUSTOM_HEADERS, which are meant for somebody else
        return made

    # -- lines

    def line(self, name: str, request: Request) -> bytes:
        """The request as a line of a file. Raises CallError for half of a character."""
        return b'{"custom_id":%b,"params":%b}' % (_encode(name), self._backend.body(request))

    def read(self, line: bytes) -> LineResult | NeverBegun | None:
        """What a line of a result file says; None if it is none. Never raises."""
        return read_line(line, self._credentials.secrets)

    # -- calls

    async def upload(self, file: Path, token: str) -> str | None:  # noqa: ARG002
        """Nothing goes up. Returns the newest batch that there is: what is begun from now on is newer. Raises CallError,
        and OSError for the file."""
        await asyncio.to_thread(file.stat)
        with self._calls.calling():
            page = await self.client.messages.batches.list(limit=1)
            return self._id(page.data[0]) if page.data else None

    async def create(self, sending: Sending) -> RemoteBatch:
        """Send all requests, read from the disk as they are sent. Raises CallError, and OSError for the file."""
        from anthropic.types.messages import MessageBatch

        body = _Body(sending.file)
        headers = {"Content-Type": "application/json", "Content-Length": str(body.size)}
        with self._calls.calling():
            batch = await self.client.post(
                f"/{_BATCHES}", cast_to=MessageBatch, content=body, options={"headers": headers}
            )
        return self._remote(batch)

    async def find(self, sending: Sending) -> RemoteBatch | Suspects | None:
        """The batch that was begun for `sending`, or those that may be it and have not ended.

        One whose results are gone is taken for it where no other is: it may have been paid.
        """
        working, unknown = [], None
        with self._calls.calling():
            async for batch in self._since(sending):
                remote = self._remote(batch)
                if remote.id in sending.others or remote.total != sending.requests:
                    continue
                if remote.state == "working":
                    working.append(remote.id)
                elif (ours := await self._is_of(sending, remote)) is None:
                    unknown = unknown or remote
                elif ours:
                    return remote
        return Suspects(tuple(working)) if working else unknown

    async def _since(self, sending: Sending) -> AsyncIterator[Any]:
        """The batches that were begun after the one that was the newest, the newest first."""
        async for batch in self.client.messages.batches.list(limit=_PAGE):
            made, asked_at = getattr(batch, "created_at", None), sending.asked_at
            old = isinstance(made, datetime) and asked_at is not None and made.timestamp() < asked_at - _DAY
            if old or self._id(batch) == sending.file_id:
                return
            yield batch

    async def _is_of(self, sending: Sending, remote: RemoteBatch) -> bool | None:
        """Whether a batch that has ended is the one that was sent, by the mark of any of its requests; None where its
        results are gone."""
        known = (sending.token, remote.id)
        if known in self._strangers:
            return False
        if not remote.files:
            return None
        try:
            name = await self._first_name(remote.id)
        except CallError as failure:
            if failure.kind is not FailureKind.NOT_FOUND:
                raise
            return None
        ours = name.endswith(f"-{mark_of(sending.token)}")
        if not ours:
            self._strangers.add(known)
        return ours

    async def _first_name(self, remote_id: str) -> str:
        """The first custom id in the results of a batch; empty where there is none."""
        left = b""
        async for chunk in self._results(remote_id):
            *lines, left = (left + chunk).split(b"\n")
            for line in lines:
                if name := read_text_member(read_members(line).get("custom_id")):
                    return name
        return read_text_member(read_members(left).get("custom_id")) or ""

    async def state(self, remote_id: str) -> RemoteBatch:
        """How a batch stands."""
        with self._calls.calling():
            return self._remote(await self.client.messages.batches.retrieve(remote_id))

    async def forget(self, file_id: str) -> None:
        """There is no file."""

    async def _cancel(self, remote_id: str) -> None:
        await self.client.messages.batches.cancel(remote_id)

    async def _fetch(self, file_id: str, sink: Sink) -> None:
        async for chunk in self._results(file_id):
            await sink.write(chunk)

    async def _results(self, remote_id: str) -> AsyncIterator[bytes]:
        """The results of a batch as they come. They are asked for where the batch is, whatever address it names."""
        url = str(append_path(self._base, f"{_BATCHES}/{remote_id}/results"))
        async with self._http.stream("GET", URL(url).human_repr()) as answer:
            if answer.status_code != 200:
                raise self._calls.failure(answer.status_code, answer.headers, await answer.aread())
            async for chunk in answer.aiter_bytes(_CHUNK):
                yield chunk

    # -- how a batch stands

    def _remote(self, batch: Any) -> RemoteBatch:
        """Anthropic's batch object. What a server leaves out, or gives another type than it should, is left out."""
        name = self._id(batch)
        found = getattr(batch, "request_counts", None)
        counts = {kind: count for kind in _KINDS if isinstance(count := getattr(found, kind, None), int)}
        ended = getattr(batch, "processing_status", None) == "ended"
        there = ended and isinstance(getattr(batch, "results_url", None), str)
        done = counts.get("succeeded", 0) + counts.get("errored", 0)
        if there and done:
            self._filled.add(name)
        return RemoteBatch(
            id=name,
            state="ended" if ended else "working",
            outcome=_outcome(counts, there=there) if ended else None,
            files=(name,) if there else (),  # the results go by the name of their batch
            done=done if ended and counts else None,  # nothing is counted before the end
            total=sum(counts.values()) if counts else None,
        )


_KINDS = ("processing", "succeeded", "errored", "canceled", "expired")


def _outcome(counts: Mapping[str, int], *, there: bool) -> Literal["completed", "expired", "cancelled"]:
    """How a batch ended; one whose results are gone was worked on."""
    if there and counts.get("canceled"):
        return "cancelled"
    return "expired" if there and counts.get("expired") else "completed"


class _Body:
    """What begins a batch: the lines of a file as a list of requests, read from the disk as they are sent."""

    _BEGIN, _END = b'{"requests":[', b"]}"

    def __init__(self, file: Path) -> None:
        self._file = file
        self.size = len(self._BEGIN) + max(0, file.stat().st_size - 1) + len(self._END)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._BEGIN
        with self._file.open("rb") as file:
            last = b""
            while chunk := await asyncio.to_thread(file.read, _CHUNK):
                if last:
                    yield last
                last = chunk.replace(b"\n", b",")  # there is no line feed within a line
        yield last[:-1] + self._END


# --- lines of results ----------------------------------------------------------------------------

_STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_WHY = {
    "canceled": "the batch was canceled before this request was begun",
    "expired": "the batch expired before this request was begun",
}


def read_line(line: bytes, secrets: Secrets = ()) -> LineResult | NeverBegun | None:
    """What a line of a result file says, without `secrets`; None if it is none. Never raises."""
    parts = read_members(line)
    name = read_text_member(parts.get("custom_id"))
    if name is None or "result" not in parts:
        return None
    result = read_members(parts["result"])
    kind = read_text_member(result.get("type"))
    if kind in _WHY:
        return NeverBegun(name, _WHY[kind])
    if kind == "succeeded":
        body = result.get("message", b"null")
        if (reply := read_reply(body)) is not None:
            return LineResult(name, reply=without_secrets(reply, secrets))
        status = 200
    else:
        body = result.get("error", b"null")
        wrong = read_error(body)
        status = _STATUSES.get(wrong.type if wrong is not None else "", 500)
    broken = call_error(status, {}, body, classify=classify, now=0.0, secrets=secrets)
    return LineResult(name, failure=CallError(broken.kind, broken.message))  # no answer to a call
