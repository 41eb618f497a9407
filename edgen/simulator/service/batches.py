"""Batches of the simulator's server: files, results and timing.

A batch's lines are answered evenly over `seconds` from its creation, and it expires after `window` seconds.
Cancellation or expiry freezes it at `min(1, elapsed / seconds)` of its answers. Vendors' formats are in
`openai_batches`, `gemini_batches` and `anthropic_batches`. Files are in a temporary folder that ends with the
server.
"""

from __future__ import annotations

import asyncio
import math
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeVar
from uuid import uuid4

from aiohttp import web

from edgen.core.values import Reply
from edgen.simulator import faults as fault
from edgen.simulator.answering import SimulatedModel
from edgen.simulator.service.wire import MARK, Refusal, WireCall

State = Literal[
    "validating", "failed", "in_progress", "finalizing", "completed", "expired", "cancelling", "cancelled"
]
ENDED: frozenset[State] = frozenset({"failed", "completed", "expired", "cancelled"})

_BYTES = {**MARK, "Content-Type": "application/octet-stream"}
_AT_ONCE = 32  # lines answered between two checks of the clock
_LEAST_WAIT = 0.02  # seconds
# Transport faults that break a connection, not a request: they do not occur in a batch.
_ONLINE = frozenset({"slow", "hang", "reset"})

T = TypeVar("T")


class BatchProblem(NamedTuple):
    """The reason why a batch is refused as a whole; `line` counts from 1, `param` is the invalid part."""

    code: str
    message: str
    line: int | None = None
    param: str | None = None


class Checked(NamedTuple):
    """The result of checking an input file: number of requests, model, problem."""

    total: int
    model: str
    problems: list[BatchProblem]


class BatchFormat(Protocol):
    """Reader and writer of one batch's files. Used from another thread."""

    errors_apart: bool  # failures are in a separate file
    partial: bool  # answers from before the end are available

    def check(self, file: Path) -> Checked:
        """Check an input file before anything is answered."""

    def read(self, line: bytes) -> tuple[str, WireCall | Refusal]:
        """Return the name and request of a checked line, or its error if invalid."""

    def make_fault(self, struck: fault.Fault, call: WireCall) -> Refusal:
        """Return a transport fault in the vendor's online wording."""

    def encode_answer(self, name: str, call: WireCall, replies: list[Reply], number: str) -> bytes:
        """Return a line of a result file, `number` being 24 hex digits that identify the request."""

    def encode_refusal(self, name: str, refusal: Refusal) -> bytes:
        """Return a line for a refused request."""

    def make_result_id(self) -> str:
        """Return a new id for a result file."""

    def encode_unanswered(self, name: str, state: State) -> bytes:
        """Return a line for a request not reached before its batch was `cancelled` or `expired`."""


@dataclass(slots=True, eq=False)
class File:
    """A file that a client uploaded or a batch wrote."""

    id: str  # the service's
    path: Path  # of its content
    name: str  # given by the client
    purpose: str  # as the client states it
    size: int  # bytes
    created: float  # seconds since the epoch
    mime: str = ""  # media type; empty if not stated


@dataclass(slots=True, eq=False)
class SimulatedBatch:
    """A batch and its state."""

    id: str  # the service's
    format: BatchFormat  # the vendor's
    source: Path  # path of the requests
    facts: dict[str, Any]  # the vendor format's notes of its creation
    seconds: float  # over which its requests are answered
    window: float  # seconds until it expires
    started: float  # by the loop's clock
    created: float = field(default_factory=time.time)  # seconds since the epoch
    state: State = "validating"  # present state
    stamps: dict[State, float] = field(default_factory=dict)  # times of states, by the wall clock
    problems: list[BatchProblem] = field(default_factory=list)  # of its requests' form
    model: str = ""  # of its requests
    total: int = 0  # requests of the batch
    completed: int = 0  # answered requests
    failed: int = 0  # failed requests
    offset: int = 0  # of the next line in `source`
    output: File | None = None  # file of the answers; None before the end
    errors: File | None = None  # file of the failed requests; None without one
    cancelled: float = math.inf  # moment of its cancellation, by the loop's clock
    stirred: asyncio.Event = field(default_factory=asyncio.Event)  # set when it is cancelled

    @property
    def done(self) -> int:
        return self.completed + self.failed

    @property
    def frozen(self) -> float:
        """The moment, by the loop's clock, from which nothing more is answered."""
        return min(self.started + self.window, self.cancelled)

    def count_due(self, now: float) -> int:
        """Return how many lines are due by now."""
        if not self.seconds > 0:
            return self.total
        share = min(1.0, (min(now, self.frozen) - self.started) / self.seconds)
        return int(self.total * share + 1e-6)  # half of 40 is 20, despite rounding of the clock

    def wait(self, now: float) -> float:
        """Return the seconds until the next step."""
        line = self.started + self.seconds * (self.done + 1) / self.total
        return max(_LEAST_WAIT, min(line, self.frozen) - now)

    def come_to(self, state: State) -> None:
        """Note a new state of the batch. A batch being cancelled stays so until its end."""
        if self.state != "cancelling" or state in ENDED:
            self.state = state
            self.stamps[state] = time.time()


