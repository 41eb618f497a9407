"""Anthropic's Message Batches: requests in one body, batches without a name, results as JSON lines.

Source: Anthropic's API reference (Message Batches) and the types of its Python SDK 2.12. Counts stay at
`processing` until a batch has ended. Invalid `params` fail their own request; an invalid `custom_id` refuses
the whole batch. Limits of a batch: 100,000 requests, 256 MB.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from edgen.core.values import Reply
from edgen.simulator.faults import Fault
from edgen.simulator.service import wire_anthropic
from edgen.simulator.service.batches import ENDED, Checked, SimulatedBatch, State, Store
from edgen.simulator.service.wire import (
    JSON,
    BadCall,
    Refusal,
    UploadTooLargeError,
    WireCall,
    decode,
    make_id,
    save,
)

MOST_REQUESTS = 100_000
MOST_BYTES = 256 * 1000 * 1000
_MOST_LISTED = 1000
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class _Line(msgspec.Struct):
    custom_id: str
    params: msgspec.Raw


class _Create(msgspec.Struct, forbid_unknown_fields=True):
    requests: list[_Line]


_CREATE, _LINE = msgspec.json.Decoder(_Create), msgspec.json.Decoder(_Line)
_encode = msgspec.json.Encoder().encode
_STATES: dict[State, str] = {"cancelling": "canceling", **dict.fromkeys(ENDED, "ended")}
_UNANSWERED: dict[State, str] = {"cancelled": "canceled", "expired": "expired"}


class AnthropicBatchFormat:
    """Reader and writer of batch lines: a custom id and `params` in, a custom id and a result out."""

    errors_apart = False
    partial = True

    def check(self, file: Path) -> Checked:
        with file.open("rb") as lines:
            return Checked(sum(1 for _ in lines), "", [])

    def read(self, line: bytes) -> tuple[str, WireCall | Refusal]:
        value = _LINE.decode(line)
        try:
            call = wire_anthropic.read(bytes(value.params))
            if call.stream:
                raise BadCall("stream: a request of a batch cannot be streamed")
        except BadCall as problem:
            return value.custom_id, wire_anthropic.make_error(400, str(problem))
        return value.custom_id, call

    def make_fault(self, struck: Fault, call: WireCall) -> Refusal:
        return wire_anthropic.make_fault(struck, call)

    def encode_answer(self, name: str, call: WireCall, replies: list[Reply], number: str) -> bytes:
        return _render_result(
            name, "succeeded", message=msgspec.Raw(wire_anthropic.answer(call, replies, number))
        )

    def encode_refusal(self, name: str, refusal: Refusal) -> bytes:
        return _render_result(name, "errored", error=msgspec.Raw(refusal.body))

    def make_result_id(self) -> str:
        return f"results_{make_id()}"

    def encode_unanswered(self, name: str, state: State) -> bytes:
        return _render_result(name, _UNANSWERED[state])


def _render_result(name: str, kind: str, **more: Any) -> bytes:
    return _encode({"custom_id": name, "result": {"type": kind, **more}}) + b"\n"


_PATH = re.compile(r"/v1/messages/batches(?:/([^/]+))?(?:/(cancel|results))?")


class AnthropicBatchService:
    """Handler of Anthropic's batch paths."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse | Refusal | None:
        """Answer a request, None for another path."""
        found = _PATH.fullmatch(request.path)
        if found is None:
            return None
        if self._store.should_refuse(f"{request.method} {request.path}"):
            return wire_anthropic.make_fault(Fault("503", 1), WireCall((), ""))
        id_, action = found.groups()
        match request.method, id_, action:
            case "POST", None, None:
                return await self._create(request)
            case "GET", None, None:
                return _list(request, self._store.of(AnthropicBatchFormat))
        batch = self._store.batches.get(id_ or "")
        if batch is None or not isinstance(batch.format, AnthropicBatchFormat):
            return wire_anthropic.make_error(404, f"There is no message batch '{id_}'.")
        return await self._answer_one_batch(request, batch, action)

    async def _answer_one_batch(
        self, request: web.BaseRequest, batch: SimulatedBatch, action: str | None
    ) -> web.StreamResponse | Refusal:
        ended = batch.state in ENDED
        match request.method, action:
            case "GET", None:
                return _reply(_describe_batch(batch, request))
            case "POST", "cancel":
                if ended:
                    return wire_anthropic.make_error(400, f"{batch.id} has ended, and cannot be canceled.")
                self._store.cancel(batch)
                return _reply(_describe_batch(batch, request))
            case "DELETE", None:
                if not ended:
                    return wire_anthropic.make_error(400, f"{batch.id} has not ended; cancel it first.")
                await self._store.drop(batch)
                return _reply({"id": batch.id, "type": "message_batch_deleted"})
            case "GET", "results":
                if batch.output is None:
                    return wire_anthropic.make_error(404, f"{batch.id} has no results yet.")
                return await self._store.send(request, batch.output)
        return wire_anthropic.make_error(405, f"{request.path} does not take {request.method}.")

    async def _create(self, request: web.BaseRequest) -> web.StreamResponse | Refusal:
        path = self._store.choose_place()
        try:
            await save(request.content.iter_chunked(1 << 18), path, MOST_BYTES)
            asked = decode(_CREATE, path.read_bytes()).requests
        except UploadTooLargeError:
            return wire_anthropic.make_error(413, f"A batch takes {MOST_BYTES} bytes at most.")
        except BadCall as problem:
            return wire_anthropic.make_error(400, str(problem))
        finally:
            path.unlink(missing_ok=True)
        if (wrong := _explain_invalid_ids([line.custom_id for line in asked])) is not None:
            return wire_anthropic.make_error(400, wrong)
        lines = b"".join(_encode(line) + b"\n" for line in asked)
        batch = self._store.begin(
            f"msgbatch_{make_id()}", AnthropicBatchFormat(), lines, {"total": len(asked)}
        )
        answer = _reply(_describe_batch(batch, request))
        # From here on the batch exists, even if its client never learns of it.
        await self._store.lose(request, asked[0].custom_id)
        return answer


