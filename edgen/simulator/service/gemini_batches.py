"""The Gemini Developer API's batches (v1beta): operations and their files.

Source: Google's reference (Batch API: GenerateContentBatch, BatchStats; long-running operations) and requests
of google-genai. An expired or cancelled batch has no results, as the Batch guide says of expired ones; a
failed line holds a google.rpc.Status, whose codes are gRPC's.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from edgen.core.values import Reply
from edgen.simulator.faults import Fault
from edgen.simulator.service import wire_gemini
from edgen.simulator.service.batches import ENDED, BatchProblem, Checked, File, SimulatedBatch, State, Store
from edgen.simulator.service.gemini_files import (
    UNREADABLE,
    VERSION,
    Files,
    answer_page,
    as_json,
    format_moment,
    make_missing_error,
    make_overload_error,
)
from edgen.simulator.service.wire import BadCall, Refusal, WireCall, make_id

_TYPE = "type.googleapis.com/google.ai.generativelanguage.v1beta.GenerateContentBatch"
_STATES: dict[State, str] = {
    "validating": "BATCH_STATE_PENDING",
    "in_progress": "BATCH_STATE_RUNNING",
    "finalizing": "BATCH_STATE_RUNNING",
    "cancelling": "BATCH_STATE_RUNNING",
    "completed": "BATCH_STATE_SUCCEEDED",
    "failed": "BATCH_STATE_FAILED",
    "cancelled": "BATCH_STATE_CANCELLED",
    "expired": "BATCH_STATE_EXPIRED",
}
# Google's status -> its number in google.rpc.Code
_CODES = {
    "INVALID_ARGUMENT": 3,
    "NOT_FOUND": 5,
    "RESOURCE_EXHAUSTED": 8,
    "INTERNAL": 13,
    "UNAVAILABLE": 14,
    "UNAUTHENTICATED": 16,
}


class _Line(msgspec.Struct):
    request: msgspec.Raw
    key: str = ""


class _Input(msgspec.Struct, rename="camel"):
    file_name: str | None = None
    requests: dict[str, list[dict[str, Any]]] | None = None


class _Asked(msgspec.Struct, rename="camel"):
    display_name: str = ""
    input_config: Any = None


class _Status(msgspec.Struct):
    status: str = "UNKNOWN"
    message: str = ""
    details: list[Any] = []


class _Error(msgspec.Struct):
    error: _Status


_LINE = msgspec.json.Decoder(_Line)
_encode = msgspec.json.Encoder().encode


class GeminiBatchFormat:
    """Reader and writer of Gemini's batch files: a key and a request in, a response or an error out. The
    model is in neither."""

    errors_apart = False
    partial = False

    def __init__(self, model: str) -> None:
        self._model = model.removeprefix("models/")

    def check(self, file: Path) -> Checked:
        total = 0
        with file.open("rb") as lines:
            for total, line in enumerate(lines, 1):
                try:
                    _LINE.decode(line)
                except UNREADABLE as problem:
                    what = f"Line {total} of the input file cannot be read: {problem}."
                    return Checked(total, self._model, [BatchProblem("INVALID_ARGUMENT", what, total)])
        problems = [] if total else [BatchProblem("INVALID_ARGUMENT", "The input holds no request.")]
        return Checked(total, self._model, problems)

    def read(self, line: bytes) -> tuple[str, WireCall | Refusal]:
        value = _LINE.decode(line)
        try:
            return value.key, wire_gemini.read(bytes(value.request), self._model, stream=False)
        except BadCall as problem:
            return value.key, wire_gemini.make_error(400, str(problem))

    def make_fault(self, struck: Fault, call: WireCall) -> Refusal:
        return wire_gemini.make_fault(struck, call)

    def encode_answer(self, name: str, call: WireCall, replies: list[Reply], number: str) -> bytes:
        return _render_result(name, "response", msgspec.Raw(wire_gemini.answer(call, replies, number)))

    def encode_refusal(self, name: str, refusal: Refusal) -> bytes:
        said = msgspec.json.decode(refusal.body, type=_Error).error
        error: dict[str, Any] = {"code": _CODES.get(said.status, 2), "message": said.message}
        if said.details:
            error["details"] = said.details
        return _render_result(name, "error", error)

    def make_result_id(self) -> str:
        return f"files/batch-{make_id()}"

    def encode_unanswered(self, name: str, state: State) -> bytes:
        raise NotImplementedError("a batch that was not completed leaves no results")


def _render_result(name: str, kind: str, value: Any) -> bytes:
    return _encode({"key": name, kind: value} if name else {kind: value}) + b"\n"


_BATCHES = re.compile(rf"{VERSION}/batches(?:/([^/:]+))?(:cancel)?")
_MODEL = re.compile(rf"{VERSION}/(models/[^:]+):batchGenerateContent")


class GeminiBatchService:
    """Handler of Gemini's file and batch paths."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._files = Files(store)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse | Refusal | None:
        """Answer a request, None for another path."""
        path = request.path
        model, batches = _MODEL.fullmatch(path), _BATCHES.fullmatch(path)
        if not (model or batches):
            return await self._files.handle(request)
        if self._store.should_refuse(f"{request.method} {path}"):
            return make_overload_error()
        if batches:
            return await self._answer_batches(request, batches[1], batches[2])
        if request.method != "POST":
            return wire_gemini.make_error(405, f"{path} takes POST, not {request.method}.")
        return None if model is None else await self._create(request, model[1])

    async def _answer_batches(
        self, request: web.BaseRequest, id_: str | None, action: str | None
    ) -> web.StreamResponse | Refusal:
        if id_ is None and action is None and request.method == "GET":
            return answer_page(request, self._store.of(GeminiBatchFormat), "operations", _describe_operation)
        batch = self._store.batches.get(f"batches/{id_}")
        if batch is None:
            return wire_gemini.make_error(404, "Requested entity was not found.")
        match request.method, action:
            case "GET", None:
                return as_json(_describe_operation(batch))
            case "POST", ":cancel":
                self._store.cancel(batch)
                return as_json({})
            case "DELETE", None:
                await self._store.drop(batch)
                return as_json({})
        return wire_gemini.make_error(405, f"{request.path} does not take {request.method}.")

    async def _create(self, request: web.BaseRequest, model: str) -> web.StreamResponse | Refusal:
        try:
            body = msgspec.json.decode(await request.read(), type=dict[str, Any])
            asked = msgspec.convert(wire_gemini.convert_to_camel(body.get("batch")), _Asked)
            given = msgspec.convert(wire_gemini.convert_to_camel(asked.input_config or {}), _Input)
        except UNREADABLE as problem:
            return wire_gemini.make_error(400, f"The request body cannot be read: {problem}.")
        source: File | bytes | None = None
        if given.requests is not None:
            lines = enumerate(given.requests.get("requests", []))
            source = b"".join(_encode({"key": f"{i}", "request": r.get("request")}) + b"\n" for i, r in lines)
        elif named := given.file_name:
            source = self._store.files.get(named)
            if source is None or not source.id.startswith("files/"):
                return make_missing_error(named)
        if source is None:
            return wire_gemini.make_error(400, "batch.inputConfig names neither a file nor requests.")
        inputs = source.id if isinstance(source, File) else None
        facts = {"model": model, "label": asked.display_name, "file": inputs}
        batch = self._store.begin(f"batches/{make_id()}", GeminiBatchFormat(model), source, facts)
        answer = as_json(_describe_operation(batch))
        # From here on the batch exists, even if its client never learns of it.
        await self._store.lose(request, asked.display_name or inputs or batch.id)
        return answer