class Store:
    """The files and batches of one server. Call every method on the loop."""

    def __init__(self, answering: SimulatedModel, seconds: float, window: float) -> None:
        self.files: dict[str, File] = {}
        self.batches: dict[str, SimulatedBatch] = {}
        self._answering = answering
        self._seconds = seconds
        self._window = window
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._tasks: dict[str, asyncio.Task[None]] = {}
        # One thread: batches share a processor anyway, and a second would only slow the server.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="batches")
        self._calls: Counter[str] = Counter()
        self._lost: set[str] = set()

    # -- files

    def choose_place(self) -> Path:
        """Return an unused path in a folder that is removed with the server."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="edgen-simulator-", ignore_cleanup_errors=True)
        return Path(self._folder.name) / uuid4().hex

    def add(self, id_: str, path: Path, name: str, purpose: str, mime: str = "") -> File:
        """Register the file at `path`."""
        made = File(id_, path, name, purpose, path.stat().st_size, time.time(), mime)
        self.files[id_] = made
        return made

    def remove(self, id_: str) -> bool:
        """Delete a file; return whether it existed. A begun batch keeps its input."""
        gone = self.files.pop(id_, None)
        if gone is not None:
            gone.path.unlink(missing_ok=True)
        return gone is not None

    # -- batches

    def begin(
        self, id_: str, format_: BatchFormat, source: File | bytes, facts: dict[str, Any]
    ) -> SimulatedBatch:
        """Begin a batch over a file, or over lines. Returns at once: it is validating."""
        path = self.choose_place()
        if isinstance(source, File):
            path.hardlink_to(source.path)
        else:
            path.write_bytes(source)
        now = asyncio.get_running_loop().time()
        made = SimulatedBatch(id_, format_, path, facts, self._seconds, self._window, now)
        self.batches[id_] = made
        self._tasks[id_] = asyncio.create_task(self._work(made))
        return made

    def of(self, kind: type[BatchFormat]) -> list[SimulatedBatch]:
        """Return the batches in formats of a kind, newest first."""
        return [batch for batch in reversed(self.batches.values()) if isinstance(batch.format, kind)]

    def cancel(self, batch: SimulatedBatch) -> None:
        """Stop answering a batch; an ended one is unchanged."""
        if batch.state in ENDED or batch.state == "cancelling":
            return
        batch.cancelled = asyncio.get_running_loop().time()
        batch.come_to("cancelling")
        batch.stirred.set()

    async def drop(self, batch: SimulatedBatch) -> None:
        """Forget a batch completely."""
        del self.batches[batch.id]
        await self._end(self._tasks.pop(batch.id))

    async def aclose(self) -> None:
        """Stop all work and remove the files."""
        for task in self._tasks.values():
            await self._end(task)
        self._thread.shutdown(cancel_futures=True)
        if self._folder is not None:
            self._folder.cleanup()

    @staticmethod
    async def _end(task: asyncio.Task[None]) -> None:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    # -- faults

    def should_refuse(self, call: str) -> bool:
        """Count a call about batches; return whether it is refused as overloaded."""
        if not self._answering.faults.batch:
            return False
        self._calls[call] += 1
        tries = self._calls[call] - 1
        return fault.choose_batch_fault(self._answering.faults, "batch_503", call.encode(), tries) is not None

    async def lose(self, request: web.BaseRequest, token: str) -> None:
        """Withhold the answer to this creation if the fault strikes: once per token."""
        struck = fault.choose_batch_fault(
            self._answering.faults, "batch_create_lost", token.encode("utf-8", "replace")
        )
        if struck is None or token in self._lost:
            return
        self._lost.add(token)
        await asyncio.sleep(struck.seconds or 0)
        if request.transport is not None:
            request.transport.abort()

    def compute_delay(self, file: File) -> float:
        """Return the seconds by which a transfer is delayed."""
        struck = fault.choose_batch_fault(self._answering.faults, "batch_slow", file.id.encode())
        return 0.0 if struck is None else struck.seconds or 0.0

    async def send(self, request: web.BaseRequest, file: File) -> web.StreamResponse:
        """Send a file: at once, or with a pause between its two halves."""
        if not (pause := self.compute_delay(file)):
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

    # -- work

    async def _work(self, batch: SimulatedBatch) -> None:
        try:
            checked = await self._run_in_thread(lambda: batch.format.check(batch.source))
            batch.total, batch.model, batch.problems = checked
            if not batch.problems:
                batch.come_to("in_progress")
                await self._answer(batch)
                batch.come_to("finalizing")
                end: State = _find_end(batch)
                if end != "completed" and batch.format.partial:
                    await self._run_in_thread(lambda: self._pass_over(batch, end))
                self._close(batch, end)
                batch.come_to(end)
        except OSError as problem:
            batch.problems = [BatchProblem("server_error", f"The simulator's disk failed: {problem}.")]
        finally:
            batch.source.unlink(missing_ok=True)
        if batch.problems:
            batch.come_to("failed")

    async def _answer(self, batch: SimulatedBatch) -> None:
        """Answer lines as they become due, until the batch is complete or frozen."""
        loop = asyncio.get_running_loop()
        while batch.done < batch.total:
            now = loop.time()
            due = min(batch.count_due(now), batch.done + _AT_ONCE)
            if batch.done < due:
                lines = due - batch.done
                await self._run_in_thread(lambda lines=lines: self._answer_lines(batch, lines))  # type: ignore[misc]
            elif now >= batch.frozen:
                return
            else:
                with suppress(TimeoutError):
                    await asyncio.wait_for(batch.stirred.wait(), batch.wait(now))

    async def _run_in_thread(self, work: Callable[[], T]) -> T:
        """Run work in the thread, so that the server keeps answering."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _answer_lines(self, batch: SimulatedBatch, count: int) -> None:
        with batch.source.open("rb") as source:
            source.seek(batch.offset)
            lines = [source.readline() for _ in range(count)]
            batch.offset = source.tell()
        made: dict[bool, list[bytes]] = {True: [], False: []}
        # Providers promise no order, so clients must not rely on one.
        for line in reversed(lines):
            answered, result = self._answer_line(batch.format, line)
            made[answered].append(result)
        _append(self._write_results(batch, errors=False), made[True])
        _append(self._write_results(batch, errors=True), made[False])
        batch.completed += len(made[True])
        batch.failed += len(made[False])

    def _answer_line(self, format_: BatchFormat, line: bytes) -> tuple[bool, bytes]:
        """Return whether a request was answered, and its line in the results."""
        name, call = format_.read(line)
        if isinstance(call, Refusal):
            return False, format_.encode_refusal(name, call)
        key = self._answering.make_key(call)
        struck = self._answering.strike(key)
        if struck is not None and struck.name not in _ONLINE:
            return False, format_.encode_refusal(name, format_.make_fault(struck, call))
        return True, format_.encode_answer(
            name, call, self._answering.make_replies(call, key), key.hex()[:24]
        )

    def _write_results(self, batch: SimulatedBatch, *, errors: bool) -> Path:
        suffix = ".errors" if errors and batch.format.errors_apart else ".output"
        return batch.source.with_name(batch.source.name + suffix)

    def _pass_over(self, batch: SimulatedBatch, end: State) -> None:
        """Write the remaining requests as not reached."""
        path = self._write_results(batch, errors=True)
        with batch.source.open("rb") as source, path.open("ab") as into:
            source.seek(batch.offset)
            into.writelines(
                batch.format.encode_unanswered(batch.format.read(line)[0], end) for line in source
            )

    def _close(self, batch: SimulatedBatch, end: State) -> None:
        """Make the result files available to clients."""
        if end == "completed" or batch.format.partial:
            batch.output = self._keep(batch, "output", errors=False)
            if batch.format.errors_apart:
                batch.errors = self._keep(batch, "error", errors=True)

    def _keep(self, batch: SimulatedBatch, kind: str, *, errors: bool) -> File | None:
        path = self._write_results(batch, errors=errors)
        if not path.exists():
            return None
        return self.add(batch.format.make_result_id(), path, f"{batch.id}_{kind}.jsonl", "batch_output")


def _find_end(batch: SimulatedBatch) -> State:
    if batch.state == "cancelling":
        return "cancelled"
    return "completed" if batch.done == batch.total else "expired"


def _append(path: Path, lines: list[bytes]) -> None:
    if lines:
        with path.open("ab") as into:
            into.writelines(lines)
