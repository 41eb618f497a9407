"""The Gemini Developer API's batches (v1beta): operations, their files, and resumable uploads.

Source: Google's reference (Batch API: GenerateContentBatch, BatchStats; long-running operations; Files API
and its resumable upload protocol: a start, then pieces with their offsets, the last of which finalizes) and
requests of google-genai. An expired or cancelled batch has no results, as the Batch guide states for expired
ones. A failed line holds a google.rpc.Status, whose codes are gRPC's. Limit of a file: 2 GB.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import msgspec
from aiohttp import web

from edgen.simulator.service.batch_server import (
    BatchFaults,
    BatchServer,
    Operation,
    Place,
    cut_page,
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
    Store,
    make_id,
)
from edgen.simulator.service.dialect import BadCall, Refusal, encode
from edgen.simulator.service.gemini import GEMINI
from edgen.simulator.service.gemini_request import convert_to_camel

MOST_BYTES = 2 * 1024**3
_KEPT = 48 * 3600  # seconds that Google keeps an uploaded file
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_VERSION = r"/(?:v1|v1beta|v1alpha)"
_NAME = re.compile(r"files/[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
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
    body: msgspec.Raw = msgspec.field(name="request")
    name: str = msgspec.field(name="key", default="")


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


class _New(msgspec.Struct, rename="camel"):
    name: str | None = None
    display_name: str = ""
    mime_type: str = ""


@dataclass(slots=True)
class _Upload:
    """An incomplete resumable upload. `total`: the announced bytes, None if unknown."""

    path: Path
    file: _New
    total: int | None
    received: int = 0

    def describe(self) -> dict[str, str]:
        """Return the headers that state the progress of the upload."""
        return {"X-Goog-Upload-Status": "active", "X-Goog-Upload-Size-Received": str(self.received)}


class GeminiBatchServer(BatchServer):
    """Gemini's files and batches: a key and a request in, a response or an error out. Neither contains the
    model."""

    dialect = GEMINI
    paths = (
        rf"{_VERSION}/(?P<kind>batches)(?:/(?P<id>[^/:]+))?(?P<action>:cancel)?",
        rf"{_VERSION}/(?P<kind>models)/(?P<id>[^:]+):batchGenerateContent",
        rf"(?:/download)?{_VERSION}/(?P<kind>files)(?:/(?P<id>[^/:]+))?(?P<action>:download)?",
        rf"/(?P<kind>upload){_VERSION}/files",
        r"/(?P<kind>upload-session)/(?P<id>[0-9a-f]+)",
    )
    operations: ClassVar = {
        "POST models/*": "create",
        **dict.fromkeys(
            ("POST upload", "PUT upload", "POST upload-session/*", "PUT upload-session/*"), "upload"
        ),
        "GET batches": "list",
        "GET batches/*": "describe",
        "POST batches/*/:cancel": "cancel",
        "DELETE batches/*": "delete",
        "GET files": "list",
        "GET files/*": "describe",
        "GET files/*/:download": "download",
        "DELETE files/*": "delete",
    }
    partial = False
    line = msgspec.json.Decoder(_Line)
    batch_id, file_id, result_id = "batches/", "files/", "files/batch-"

    def __init__(self, store: Store, faults: BatchFaults) -> None:
        super().__init__(store, faults)
        self._uploads: dict[str, _Upload] = {}

    def check(self, batch: SimulatedBatch, lines: Iterable[bytes]) -> Checked:
        total = 0
        for total, line in enumerate(lines, 1):
            try:
                self.line.decode(line)
            except _UNREADABLE as problem:
                what = f"Line {total} of the input file cannot be read: {problem}."
                return Checked(total, batch.model, [BatchProblem("INVALID_ARGUMENT", what, total)])
        problems = [] if total else [BatchProblem("INVALID_ARGUMENT", "The input holds no request.")]
        return Checked(total, batch.model, problems)

    def render_answer(self, name: str, body: bytes) -> bytes:
        return _render_result(name, "response", msgspec.Raw(body))

    def render_refusal(self, name: str, refusal: Refusal) -> bytes:
        said = msgspec.json.decode(refusal.body, type=_Error).error
        error: dict[str, Any] = {"code": _CODES.get(said.status, 2), "message": said.message}
        if said.details:
            error["details"] = said.details
        return _render_result(name, "error", error)

    def render_unanswered(self, name: str, state: State) -> bytes:
        raise NotImplementedError("a batch that was not completed leaves no results")

    def get_item_id(self, place: Place) -> str:
        return f"{place.kind}/{place.id}"

    def make_missing_error(self, place: Place) -> BadCall:
        if place.kind == "batches":
            return BadCall("Requested entity was not found.", status=404)
        if place.kind == "files":
            return _make_file_error(place.id or "")
        return BadCall(f"{place.request.path} takes POST, not {place.request.method}.", status=405)

    def check_operation(self, operation: Operation, item: File | SimulatedBatch) -> None:
        if operation == "download" and isinstance(item, File) and item.purpose == "uploaded":
            raise BadCall("Only generated files can be downloaded.")

    def describe(self, item: File | SimulatedBatch, place: Place) -> dict[str, Any]:
        return (
            _describe_file(item, place.request.host) if isinstance(item, File) else _describe_operation(item)
        )

    def list_page(self, items: list[Any], place: Place) -> dict[str, Any]:
        """Return a page of a list. The last name on it is the token of the next page."""
        size = read_limit(place.request.query.get("pageSize", "50"))
        if size is None:
            raise BadCall("pageSize must be a number.")
        here, more = cut_page(items, place.request.query.get("pageToken"), min(size or 50, 1000))
        kind = "operations" if place.kind == "batches" else place.kind
        value: dict[str, Any] = {kind: [self.describe(item, place) for item in here]} if here else {}
        return value | ({"nextPageToken": here[-1].id} if more else {})

    async def read_creation(self, place: Place) -> Creation:
        try:
            body = msgspec.json.decode(await place.request.read(), type=dict[str, Any])
            asked = msgspec.convert(convert_to_camel(body.get("batch")), _Asked)
            given = msgspec.convert(convert_to_camel(asked.input_config or {}), _Input)
        except _UNREADABLE as problem:
            raise BadCall(f"The request body cannot be read: {problem}.") from None
        source: File | bytes | None = None
        if given.requests is not None:
            lines = enumerate(given.requests.get("requests", []))
            source = b"".join(encode({"key": f"{i}", "request": r.get("request")}) + b"\n" for i, r in lines)
        elif named := given.file_name:
            source = self.get_file(named)
            if source is None:
                raise _make_file_error(named)
        if source is None:
            raise BadCall("batch.inputConfig names neither a file nor requests.")
        inputs = source.id if isinstance(source, File) else None
        facts = {"model": f"models/{place.id}", "label": asked.display_name, "file": inputs}
        return Creation(source, self.dialect, facts, asked.display_name or inputs, place.id or "")

    async def upload(self, place: Place) -> web.Response | Refusal:
        commands = {
            part.strip() for part in place.request.headers.get("X-Goog-Upload-Command", "").split(",")
        }
        if place.id is None:
            return await self._begin_upload(place, commands)
        upload = self._uploads.get(place.id)
        if upload is None:
            raise BadCall("There is no such upload.", status=404)
        if "query" in commands:
            return reply({}, upload.describe())
        if "cancel" in commands:
            self._uploads.pop(place.id).path.unlink(missing_ok=True)
            return reply({}, {"X-Goog-Upload-Status": "cancelled"})
        if "upload" in commands:
            if place.request.headers.get("X-Goog-Upload-Offset") != str(upload.received):
                wrong = self.make_error(BadCall(f"The upload goes on at {upload.received}."))
                return wrong._replace(headers=upload.describe())
            await self._receive(place, upload)
        if "finalize" not in commands:
            return reply({}, upload.describe())
        if upload.total is not None and upload.received != upload.total:
            what = f"{upload.total} bytes were announced, {upload.received} came."
            return self.make_error(BadCall(what))._replace(headers={"X-Goog-Upload-Status": "active"})
        del self._uploads[place.id]
        upload.path.touch()
        name = upload.file.name or f"{self.file_id}{make_id()[:12]}"
        made = self.store.add(name, upload.path, upload.file.display_name, "uploaded", upload.file.mime_type)
        await asyncio.sleep(self.faults.compute_delay(made))
        return reply({"file": _describe_file(made, place.request.host)}, {"X-Goog-Upload-Status": "final"})

    async def _begin_upload(self, place: Place, commands: set[str]) -> web.Response:
        if commands != {"start"}:
            raise BadCall("Only resumable uploads are taken; the first call's command is `start`.")
        body = await place.request.read()
        try:
            described = msgspec.json.decode(body, type=dict[str, Any]) if body.strip() else {}
            asked = msgspec.convert(convert_to_camel(described.get("file", {})), _New)
        except _UNREADABLE as problem:
            raise BadCall(f"The file's description cannot be read: {problem}.") from None
        if asked.name is not None and not _NAME.fullmatch(asked.name):
            raise BadCall("A file's name is files/ and up to 40 of a-z, 0-9 and dashes.")
        if asked.name in self.store.files:
            raise BadCall(f"{asked.name} exists.", status=409)
        length = place.request.headers.get("X-Goog-Upload-Header-Content-Length", "")
        total = int(length) if length.isascii() and length.isdigit() else None
        if total is not None and total > MOST_BYTES:
            raise BadCall(f"The file is larger than {MOST_BYTES} bytes, the most there may be.")
        number = make_id()
        self._uploads[number] = _Upload(self.store.choose_place(), asked, total)
        where = f"http://{place.request.host}/upload-session/{number}"
        return reply({}, {"X-Goog-Upload-URL": where, "X-Goog-Upload-Status": "active"})

    async def _receive(self, place: Place, upload: _Upload) -> None:
        """Append a chunk to an upload. Raises BadCall."""
        too_large = BadCall(f"The file is larger than {MOST_BYTES} bytes.")
        chunks = place.request.content.iter_any()
        try:
            upload.path.touch()
            upload.received += await save(chunks, upload.path, MOST_BYTES, too_large, upload.received)
        except BadCall:
            self._uploads.pop(place.id or "").path.unlink(missing_ok=True)
            raise
        except BaseException:
            # Discard the bytes of a broken chunk: it is sent again from its start.
            with upload.path.open("ab") as file:
                file.truncate(upload.received)
            raise


def _make_file_error(name: str) -> BadCall:
    """Return the error for a missing file. Google reports the same for another user's file."""
    id_ = name.removeprefix("files/")
    what = f"You do not have permission to access the File {id_} or it may not exist."
    return BadCall(what, status=403)


