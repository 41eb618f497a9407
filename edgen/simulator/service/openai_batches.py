"""OpenAI's Files and Batch API: multipart uploads, batch objects, output and error files.

Source: OpenAI's API reference (Files, Batch, and the request input and output objects) and the types of its
Python SDK; codes of refused lines from the Batch guide and Azure OpenAI's list for the same service. Limits
of a batch: 50,000 requests, 200 MB.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
from aiohttp import BodyPartReader, web
from aiohttp.http_exceptions import HttpProcessingError

from edgen.core.values import Reply
from edgen.simulator.faults import Fault
from edgen.simulator.service import wire_openai, wire_responses
from edgen.simulator.service.batches import ENDED, BatchProblem, Checked, File, SimulatedBatch, State, Store
from edgen.simulator.service.wire import (
    JSON,
    BadCall,
    Refusal,
    UploadTooLargeError,
    WireCall,
    cut_page,
    decode,
    make_id,
    save,
)

MOST_LINES = 50_000
MOST_BYTES = 200 * 1024 * 1024
# Endpoints of batches, with their wire formats.
ENDPOINTS = {"/v1/chat/completions": wire_openai, "/v1/responses": wire_responses}
_MOST_PROBLEMS = 100
_NO_FILE = 404

_Key = Annotated[str, msgspec.Meta(max_length=64)]
_Value = Annotated[str, msgspec.Meta(max_length=512)]


class _Create(msgspec.Struct):
    input_file_id: str
    endpoint: str
    completion_window: str
    metadata: Annotated[dict[_Key, _Value], msgspec.Meta(max_length=16)] | None = None


class _Line(msgspec.Struct):
    custom_id: str
    body: msgspec.Raw


class _Model(msgspec.Struct):
    model: str | None = None


_CREATE = msgspec.json.Decoder(_Create)
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_LINE = msgspec.json.Decoder(_Line)
_MODEL = msgspec.json.Decoder(_Model)
_encode = msgspec.json.Encoder().encode
_WHY = {
    "expired": ("batch_expired", "This request could not be executed before the completion window expired."),
    "cancelled": ("batch_cancelled", "This request was not executed because the batch was cancelled."),
}


class OpenAIBatchFormat:
    """Reader and writer of OpenAI's batch files: a custom id and a body in, a response or an error out."""

    errors_apart = True
    partial = True

    def __init__(self, endpoint: str = "/v1/chat/completions") -> None:
        self.endpoint = endpoint
        self._wire: Any = ENDPOINTS[endpoint]

    def check(self, file: Path) -> Checked:
        problems: list[BatchProblem] = []
        seen: set[str] = set()
        model, total = "", 0
        with file.open("rb") as lines:
            for total, line in enumerate(lines, 1):
                if total > MOST_LINES:
                    what = f"The batch file holds more than {MOST_LINES} requests."
                    return Checked(total, model, [BatchProblem("too_many_tasks", what)])
                if len(problems) < _MOST_PROBLEMS:
                    problem, model = _find_problem(line, seen, model, self.endpoint)
                    if problem is not None:
                        problems.append(problem._replace(line=total))
        if not total:
            problems = [BatchProblem("empty_file", "The batch file holds no request.")]
        return Checked(total, model, problems)

    def read(self, line: bytes) -> tuple[str, WireCall | Refusal]:
        value = _LINE.decode(line)
        try:
            call = self._wire.read(bytes(value.body))
            if call.stream:
                raise BadCall("A request of a batch cannot be streamed.")
        except BadCall as problem:
            return value.custom_id, wire_openai.make_error(400, str(problem), problem.field)
        return value.custom_id, call

    def make_fault(self, struck: Fault, call: WireCall) -> Refusal:
        return wire_openai.make_fault(struck, call)

    def encode_answer(self, name: str, call: WireCall, replies: list[Reply], number: str) -> bytes:
        return _render_result(name, 200, self._wire.answer(call, replies, number))

    def encode_refusal(self, name: str, refusal: Refusal) -> bytes:
        return _render_result(name, refusal.status, refusal.body)

    def make_result_id(self) -> str:
        return f"file-{make_id()}"

    def encode_unanswered(self, name: str, state: State) -> bytes:
        code, message = _WHY[state]
        error = {"code": code, "message": message}
        return (
            _encode({"id": f"batch_req_{make_id()}", "custom_id": name, "response": None, "error": error})
            + b"\n"
        )


def _render_result(name: str, status: int, body: bytes) -> bytes:
    response = {"status_code": status, "request_id": f"req_{make_id()}", "body": msgspec.Raw(body)}
    return (
        _encode({"id": f"batch_req_{make_id()}", "custom_id": name, "response": response, "error": None})
        + b"\n"
    )


