"""The server of batches: one handler for every vendor's files and batches.

A vendor's service declares its paths, its operations, and how to write files, batches, pages and errors.
"""

from __future__ import annotations

import asyncio
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import AsyncIterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

from aiohttp import web

from edgen.simulator import faults as fault
from edgen.simulator.service.batches import BatchFormat, Creation, File, SimulatedBatch, Store, make_id
from edgen.simulator.service.dialect import JSON, MARK, BadCall, Dialect, Refusal, WireCall, encode

_BYTES = {**MARK, "Content-Type": "application/octet-stream"}

Operation = Literal["upload", "create", "list", "describe", "download", "cancel", "delete"]


class Place(NamedTuple):
    """A request for files or batches, and the parts of its path."""

    request: web.BaseRequest  # the request itself
    kind: str  # files, batches, or further kinds of a vendor
    id: str | None = None  # the item's id in the path; empty without one
    action: str | None = None  # the last part of the path; empty without one


class BatchFaults:
    """The batch faults of one server. The same call gets the same faults, in the order of its attempts."""

    def __init__(self, faults: fault.Faults) -> None:
        self._faults = faults
        self._calls: Counter[str] = Counter()
        self._lost: set[str] = set()

    def should_refuse(self, call: str) -> bool:
        """Count a call about batches; return whether it is refused as overloaded."""
        self._calls[call] += 1
        tries = self._calls[call] - 1
        return fault.choose_batch_fault(self._faults, "batch_503", call.encode(), tries) is not None

    async def lose(self, request: web.BaseRequest, token: str) -> None:
        """Withhold the answer to this creation if the fault strikes, once per token."""
        chosen = fault.choose_batch_fault(self._faults, "batch_create_lost", token.encode("utf-8", "replace"))
        if chosen is None or token in self._lost:
            return
        self._lost.add(token)
        await asyncio.sleep(chosen.seconds or 0)
        if request.transport is not None:
            request.transport.abort()

    def compute_delay(self, file: File) -> float:
        """Return the seconds by which a transfer is delayed."""
        chosen = fault.choose_batch_fault(self._faults, "batch_slow", file.id.encode())
        return 0.0 if chosen is None else chosen.seconds or 0.0