def _render_result(name: str, kind: str, value: Any) -> bytes:
    return encode({"key": name, kind: value} if name else {kind: value}) + b"\n"


def _describe_file(file: File, host: str) -> dict[str, Any]:
    uri = f"http://{host}/v1beta/{file.id}"
    value = {
        "name": file.id,
        "displayName": file.name,
        "mimeType": file.mime or "application/jsonl",
        "sizeBytes": str(file.size),
        "createTime": _format_moment(file.created),
        "updateTime": _format_moment(file.created),
        "expirationTime": _format_moment(file.created + _KEPT),
        "uri": uri,
        "state": "ACTIVE",
        "source": "UPLOADED" if file.purpose == "uploaded" else "GENERATED",
    }
    if file.purpose != "uploaded":
        value["downloadUri"] = f"{uri}:download?alt=media"
    return value


def _format_moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _describe_operation(batch: SimulatedBatch) -> dict[str, Any]:
    """Return a batch as a long-running operation."""
    ended = batch.stamps.get(batch.state) if batch.state in ENDED else None
    updated = max(batch.stamps.values(), default=batch.created)
    metadata: dict[str, Any] = {
        "@type": _TYPE,
        "model": batch.facts["model"],
        "displayName": batch.facts["label"],
        "createTime": _format_moment(batch.created),
        "updateTime": _format_moment(updated),
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
    metadata["endTime"] = _format_moment(ended)
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