def _find_problem(line: bytes, seen: set[str], model: str, endpoint: str) -> tuple[BatchProblem | None, str]:
    """Return the problem of a line of a batch to `endpoint`, and the batch's model; `seen` are the custom ids
    so far."""
    try:
        fields = _FIELDS.decode(line.decode())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return BatchProblem("invalid_json_line", "This line is not parseable as valid JSON."), model
    for name in ("custom_id", "method", "url", "body"):
        if name not in fields:
            return BatchProblem(
                "missing_required_parameter", f"Missing required parameter: '{name}'.", param=name
            ), model
    try:
        custom_id = msgspec.json.decode(fields["custom_id"], type=str)
        named = _MODEL.decode(fields["body"]).model or ""
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        return BatchProblem("invalid_type", f"This line cannot be read: {problem}.", param="body"), model
    if custom_id in seen:
        what = f"The custom_id '{custom_id}' for this request is a duplicate of another request."
        return BatchProblem("duplicate_custom_id", what, param="custom_id"), model
    seen.add(custom_id)
    if bytes(fields["method"]).strip() != b'"POST"':
        return BatchProblem("invalid_method", "The method of a request must be POST.", param="method"), model
    if bytes(fields["url"]).strip() != f'"{endpoint}"'.encode():
        what = f"The URL provided for this request does not match the batch endpoint {endpoint}."
        return BatchProblem("invalid_url", what, param="url"), model
    if model and named != model:
        what = f"The provided model '{named}' does not match the other requests' '{model}'."
        return BatchProblem("mismatched_model", what, param="body.model"), model
    return None, named


_PATH = re.compile(r"(?:/v1)?/(files|batches)(?:/([^/]+))?(?:/(content|cancel))?")