class BatchServer(BatchFormat):
    """A vendor's files and batches. Errors of a method are BadCalls."""

    dialect: ClassVar[Dialect]  # the vendor's dialect, for recognising clients and writing errors
    paths: ClassVar[Sequence[str]]  # patterns with groups `kind`, `id` and `action`
    operations: ClassVar[Mapping[str, Operation]]  # by method and path, as in `GET files/*/content`
    batch_id: ClassVar[str]  # prefix of batch ids
    file_id: ClassVar[str] = ""  # prefix of file ids
    # the answer to a deletion, besides the id; None: it is empty, as that to a cancellation
    deleted: ClassVar[Mapping[str, Any] | None] = None

    def __init__(self, store: Store, faults: BatchFaults) -> None:
        self.store = store
        self.faults = faults
        self._patterns = [re.compile(path) for path in self.paths]

    @abstractmethod
    async def read_creation(self, place: Place) -> Creation:
        """Read and check a request to create a batch."""

    async def upload(self, place: Place) -> web.Response | Refusal:
        """Receive a file, or a part of it."""
        raise NotImplementedError

    @abstractmethod
    def describe(self, item: File | SimulatedBatch, place: Place) -> dict[str, Any]:
        """Return a file or a batch in the API's format."""

    @abstractmethod
    def list_page(self, items: list[Any], place: Place) -> dict[str, Any]:
        """Return a page of the items, which are sorted newest first."""

    def check_operation(self, operation: Operation, item: File | SimulatedBatch) -> None:
        """Raise BadCall if the item's state does not allow the operation."""

    @abstractmethod
    def make_missing_error(self, place: Place) -> BadCall:
        """Return the error for a missing item, or for a path without such a method."""

    def make_error(self, problem: BadCall) -> Refusal:
        """Return an error caused by the caller."""
        return self.dialect.make_error(problem.status, str(problem), problem.field)

    def get_item_id(self, place: Place) -> str:
        """Return the id of the item at a path."""
        return place.id or ""

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse | Refusal | None:
        """Answer a request; None for a path that is not a batch path."""
        found = next(filter(None, (pattern.fullmatch(request.path) for pattern in self._patterns)), None)
        if found is None:
            return None
        if self.faults.should_refuse(f"{request.method} {request.path}"):
            return self.dialect.make_fault(fault.Fault("503", 1), WireCall((), ""))
        groups = found.groupdict()
        place = Place(request, groups["kind"], groups.get("id"), groups.get("action"))
        try:
            return await self._answer(place)
        except BadCall as problem:
            return self.make_error(problem)

    async def _answer(self, place: Place) -> web.StreamResponse | Refusal:
        parts = (place.kind, place.id and "*", place.action)
        match operation := self.operations.get(f"{place.request.method} {'/'.join(filter(None, parts))}"):
            case "upload":
                return await self.upload(place)
            case "create":
                return await self._create(place)
            case "list":
                return reply(self.list_page(self._list_items(place.kind), place))
        item = self._find_item(place)
        if item is None:
            raise self.make_missing_error(place)
        if operation is None:
            raise make_method_error(place)
        self.check_operation(operation, item)
        match operation, item:
            case "describe", _:
                return reply(self.describe(item, place))
            case "download", _:
                file = item if isinstance(item, File) else item.output
                assert file is not None  # as checked above
                return await self._send(place.request, file)
            case "delete", File():
                self.store.remove(item)
            case "delete", SimulatedBatch():
                await self.store.drop(item)
            case "cancel", SimulatedBatch():
                self.store.cancel(item)
        if self.deleted is None:
            return reply({})
        return reply({"id": item.id, **self.deleted} if operation == "delete" else self.describe(item, place))

    def _list_items(self, kind: str) -> list[Any]:
        if kind == "files":
            return [file for file in reversed(self.store.files.values()) if file.id.startswith(self.file_id)]
        return self.store.of(self)

    def _find_item(self, place: Place) -> File | SimulatedBatch | None:
        id_ = self.get_item_id(place)
        if place.kind == "files":
            return self.get_file(id_)
        batch = self.store.batches.get(id_)
        return batch if batch is not None and batch.format is self else None

    def get_file(self, id_: str) -> File | None:
        """Return one of the vendor's files."""
        return self.store.files.get(id_) if id_.startswith(self.file_id) else None

    async def _create(self, place: Place) -> web.Response:
        creation = await self.read_creation(place)
        batch = self.store.begin(self.batch_id + make_id(), self, creation)
        answer = reply(self.describe(batch, place))
        # From here on the batch exists, even if its client never receives the answer.
        await self.faults.lose(place.request, creation.token or batch.id)
        return answer

    async def _send(self, request: web.BaseRequest, file: File) -> web.StreamResponse:
        """Send a file: at once, or with a pause between its two halves."""
        if not (pause := self.faults.compute_delay(file)):
            return web.FileResponse(file.path, headers=_BYTES)
        content = file.path.read_bytes()
        half = len(content) // 2
        response = web.StreamResponse(headers={**_BYTES, "Content-Length": str(len(content))})
        await response.prepare(request)
        await response.write(content[:half])
        await asyncio.sleep(pause)
        await response.write(content[half:])
        await response.write_eof()
        return response


def reply(value: Any, headers: Mapping[str, str] | None = None) -> web.Response:
    """Return an answer in JSON."""
    return web.Response(body=encode(value), headers={**JSON, **(headers or {})})


def make_method_error(place: Place) -> BadCall:
    """Return the error for a method that a path does not support."""
    return BadCall(f"{place.request.path} does not take {place.request.method}.", status=405)


async def save(
    chunks: AsyncIterable[bytes], path: Path, most: int, too_large: BadCall, already: int = 0
) -> int:
    """Append chunks to a file after its `already` bytes. Return the number of new bytes. Raises `too_large`
    above `most` bytes in all; the caller removes the written part."""
    came = 0
    with path.open("ab") as into:
        async for chunk in chunks:
            came += len(chunk)
            if already + came > most:
                raise too_large
            into.write(chunk)
    return came


def read_limit(text: str) -> int | None:
    """Return the size of a page; None if it is not a number."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else None


def cut_page(items: Sequence[Any], after: str | None, limit: int) -> tuple[Sequence[Any], bool]:
    """Return at most `limit` items after the one with the id `after`, and whether there are more. An unknown
    id gives no items."""
    start = 0
    if after:
        start = next((place + 1 for place, item in enumerate(items) if item.id == after), len(items))
    return items[start : start + limit], start + limit < len(items)