def _explain_invalid_ids(names: list[str]) -> str | None:
    """Explain why these custom ids are invalid."""
    if not 1 <= len(names) <= MOST_REQUESTS:
        return f"requests: a batch takes 1 to {MOST_REQUESTS} requests, not {len(names)}"
    seen: set[str] = set()
    for number, name in enumerate(names):
        if not _NAME.fullmatch(name):
            return f"requests.{number}.custom_id: string should match pattern '^{_NAME.pattern}$'"
        if name in seen:
            return f"requests.{number}.custom_id: '{name}' is there twice"
        seen.add(name)
    return None


def _describe_batch(batch: SimulatedBatch, request: web.BaseRequest) -> dict[str, Any]:
    """Return a batch in the API's format."""
    total, ended = batch.facts["total"], batch.state in ENDED
    counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
    if ended:
        counts |= {"succeeded": batch.completed, "errored": batch.failed}
        counts[_UNANSWERED.get(batch.state, "errored")] += total - batch.done
    else:
        counts["processing"] = total
    url = f"{request.scheme}://{request.host}/v1/messages/batches/{batch.id}/results"
    return {
        "id": batch.id,
        "type": "message_batch",
        "processing_status": _STATES.get(batch.state, "in_progress"),
        "request_counts": counts,
        "created_at": _format_moment(batch.created),
        "expires_at": _format_moment(batch.created + batch.window),
        "ended_at": _format_moment(batch.stamps[batch.state]) if ended else None,
        "cancel_initiated_at": _format_moment(batch.stamps.get("cancelling")),
        "archived_at": None,
        "results_url": url if batch.output is not None else None,
    }


def _format_moment(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()


def _list(request: web.BaseRequest, batches: list[SimulatedBatch]) -> web.Response | Refusal:
    """Return a page of batches, newest first: those following `after_id`, or right before `before_id`."""
    query = request.query
    text = query.get("limit", "20")
    limit = int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0
    if not 1 <= limit <= _MOST_LISTED:
        return wire_anthropic.make_error(400, f"limit: a number between 1 and {_MOST_LISTED} is expected")
    after, before = query.get("after_id"), query.get("before_id")
    if after and before:
        return wire_anthropic.make_error(400, "after_id and before_id cannot be given at once")
    cursor = after or before
    place = _find_place(cursor, batches)
    if cursor and place is None:
        return wire_anthropic.make_error(404, f"There is no message batch '{cursor}'.")
    if before:
        start, end = max(0, (place or 0) - limit), place or 0
        more = start > 0
    else:
        start = 0 if place is None else place + 1
        end = start + limit
        more = end < len(batches)
    data = [_describe_batch(batch, request) for batch in batches[start:end]]
    first, last = (data[0]["id"], data[-1]["id"]) if data else (None, None)
    return _reply({"data": data, "has_more": more, "first_id": first, "last_id": last})


def _find_place(name: str | None, batches: Iterable[SimulatedBatch]) -> int | None:
    return next((place for place, batch in enumerate(batches) if batch.id == name), None)


def _reply(value: Any) -> web.Response:
    return web.Response(body=_encode(value), headers=JSON)
