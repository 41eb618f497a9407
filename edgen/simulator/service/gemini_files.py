"""The Gemini Developer API's files (v1beta): resumable uploads, descriptions, downloads of results.

Source: Google's Files API and its resumable upload protocol, as google-genai uses it: a start, pieces with
their offsets, the last of them finalizing. Limit of a file: 2 GB.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from edgen.simulator.faults import Fault
from edgen.simulator.service import wire_gemini
from edgen.simulator.service.batches import File, Store
from edgen.simulator.service.wire import JSON, Refusal, UploadTooLargeError, WireCall, cut_page, make_id, save

MOST_BYTES = 2 * 1024**3
VERSION = r"/(?:v1|v1beta|v1alpha)"
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_KEPT = 48 * 3600  # seconds that Google keeps an uploaded file
_START = re.compile(rf"/upload{VERSION}/files")
_SEND = re.compile(r"/upload-session/([0-9a-f]+)")
_FILES = re.compile(rf"(?:/download)?{VERSION}/files(?:/([^/:]+))?(:download)?")
_NAME = re.compile(r"files/[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
_encode = msgspec.json.Encoder().encode


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


class Files:
    """Handler of Gemini's file paths."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._uploads: dict[str, _Upload] = {}

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse | Refusal | None:
        """Answer a request, None for another path."""
        path = request.path
        start, send, file = (pattern.fullmatch(path) for pattern in (_START, _SEND, _FILES))
        if not (start or send or file):
            return None
        if self._store.should_refuse(f"{request.method} {path}"):
            return make_overload_error()
        if file:
            return await self._answer_file(request, file[1], file[2])
        if request.method not in ("POST", "PUT"):
            return wire_gemini.make_error(405, f"{path} takes POST, not {request.method}.")
        return await self._send(request, send[1]) if send else await self._start(request)

    async def _start(self, request: web.BaseRequest) -> web.StreamResponse | Refusal:
        if request.headers.get("X-Goog-Upload-Command", "").strip() != "start":
            return wire_gemini.make_error(
                400, "Only resumable uploads are taken; the first call's command is `start`."
            )
        body = await request.read()
        try:
            described = msgspec.json.decode(body, type=dict[str, Any]) if body.strip() else {}
            asked = msgspec.convert(wire_gemini.convert_to_camel(described.get("file", {})), _New)
        except UNREADABLE as problem:
            return wire_gemini.make_error(400, f"The file's description cannot be read: {problem}.")
        if asked.name is not None and not _NAME.fullmatch(asked.name):
            return wire_gemini.make_error(400, "A file's name is files/ and up to 40 of a-z, 0-9 and dashes.")
        if asked.name in self._store.files:
            return wire_gemini.make_error(409, f"{asked.name} exists.")
        length = request.headers.get("X-Goog-Upload-Header-Content-Length", "")
        total = int(length) if length.isascii() and length.isdigit() else None
        if total is not None and total > MOST_BYTES:
            return wire_gemini.make_error(
                400, f"The file is larger than {MOST_BYTES} bytes, the most there may be."
            )
        number = make_id()
        self._uploads[number] = _Upload(self._store.choose_place(), asked, total)
        where = f"http://{request.host}/upload-session/{number}"
        return as_json({}, {"X-Goog-Upload-URL": where, "X-Goog-Upload-Status": "active"})

    async def _send(self, request: web.BaseRequest, number: str) -> web.StreamResponse | Refusal:
        upload = self._uploads.get(number)
        if upload is None:
            return wire_gemini.make_error(404, "There is no such upload.")
        commands = {part.strip() for part in request.headers.get("X-Goog-Upload-Command", "").split(",")}
        so_far = {"X-Goog-Upload-Status": "active", "X-Goog-Upload-Size-Received": str(upload.received)}
        if "query" in commands:
            return as_json({}, so_far)
        if "cancel" in commands:
            self._forget(number)
            return as_json({}, {"X-Goog-Upload-Status": "cancelled"})
        if "upload" in commands:
            if request.headers.get("X-Goog-Upload-Offset") != str(upload.received):
                return _with_headers(
                    wire_gemini.make_error(400, f"The upload goes on at {upload.received}."), so_far
                )
            try:
                upload.path.touch()
                upload.received += await save(
                    request.content.iter_any(), upload.path, MOST_BYTES, upload.received
                )
            except UploadTooLargeError:
                self._forget(number)
                return wire_gemini.make_error(400, f"The file is larger than {MOST_BYTES} bytes.")
            except BaseException:
                # Discard the bytes of a broken chunk: it is sent again from its start.
                with upload.path.open("ab") as file:
                    file.truncate(upload.received)
                raise
        if "finalize" not in commands:
            return as_json({}, {**so_far, "X-Goog-Upload-Size-Received": str(upload.received)})
        if upload.total is not None and upload.received != upload.total:
            what = f"{upload.total} bytes were announced, {upload.received} came."
            return _with_headers(wire_gemini.make_error(400, what), {"X-Goog-Upload-Status": "active"})
        del self._uploads[number]
        upload.path.touch()
        name = upload.file.name or f"files/{make_id()[:12]}"
        made = self._store.add(name, upload.path, upload.file.display_name, "uploaded", upload.file.mime_type)
        await asyncio.sleep(self._store.compute_delay(made))
        return as_json({"file": _describe_file(made, request.host)}, {"X-Goog-Upload-Status": "final"})

    def _forget(self, number: str) -> None:
        self._uploads.pop(number).path.unlink(missing_ok=True)

    async def _answer_file(
        self, request: web.BaseRequest, id_: str | None, action: str | None
    ) -> web.StreamResponse | Refusal:
        if id_ is None and action is None and request.method == "GET":
            files = [f for f in self._store.files.values() if f.id.startswith("files/")]
            host = request.host
            return answer_page(request, files[::-1], "files", lambda file: _describe_file(file, host))
        file = self._store.files.get(f"files/{id_}")
        if file is None:
            return make_missing_error(id_ or "")
        match request.method, action:
            case "GET", None:
                return as_json(_describe_file(file, request.host))
            case "GET", ":download":
                if file.purpose == "uploaded":
                    return wire_gemini.make_error(400, "Only generated files can be downloaded.")
                return await self._store.send(request, file)
            case "DELETE", None:
                self._store.remove(file.id)
                return as_json({})
        return wire_gemini.make_error(405, f"{request.path} does not take {request.method}.")


