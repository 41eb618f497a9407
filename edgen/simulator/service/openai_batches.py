"""OpenAI's Files and Batch API: multipart uploads, batch objects, output and error files.

Source: OpenAI's API reference (Files, Batch, and the request input and output objects) and the types of its
Python SDK. The codes of refused lines are from the Batch guide and Azure OpenAI's list for the same service.
Limits of a batch: 50,000 requests, 200 MB.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Annotated, Any, ClassVar

import msgspec
from aiohttp import BodyPartReader, web
from aiohttp.http_exceptions import HttpProcessingError

from edgen.simulator.service.batch_server import (
    BatchServer,
    Operation,
    Place,
    cut_page,
    make_method_error,
    read_limit,
    reply,
    save,
)
from edgen.simulator.service.batches import (
    ENDED,
    BatchProblem,
    Checked,
    Creation,
    File,
    SimulatedBatch,
    State,
    make_id,
)
from edgen.simulator.service.dialect import BadCall, Dialect, Refusal, Trouble, decode, encode
from edgen.simulator.service.openai_chat import CHAT
from edgen.simulator.service.openai_responses import RESPONSES

MOST_LINES = 50_000
MOST_BYTES = 200 * 1024 * 1024
# Endpoints of batches, with their dialects.
ENDPOINTS: dict[str, Dialect] = {"/v1/chat/completions": CHAT, "/v1/responses": RESPONSES}
_MOST_PROBLEMS = 100
_TOO_LARGE = BadCall(f"The file is larger than {MOST_BYTES} bytes, the most that a batch takes.", status=413)

_Key = Annotated[str, msgspec.Meta(max_length=64)]
_Value = Annotated[str, msgspec.Meta(max_length=512)]


class _Create(msgspec.Struct):
    input_file_id: str
    endpoint: str
    completion_window: str
    metadata: Annotated[dict[_Key, _Value], msgspec.Meta(max_length=16)] | None = None


class _Line(msgspec.Struct):
    name: str = msgspec.field(name="custom_id")
    body: msgspec.Raw


class _Model(msgspec.Struct):
    model: str | None = None


_CREATE = msgspec.json.Decoder(_Create)
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_MODEL = msgspec.json.Decoder(_Model)
_WHY = {
    "expired": ("batch_expired", "This request could not be executed before the completion window expired."),
    "cancelled": ("batch_cancelled", "This request was not executed because the batch was cancelled."),
}
_STAMPED = ["in_progress", "finalizing", "completed", "failed", "expired", "cancelling", "cancelled"]


class OpenAIBatchServer(BatchServer):
    """OpenAI's files and batches: a custom id and a body in, a response or an error out."""

    dialect = CHAT
    paths = (r"(?:/v1)?/(?P<kind>files|batches)(?:/(?P<id>[^/]+))?(?:/(?P<action>content|cancel))?",)
    operations: ClassVar = {
        "POST files": "upload",
        "GET files": "list",
        "GET files/*": "describe",
        "GET files/*/content": "download",
        "DELETE files/*": "delete",
        "POST batches": "create",
        "GET batches": "list",
        "GET batches/*": "describe",
        "POST batches/*/cancel": "cancel",
    }
    errors_apart = True
    deleted: ClassVar = {"object": "file", "deleted": True}
    line = msgspec.json.Decoder(_Line)
    no_stream = "A request of a batch cannot be streamed."
    batch_id, file_id, result_id = "batch_", "file-", "file-"

    def check(self, batch: SimulatedBatch, lines: Iterable[bytes]) -> Checked:
        problems: list[BatchProblem] = []
        seen: set[str] = set()
        model, total = "", 0
        for total, line in enumerate(lines, 1):
            if total > MOST_LINES:
                what = f"The batch file holds more than {MOST_LINES} requests."
                return Checked(total, model, [BatchProblem("too_many_tasks", what)])
            if len(problems) < _MOST_PROBLEMS:
                problem, model = _find_problem(line, seen, model, batch.facts["endpoint"])
                if problem is not None:
                    problems.append(problem._replace(line=total))
        if not total:
            problems = [BatchProblem("empty_file", "The batch file holds no request.")]
        return Checked(total, model, problems)

    def render_answer(self, name: str, body: bytes) -> bytes:
        return self.render_refusal(name, Refusal(200, body, {}))

    def render_refusal(self, name: str, refusal: Refusal) -> bytes:
        body = msgspec.Raw(refusal.body)
        response = {"status_code": refusal.status, "request_id": f"req_{make_id()}", "body": body}
        return _render_result(name, response=response)

    def render_unanswered(self, name: str, state: State) -> bytes:
        code, message = _WHY[state]
        return _render_result(name, error={"code": code, "message": message})

    def make_error(self, problem: BadCall) -> Refusal:
        kind = self.dialect.other_kind
        return self.dialect.render_error(Trouble(problem.status, str(problem), kind, field=problem.field))

    def make_missing_error(self, place: Place) -> BadCall:
        if place.id is None:
            return make_method_error(place)
        if place.kind == "files":
            return _make_file_error(place.id, "id")
        return BadCall(f"No batch found with id '{place.id}'.", status=404)

    def check_operation(self, operation: Operation, item: File | SimulatedBatch) -> None:
        if operation == "cancel" and isinstance(item, SimulatedBatch) and item.state in ENDED:
            raise BadCall(f"Cannot cancel a batch with status '{item.state}'.", status=409)

    def describe(self, item: File | SimulatedBatch, place: Place) -> dict[str, Any]:  # noqa: ARG002
        return _describe_file(item) if isinstance(item, File) else _describe_batch(item)

    def list_page(self, items: list[Any], place: Place) -> dict[str, Any]:
        usual, most = (10_000, 10_000) if place.kind == "files" else (20, 100)
        limit = read_limit(place.request.query.get("limit", str(usual))) or 0
        if not 1 <= limit <= most:
            raise BadCall(f"Invalid 'limit': a number between 1 and {most} is expected.", "limit")
        if place.kind == "files":
            if purpose := place.request.query.get("purpose"):
                items = [file for file in items if file.purpose == purpose]
            if place.request.query.get("order") == "asc":
                items.reverse()
        here, more = cut_page(items, place.request.query.get("after"), limit)
        first, last = (here[0].id, here[-1].id) if here else (None, None)
        data = [self.describe(item, place) for item in here]
        return {"object": "list", "data": data, "first_id": first, "last_id": last, "has_more": more}

    async def upload(self, place: Place) -> web.Response:
        if not place.request.content_type.startswith("multipart/"):
            raise BadCall("A file is uploaded as multipart/form-data, with `file` and `purpose`.")
        path, name, purpose = self.store.choose_place(), "", ""
        kept = False
        try:
            async for part in await place.request.multipart():
                if not isinstance(part, BodyPartReader):
                    raise BadCall("A part of the form is itself in parts.")
                if part.name == "purpose":
                    purpose = (await part.text())[:100]
                elif part.name == "file" and not name:
                    name = part.filename or "file"
                    await save(_iterate_chunks(part), path, MOST_BYTES, _TOO_LARGE)
            _check_upload(name, purpose)
            kept = True
            made = self.store.add(f"{self.file_id}{make_id()}", path, name, purpose)
            await asyncio.sleep(self.faults.compute_delay(made))
            return reply(_describe_file(made))
        except (ValueError, HttpProcessingError) as problem:
            raise BadCall(f"The form cannot be read: {problem}.") from None
        finally:
            if not kept:
                path.unlink(missing_ok=True)

    async def read_creation(self, place: Place) -> Creation:
        asked = decode(_CREATE, await place.request.read())
        if asked.endpoint not in ENDPOINTS:
            known = " and ".join(ENDPOINTS)
            raise BadCall(f"The simulator's batches are for {known}, not {asked.endpoint}.", "endpoint")
        if asked.completion_window != "24h":
            raise BadCall("Invalid value: supported values are: '24h'.", "completion_window")
        file = self.get_file(asked.input_file_id)
        if file is None:
            raise _make_file_error(asked.input_file_id, "input_file_id")
        if file.purpose != "batch":
            raise BadCall(f"{file.id} has the purpose '{file.purpose}', not 'batch'.", "input_file_id")
        facts = {"endpoint": asked.endpoint, "input_file_id": file.id, "metadata": asked.metadata}
        token = encode(asked.metadata).decode() if asked.metadata else file.id
        return Creation(file, ENDPOINTS[asked.endpoint], facts, token)