class OpenAIBatchService:
    """Handler of OpenAI's paths."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse | Refusal | None:
        """Answer a request, None for another path."""
        found = _PATH.fullmatch(request.path)
        if found is None:
            return None
        kind, id_, action = found.groups()
        if self._store.should_refuse(f"{request.method} {request.path}"):
            return wire_openai.make_fault(Fault("503", 1), WireCall((), ""))
        route = (request.method, kind, id_ is not None, action)
        if kind == "files":
            return await self._answer_files(request, route, id_ or "")
        return await self._answer_batches(request, route, id_ or "")

    # -- files

    async def _answer_files(
        self, request: web.BaseRequest, route: Any, id_: str
    ) -> web.StreamResponse | Refusal:
        match route:
            case ("POST", _, False, None):
                return await self._upload(request)
            case ("GET", _, False, None):
                return self._list_files(request)
        if not id_:
            return _refuse_method(request)
        if not id_.startswith("file-") or id_ not in self._store.files:
            return _refuse(_NO_FILE, f"No such File object: {id_}", param="id")
        match route:
            case ("GET", _, True, None):
                return _reply(_describe_file(self._store.files[id_]))
            case ("GET", _, True, "content"):
                return await self._store.send(request, self._store.files[id_])
            case ("DELETE", _, True, None):
                self._store.remove(id_)
                return _reply({"id": id_, "object": "file", "deleted": True})
        return _refuse_method(request)

    async def _upload(self, request: web.BaseRequest) -> web.StreamResponse | Refusal:
        if not request.content_type.startswith("multipart/"):
            return _refuse(400, "A file is uploaded as multipart/form-data, with `file` and `purpose`.")
        path, name, purpose = self._store.choose_place(), "", ""
        kept = False
        try:
            async for part in await request.multipart():
                if not isinstance(part, BodyPartReader):
                    return _refuse(400, "A part of the form is itself in parts.")
                if part.name == "purpose":
                    purpose = (await part.text())[:100]
                elif part.name == "file" and not name:
                    name = part.filename or "file"
                    await save(_iterate_chunks(part), path, MOST_BYTES)
            if wrong := _find_upload_error(name, purpose):
                return wrong
            kept = True
            made = self._store.add(f"file-{make_id()}", path, name, purpose)
            await asyncio.sleep(self._store.compute_delay(made))
            return _reply(_describe_file(made))
        except UploadTooLargeError:
            return _refuse(413, f"The file is larger than {MOST_BYTES} bytes, the most that a batch takes.")
        except (ValueError, HttpProcessingError) as problem:
            return _refuse(400, f"The form cannot be read: {problem}.")
        finally:
            if not kept:
                path.unlink(missing_ok=True)

    def _list_files(self, request: web.BaseRequest) -> web.StreamResponse | Refusal:
        files = [file for file in self._store.files.values() if file.id.startswith("file-")]
        if purpose := request.query.get("purpose"):
            files = [file for file in files if file.purpose == purpose]
        if request.query.get("order") != "asc":
            files.reverse()
        return _answer_page(request, files, lambda file: file.id, _describe_file, 10_000)

    # -- batches

    async def _answer_batches(
        self, request: web.BaseRequest, route: Any, id_: str
    ) -> web.StreamResponse | Refusal:
        match route:
            case ("POST", _, False, None):
                return await self._create(request)
            case ("GET", _, False, None):
                batches = self._store.of(OpenAIBatchFormat)
                return _answer_page(request, batches, lambda batch: batch.id, _describe_batch, 100)
        if not id_:
            return _refuse_method(request)
        batch = self._store.batches.get(id_)
        if batch is None or not isinstance(batch.format, OpenAIBatchFormat):
            return _refuse(404, f"No batch found with id '{id_}'.")
        match route:
            case ("GET", _, True, None):
                return _reply(_describe_batch(batch))
            case ("POST", _, True, "cancel"):
                if batch.state in ENDED:
                    return _refuse(409, f"Cannot cancel a batch with status '{batch.state}'.")
                self._store.cancel(batch)
                return _reply(_describe_batch(batch))
        return _refuse_method(request)

    async def _create(self, request: web.BaseRequest) -> web.StreamResponse | Refusal:
        try:
            asked = decode(_CREATE, await request.read())
        except BadCall as problem:
            return _refuse(400, str(problem))
        if asked.endpoint not in ENDPOINTS:
            known = " and ".join(ENDPOINTS)
            return _refuse(
                400, f"The simulator's batches are for {known}, not {asked.endpoint}.", param="endpoint"
            )
        if asked.completion_window != "24h":
            return _refuse(400, "Invalid value: supported values are: '24h'.", param="completion_window")
        file = self._store.files.get(asked.input_file_id)
        if file is None or not file.id.startswith("file-"):
            return _refuse(_NO_FILE, f"No such File object: {asked.input_file_id}", param="input_file_id")
        if file.purpose != "batch":
            return _refuse(
                400, f"{file.id} has the purpose '{file.purpose}', not 'batch'.", param="input_file_id"
            )
        facts = {"input_file_id": file.id, "metadata": asked.metadata}
        batch = self._store.begin(f"batch_{make_id()}", OpenAIBatchFormat(asked.endpoint), file, facts)
        answer = _reply(_describe_batch(batch))
        # From here on the batch exists, even if its client never learns of it.
        token = _encode(asked.metadata).decode() if asked.metadata else file.id
        await self._store.lose(request, token)
        return answer


async def _iterate_chunks(part: BodyPartReader) -> AsyncIterator[bytes]:
    while chunk := await part.read_chunk(1 << 18):
        yield chunk


def _find_upload_error(name: str, purpose: str) -> Refusal | None:
    if not name or not purpose:
        missing = "purpose" if name else "file"
        return _refuse(400, f"Missing required parameter: '{missing}'.", param=missing)
    # Names without an ending are accepted: OpenAI's SDK calls bytes "upload".
    if purpose == "batch" and "." in name and not name.endswith(".jsonl"):
        return _refuse(400, "Invalid file format for Batch API. Must be .jsonl")
    return None


def _describe_file(file: File) -> dict[str, Any]:
    return {
        "id": file.id,
        "object": "file",
        "bytes": file.size,
        "created_at": int(file.created),
        "filename": file.name,
        "purpose": file.purpose,
        "status": "processed",
        "status_details": None,
    }


def _describe_batch(batch: SimulatedBatch) -> dict[str, Any]:
    stamps: dict[str, int | None] = {
        f"{state}_at": int(batch.stamps[state]) if state in batch.stamps else None
        for state in (
            "in_progress",
            "finalizing",
            "completed",
            "failed",
            "expired",
            "cancelling",
            "cancelled",
        )
    }
    errors = {"object": "list", "data": [problem._asdict() for problem in batch.problems]}
    total = 0 if batch.state == "validating" else batch.total
    assert isinstance(batch.format, OpenAIBatchFormat)
    return {
        "id": batch.id,
        "object": "batch",
        "endpoint": batch.format.endpoint,
        "model": batch.model or None,
        "errors": errors if batch.problems else None,
        "input_file_id": batch.facts["input_file_id"],
        "completion_window": "24h",
        "status": batch.state,
        "output_file_id": batch.output.id if batch.output is not None else None,
        "error_file_id": batch.errors.id if batch.errors is not None else None,
        "created_at": int(batch.created),
        "expires_at": int(batch.created + batch.window),
        **stamps,
        "request_counts": {"total": total, "completed": batch.completed, "failed": batch.failed},
        "metadata": batch.facts["metadata"],
    }


def _answer_page(
    request: web.BaseRequest, items: list[Any], name: Any, shown: Any, most: int
) -> web.Response | Refusal:
    """Return a page of a list for the SDK: `after` the last known id, at most `limit`."""
    text = request.query.get("limit", "20" if most == 100 else str(most))
    limit = int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0
    if not 1 <= limit <= most:
        return _refuse(400, f"Invalid 'limit': a number between 1 and {most} is expected.", param="limit")
    shown_here, more = cut_page(items, name, request.query.get("after"), limit)
    ids = [name(item) for item in shown_here]
    first, last = (ids[0], ids[-1]) if ids else (None, None)
    data = [shown(item) for item in shown_here]
    return _reply({"object": "list", "data": data, "first_id": first, "last_id": last, "has_more": more})


def _reply(value: Any) -> web.Response:
    return web.Response(body=_encode(value), headers=JSON)


def _refuse_method(request: web.BaseRequest) -> Refusal:
    return _refuse(405, f"{request.path} does not take {request.method}.")


def _refuse(status: int, message: str, *, param: str | None = None) -> Refusal:
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": None}
    return Refusal(status, _encode({"error": error}), {})