def make_missing_error(name: str) -> Refusal:
    """Return the error for a missing file, which Google does not distinguish from another user's."""
    id_ = name.removeprefix("files/")
    return wire_gemini.make_error(
        403, f"You do not have permission to access the File {id_} or it may not exist."
    )


def make_overload_error() -> Refusal:
    """Return the error of the batch fault `batch_503`."""
    return wire_gemini.make_fault(Fault("503", 1), WireCall((), ""))


def _describe_file(file: File, host: str) -> dict[str, Any]:
    uri = f"http://{host}/v1beta/{file.id}"
    value = {
        "name": file.id,
        "displayName": file.name,
        "mimeType": file.mime or "application/jsonl",
        "sizeBytes": str(file.size),
        "createTime": format_moment(file.created),
        "updateTime": format_moment(file.created),
        "expirationTime": format_moment(file.created + _KEPT),
        "uri": uri,
        "state": "ACTIVE",
        "source": "UPLOADED" if file.purpose == "uploaded" else "GENERATED",
    }
    if file.purpose != "uploaded":
        value["downloadUri"] = f"{uri}:download?alt=media"
    return value


def answer_page(request: web.BaseRequest, items: list[Any], kind: str, shown: Any) -> web.Response | Refusal:
    """Return a page of a list; its token is the last name on it."""
    text = request.query.get("pageSize", "50")
    if not (text.isascii() and text.isdigit() and len(text) < 9):
        return wire_gemini.make_error(400, "pageSize must be a number.")
    here, more = cut_page(
        items, lambda item: str(item.id), request.query.get("pageToken"), min(int(text) or 50, 1000)
    )
    value: dict[str, Any] = {kind: [shown(item) for item in here]} if here else {}
    if more:
        value["nextPageToken"] = here[-1].id
    return as_json(value)


def format_moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _with_headers(refusal: Refusal, headers: dict[str, str]) -> Refusal:
    return refusal._replace(headers={**refusal.headers, **headers})


def as_json(value: Any, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(body=_encode(value), headers={**JSON, **(headers or {})})