def _make_file_error(id_: str, field: str) -> BadCall:
    return BadCall(f"No such File object: {id_}", field, 404)


def _render_result(name: str, *, response: Any = None, error: Any = None) -> bytes:
    value = {"id": f"batch_req_{make_id()}", "custom_id": name, "response": response, "error": error}
    return encode(value) + b"\n"


def _find_problem(line: bytes, seen: set[str], model: str, endpoint: str) -> tuple[BatchProblem | None, str]:
    """Return the problem of a line of a batch to `endpoint`, if any, and the batch's model. `seen`: the
    custom ids so far."""
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


async def _iterate_chunks(part: BodyPartReader) -> AsyncIterator[bytes]:
    while chunk := await part.read_chunk(1 << 18):
        yield chunk


def _check_upload(name: str, purpose: str) -> None:
    if not name or not purpose:
        missing = "purpose" if name else "file"
        raise BadCall(f"Missing required parameter: '{missing}'.", missing)
    # Names without an ending are accepted: OpenAI's SDK calls bytes "upload".
    if purpose == "batch" and "." in name and not name.endswith(".jsonl"):
        raise BadCall("Invalid file format for Batch API. Must be .jsonl")


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
        f"{state}_at": int(batch.stamps[state]) if state in batch.stamps else None for state in _STAMPED
    }
    errors = {"object": "list", "data": [problem._asdict() for problem in batch.problems]}
    total = 0 if batch.state == "validating" else batch.total
    return {
        "id": batch.id,
        "object": "batch",
        "endpoint": batch.facts["endpoint"],
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
