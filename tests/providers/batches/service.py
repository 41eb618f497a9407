"""A server with all providers' batch protocols and no model: tests set the states of batches."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from aiohttp import web

from edgen.config import BackendConfig
from edgen.providers import PATIENCE, make, make_batch_service
from edgen.providers.batches import BatchService
from tests.providers.fakes import TRUSTING, Answer, Seen


def make_both(
    config: BackendConfig, keys: Mapping[str, str], patience: float = PATIENCE
) -> tuple[Any, BatchService]:
    """Return a backend and its batch service, with `keys` in their environment."""
    environ = {**keys, **TRUSTING}
    backend = make(config, timeout=60, connections=1, environ=environ)
    return backend, make_batch_service(config, backend, environ=environ, patience=patience)


@contextlib.asynccontextmanager
async def closed_at_last(both: tuple[Any, BatchService]) -> AsyncIterator[BatchService]:
    """Yield the batch service; close it twice at the end, and its backend."""
    backend, it = both
    try:
        yield it
    finally:
        await it.aclose()
        await it.aclose()
        await backend.aclose()


class Service:
    """Files and batches in memory. Answers in `next` replace those of the service, one call each."""

    def __init__(self) -> None:
        self.url = ""
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.seen: list[Seen] = []
        self.next: list[Answer] = []
        self.large: Path | None = None  # the content of every download; uploads are then counted, not kept
        self.uploaded = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        form = await request.post() if headers.get("content-type", "").startswith("multipart/") else {}
        body = b"" if form else await self._read(request)
        self.seen.append(Seen(request.method, str(request.rel_url), headers, b"" if self.large else body))
        if self.next:
            return await self._scripted(request, self.next.pop(0))
        path = request.path
        if path.startswith("/v1/messages/batches"):
            return self._anthropic(request, path.removeprefix("/v1/messages/batches"), body)
        if path.startswith("/v1/"):
            return self._openai(request, path.removeprefix("/v1/"), body, form)
        return self._gemini(request, path, body)

    async def _read(self, request: web.Request) -> bytes:
        """Return a request's body; count a large one that creates a batch, without keeping it."""
        if not (self.large and request.path.startswith("/v1/messages/")):
            return await request.read()
        async for chunk in request.content.iter_any():
            self.uploaded += len(chunk)
        return b""

    async def _scripted(self, request: web.Request, step: Answer) -> web.StreamResponse:
        if step.act == "cut":
            response = web.StreamResponse(headers={"Content-Length": str(len(step.body) + 100)})
            await response.prepare(request)
            await response.write(step.body)
            assert request.transport is not None
            request.transport.abort()
            return response
        headers = {"Content-Type": "application/json", **step.headers}
        return web.Response(body=step.body, status=step.status, headers=headers)

    def _kept(self, file: BinaryIO) -> bytes:
        self.uploaded += file.seek(0, io.SEEK_END)
        file.seek(0)
        return b"" if self.large else file.read()

    # -- OpenAI

    def _openai(
        self, request: web.Request, path: str, body: bytes, form: Mapping[str, Any]
    ) -> web.StreamResponse:
        match request.method, path.split("/"):
            case "POST", ["files"]:
                name = f"file-{len(self.files)}"
                upload = form["file"]
                self.files[name] = self._kept(upload.file)
                return web.json_response(
                    {"id": name, "filename": upload.filename, "purpose": form["purpose"]}
                )
            case "GET", ["files", _, "content"] if self.large:
                return web.FileResponse(self.large)
            case "GET", ["files", name, "content"] if name in self.files:
                return web.Response(body=self.files[name], content_type="application/octet-stream")
            case "DELETE", ["files", name] if name in self.files:
                del self.files[name]
                return web.json_response({"id": name, "deleted": True})
            case "POST", ["batches"]:
                asked = json.loads(body)
                return web.json_response(self.openai_batch(metadata=asked["metadata"], asked=asked))
            case "GET", ["batches"]:
                return self._listed(request)
            case "GET", ["batches", name] if name in self.batches:
                return web.json_response(self.batches[name])
            case "POST", ["batches", name, "cancel"] if name in self.batches:
                if self.batches[name]["status"] in ("completed", "failed", "expired", "cancelled"):
                    return _openai_error(409, "Cannot cancel a batch that has ended")
                self.batches[name]["status"] = "cancelling"
                return web.json_response(self.batches[name])
        return _openai_error(404, f"no such thing: {path}")

    def openai_batch(self, created_at: int = 2_000_000_000, **more: Any) -> dict[str, Any]:
        name = f"batch_{len(self.batches)}"
        self.batches[name] = {"id": name, "object": "batch", "status": "validating", "created_at": created_at}
        self.batches[name].update(more)
        return self.batches[name]

    def _listed(self, request: web.Request, cursor: str = "after") -> web.Response:
        newest = list(self.batches.values())[::-1]
        after = request.query.get(cursor)
        start = next((i + 1 for i, batch in enumerate(newest) if batch["id"] == after), 0)
        end = start + int(request.query.get("limit", 20))
        data, more = newest[start:end], end < len(newest)
        last = data[-1]["id"] if data else None
        return web.json_response({"object": "list", "data": data, "has_more": more, "last_id": last})

    # -- Gemini

    def _gemini(self, request: web.Request, path: str, body: bytes) -> web.StreamResponse:
        place = path.removeprefix("/v1beta/")
        match request.method, place.replace(":", "/").split("/"):
            case "POST", ["", "upload", "v1beta", "files"]:
                self.files[f"files/{len(self.files)}"] = b""
                where = f"http://{request.host}/session/{len(self.files) - 1}"
                return web.json_response(
                    {}, headers={"X-Goog-Upload-URL": where, "X-Goog-Upload-Status": "active"}
                )
            case "POST", ["", "session", number]:
                self.files[f"files/{number}"] += self._kept(io.BytesIO(body))
                done = "finalize" in request.headers["X-Goog-Upload-Command"]
                status = {"X-Goog-Upload-Status": "final" if done else "active"}
                return web.json_response(
                    {"file": {"name": f"files/{number}"}} if done else {}, headers=status
                )
            case "POST", ["models", _, "batchGenerateContent"]:
                return web.json_response(self.gemini_batch(json.loads(body)["batch"]["displayName"]))
            case "GET", ["batches"]:
                start = int(request.query.get("pageToken", "0"))
                page = {"operations": list(self.batches.values())[start : start + 2]}
                more = {"nextPageToken": str(start + 2)} if start + 2 < len(self.batches) else {}
                return web.json_response(page | more)
            case "GET", ["batches", name] if f"batches/{name}" in self.batches:
                return web.json_response(self.batches[f"batches/{name}"])
            case "POST", ["batches", name, "cancel"] if f"batches/{name}" in self.batches:
                if self.batches[f"batches/{name}"]["metadata"]["state"] == "BATCH_STATE_SUCCEEDED":
                    return _gemini_error(400, "it has ended", "FAILED_PRECONDITION")
                return web.json_response({})
            case "DELETE", ["files", name] if f"files/{name}" in self.files:
                del self.files[f"files/{name}"]
                return web.json_response({})
            case "GET", ["files", _, "download"] if self.large:
                return web.FileResponse(self.large)
            case "GET", ["files", name, "download"] if f"files/{name}" in self.files:
                return web.Response(body=self.files[f"files/{name}"], content_type="application/octet-stream")
            case _, ["files", *_]:
                message = "You do not have permission to access the File abc or it may not exist."
                return _gemini_error(403, message, "PERMISSION_DENIED")
        return _gemini_error(404, f"no such thing: {path}", "NOT_FOUND")

    def gemini_batch(self, display_name: str = "other", **more: Any) -> dict[str, Any]:
        name = f"batches/{len(self.batches)}"
        metadata = {"name": name, "displayName": display_name, "state": "BATCH_STATE_PENDING"}
        self.batches[name] = {"name": name, "metadata": metadata, **more}
        return self.batches[name]

    # -- Anthropic

    def _anthropic(self, request: web.Request, path: str, body: bytes) -> web.StreamResponse:
        match request.method, path.strip("/").split("/"):
            case "POST", [""]:
                asked = None if self.large else json.loads(body)["requests"]
                return web.json_response(self.anthropic_batch(asked=asked))
            case "GET", [""]:
                return self._listed(request, "after_id")
            case "GET", [name] if name in self.batches:
                return web.json_response(self.batches[name])
            case "POST", [name, "cancel"] if name in self.batches:
                if self.batches[name]["processing_status"] == "ended":
                    return _anthropic_error(400, "it has ended")
                self.batches[name]["processing_status"] = "canceling"
                return web.json_response(self.batches[name])
            case "GET", [_, "results"] if self.large:
                return web.FileResponse(self.large)
            case "GET", [name, "results"] if name in self.files:
                return web.Response(body=self.files[name], content_type="application/x-jsonl")
        return _anthropic_error(404, f"no such thing: {path}")

    def anthropic_batch(self, requests: int = 2, **more: Any) -> dict[str, Any]:
        name = f"msgbatch_{len(self.batches)}"
        self.batches[name] = {
            "id": name,
            "type": "message_batch",
            "processing_status": "in_progress",
            "created_at": "2030-01-01T00:00:00Z",
            "expires_at": "2030-01-02T00:00:00Z",
            "request_counts": {"processing": requests, "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0},
            "results_url": None,
        }  # fmt: skip
        self.batches[name].update(more)
        return self.batches[name]

    def anthropic_ended(self, name: str, **counts: int) -> None:
        """End a batch with these numbers of requests of each kind."""
        self.batches[name].update(
            processing_status="ended",
            results_url="https://elsewhere.example/results",
            request_counts={"processing": 0, "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0}
            | counts,
        )


def _anthropic_error(status: int, message: str) -> web.Response:
    kind = "not_found_error" if status == 404 else "invalid_request_error"
    error = {"type": kind, "message": message}
    return web.json_response({"type": "error", "error": error, "request_id": None}, status=status)


def _openai_error(status: int, message: str) -> web.Response:
    return web.json_response({"error": {"message": message, "type": "invalid_request_error"}}, status=status)


def _gemini_error(code: int, message: str, status: str) -> web.Response:
    return web.json_response({"error": {"code": code, "message": message, "status": status}}, status=code)


@contextlib.asynccontextmanager
async def serving() -> AsyncIterator[Service]:
    """Serve on a free port of this machine; yield the Service."""
    service = Service()
    app = web.Application(client_max_size=1 << 28)
    app.router.add_route("*", "/{path:.*}", service.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.01, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    service.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield service
    finally:
        await runner.cleanup()