def _describe_operation(batch: SimulatedBatch) -> dict[str, Any]:
    """Return a batch as a long-running operation."""
    ended = batch.stamps.get(batch.state) if batch.state in ENDED else None
    updated = max(batch.stamps.values(), default=batch.created)
    metadata: dict[str, Any] = {
        "@type": _TYPE,
        "model": batch.facts["model"],
        "displayName": batch.facts["label"],
        "createTime": format_moment(batch.created),
        "updateTime": format_moment(updated),
        "state": _STATES[batch.state],
        "name": batch.id,
    }
    if batch.facts["file"]:
        metadata["inputConfig"] = {"fileName": batch.facts["file"]}
    counts = {
        "requestCount": batch.total,
        "pendingRequestCount": batch.total - batch.done,
        "successfulRequestCount": batch.completed,
        "failedRequestCount": batch.failed,
    }
    # Zero counts are omitted, as in protobuf's JSON.
    metadata["batchStats"] = {name: str(count) for name, count in counts.items() if count}
    value: dict[str, Any] = {"name": batch.id, "metadata": metadata}
    if ended is None:
        return value
    metadata["endTime"] = format_moment(ended)
    value["done"] = True
    if batch.state == "completed":
        metadata["output"] = _describe_output(batch)
        value["response"] = {"@type": _TYPE.replace("Batch", "BatchOutput"), **metadata["output"]}
    else:
        value["error"] = _describe_error(batch)
    return value


def _describe_output(batch: SimulatedBatch) -> dict[str, Any]:
    if batch.output is None or not batch.output.path.exists():
        return {}
    if batch.facts["file"]:
        return {"responsesFile": batch.output.id}
    lines = [msgspec.json.decode(line) for line in batch.output.path.read_bytes().splitlines()]
    lines.sort(key=lambda line: int(line.pop("key")))
    return {"inlinedResponses": {"inlinedResponses": lines}}


def _describe_error(batch: SimulatedBatch) -> dict[str, Any]:
    if batch.state == "cancelled":
        return {"code": 1, "message": "The batch was cancelled."}
    if batch.state == "expired":
        return {"code": 4, "message": "The batch expired before it was done."}
    problem = batch.problems[0]
    return {"code": _CODES.get(problem.code, 13), "message": problem.message}
