"""Anthropic's Message Batches, through Anthropic's own client.

A request's `params` equal what the online adapter sends, byte for byte, and the same code reads the answer.
Limits, states and shapes are those of Anthropic's API reference and of the SDK anthropic 2.12.

A batch is created in one call with all of its requests, and its name cannot be chosen. So the custom ids end
with a mark made from its token. If its creation was not confirmed, the search covers the batches that are
newer than the last known one and hold as many requests. Custom ids identify a batch only after it has ended.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from yarl import URL

from edgen.plugin import CallError, FailureKind, Request
from edgen.plugin.providers import (
    BatchLimits,
    LineResult,
    NeverBegun,
    RemoteBatch,
    SdkBatches,
    Secrets,
    Sending,
    Sink,
    Suspects,
    append_path,
    call_error,
    encode,
    load_sdk,
    mark_of,
    read_error,
    read_members,
    read_text_member,
    run_in_thread,
    without_secrets,
)
from edgen.providers.anthropic.online import AnthropicBackend, classify, read_reply

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

_BATCHES = "v1/messages/batches"
_CHUNK = 1 << 20  # bytes of a file held in memory at a time
_PAGE = 100  # batches per page of the list
_DAY = 86_400.0  # seconds: no two clocks differ by more


class AnthropicBatches(SdkBatches):
    """Client of the batches of one workspace, for one backend."""

    # 256 MB at most, including the braces around the requests.
    limits = BatchLimits(requests=100_000, bytes=255_000_000)
    # The service answers no call after more than ten minutes; its SDK uses the same timeout.
    settles: float | None = 600.0

    def __init__(self, backend: AnthropicBackend, environ: Mapping[str, str], patience: float) -> None:
        super().__init__(backend, environ, patience, classify, ("anthropic", "AnthropicError"), read_line)
        self._strangers: set[tuple[str, str]] = set()  # (token, id of a batch that does not belong to it)

    @cached_property
    def client(self) -> AsyncAnthropic:
        """Anthropic's client, without retries and without settings from ANTHROPIC_… variables."""
        module = load_sdk("anthropic", "anthropic")
        made: AsyncAnthropic = module.AsyncAnthropic(
            api_key="none",  # otherwise the client looks for a key itself; this value is not sent
            base_url=str(self._base),
            max_retries=0,
            timeout=self._http.timeout,  # otherwise the client may use its own default of 600 s
            http_client=self._http,
            open_telemetry=False,
        )
        # drop the headers of ANTHROPIC_CUSTOM_HEADERS, which are meant for other programs
        made._custom_headers = {}
        return made

    # -- lines

    def line(self, name: str, request: Request) -> bytes:
        """Return the request as a line of a file. Raises CallError for a lone surrogate."""
        return b'{"custom_id":%b,"params":%b}' % (encode(name), self._backend.body(request))

    # -- calls

    async def upload(self, file: Path, token: str) -> str | None:  # noqa: ARG002
        """Return the id of the newest batch, without uploading, since `find` searches the batches after it.
        Raises CallError, and OSError for the file."""
        await run_in_thread(file.stat)
        with self._calls.translate_errors():
            page = await self.client.messages.batches.list(limit=1)
            return self._read_id(page.data[0]) if page.data else None

    async def create(self, sending: Sending) -> RemoteBatch:
        """Send all requests, read from disk while they are sent. Raises CallError, and OSError for the
        file."""
        from anthropic.types.messages import MessageBatch

        body = _Body(sending.file)
        headers = {"Content-Type": "application/json", "Content-Length": str(body.size)}
        with self._calls.translate_errors():
            batch = await self.client.post(
                f"/{_BATCHES}", cast_to=MessageBatch, content=body, options={"headers": headers}
            )
        return self._read_batch(batch)

    async def find(self, sending: Sending) -> RemoteBatch | Suspects | None:
        """Return the batch that was created for `sending`, or the running batches that may be it.

        A batch without results counts if no other one matches, since it may have been paid for.
        """
        working, unknown = [], None
        with self._calls.translate_errors():
            async for batch in self._list_batches_since(sending):
                remote = self._read_batch(batch)
                if remote.id in sending.others or remote.total != sending.requests:
                    continue
                if remote.state == "working":
                    working.append(remote.id)
                elif (ours := await self._is_of(sending, remote)) is None:
                    unknown = unknown or remote
                elif ours:
                    return remote
        return Suspects(tuple(working)) if working else unknown

    async def _list_batches_since(self, sending: Sending) -> AsyncIterator[Any]:
        """Yield the batches created after the last known one, newest first."""
        async for batch in self.client.messages.batches.list(limit=_PAGE):
            made, asked_at = getattr(batch, "created_at", None), sending.asked_at
            old = isinstance(made, datetime) and asked_at is not None and made.timestamp() < asked_at - _DAY
            if old or self._read_id(batch) == sending.file_id:
                return
            yield batch

    async def _is_of(self, sending: Sending, remote: RemoteBatch) -> bool | None:
        """Return whether an ended batch is the one that was sent, by the mark of any request; None if its
        results are gone."""
        known = (sending.token, remote.id)
        if known in self._strangers:
            return False
        if not remote.files:
            return None
        try:
            name = await self._read_first_custom_id(remote.id)
        except CallError as failure:
            if failure.kind is not FailureKind.NOT_FOUND:
                raise
            return None
        ours = name.endswith(f"-{mark_of(sending.token)}")
        if not ours:
            self._strangers.add(known)
        return ours

    async def _read_first_custom_id(self, remote_id: str) -> str:
        """Return the first custom id in the results of a batch; empty if there is none."""
        left = b""
        async for chunk in self._iterate_results(remote_id):
            *lines, left = (left + chunk).split(b"\n")
            for line in lines:
                if name := read_text_member(read_members(line).get("custom_id")):
                    return name
        return read_text_member(read_members(left).get("custom_id")) or ""

    async def state(self, remote_id: str) -> RemoteBatch:
        """Return the state of a batch."""
        with self._calls.translate_errors():
            return self._read_batch(await self.client.messages.batches.retrieve(remote_id))

    async def forget(self, file_id: str) -> None:
        """Do nothing: there is no file."""

    async def _cancel(self, remote_id: str) -> None:
        await self.client.messages.batches.cancel(remote_id)

    async def _fetch(self, file_id: str, sink: Sink) -> None:
        async for chunk in self._iterate_results(file_id):
            await sink.write(chunk)

    async def _iterate_results(self, remote_id: str) -> AsyncIterator[bytes]:
        """Yield the results of a batch as they arrive. The request goes to the batch's own path;
        the address in the batch object is ignored."""
        url = str(append_path(self._base, f"{_BATCHES}/{remote_id}/results"))
        async with self._http.stream("GET", URL(url).human_repr()) as answer:
            if answer.status_code != 200:
                raise self._calls.make_failure(answer.status_code, answer.headers, await answer.aread())
            async for chunk in answer.aiter_bytes(_CHUNK):
                yield chunk

    # -- state of a batch

    def _read_batch(self, batch: Any) -> RemoteBatch:
        """Read Anthropic's batch object. Missing fields and fields of a wrong type are ignored."""
        name = self._read_id(batch)
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
            outcome=_find_outcome(counts, there=there) if ended else None,
            files=(name,) if there else (),  # result files are named after their batch
            done=done if ended and counts else None,  # the counts are final only at the end
            total=sum(counts.values()) if counts else None,
        )


_KINDS = ("processing", "succeeded", "errored", "canceled", "expired")


def _find_outcome(counts: Mapping[str, int], *, there: bool) -> Literal["completed", "expired", "cancelled"]:
    """Return how a batch ended. A batch without results counts as completed, since it may have been worked
    on."""
    if there and counts.get("canceled"):
        return "cancelled"
    return "expired" if there and counts.get("expired") else "completed"


class _Body:
    """Request body that creates a batch: the lines of a file as a list, read from disk while they are
    sent."""

    _BEGIN, _END = b'{"requests":[', b"]}"

    def __init__(self, file: Path) -> None:
        self._file = file
        self.size = len(self._BEGIN) + max(0, file.stat().st_size - 1) + len(self._END)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._BEGIN
        with self._file.open("rb") as file:
            last = b""
            while chunk := await run_in_thread(file.read, _CHUNK):
                if last:
                    yield last
                last = chunk.replace(b"\n", b",")  # a line contains no line feed
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
    """Read a line of a result file, without `secrets`; None if it is invalid. Never raises."""
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
    return LineResult(name, failure=CallError(broken.kind, broken.message))  # not an answer to a call
