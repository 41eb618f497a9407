"""Batches of the simulator's server: files, results and timing.

A batch's lines are answered evenly over `seconds` from its creation, and it expires after `window` seconds.
Cancellation or expiry freezes it at `min(1, elapsed / seconds)` of its answers. Files are in a temporary
folder that ends with the server. `openai_batches`, `gemini_batches` and `anthropic_batches` have the vendors'
formats.
"""

from __future__ import annotations

import asyncio
import math
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar
from uuid import uuid4

import msgspec

from edgen.simulator.service.answering import SimulatedModel
from edgen.simulator.service.dialect import BadCall, Dialect, Refusal, WireCall

State = Literal[
    "validating", "failed", "in_progress", "finalizing", "completed", "expired", "cancelling", "cancelled"
]
ENDED: frozenset[State] = frozenset({"failed", "completed", "expired", "cancelled"})

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
    """The result of checking an input file: number of requests, model, and problems."""

    total: int
    model: str
    problems: list[BatchProblem]


class BatchFormat(ABC):
    """Reader and writer of a vendor's batch files. Used from another thread."""

    errors_apart: ClassVar[bool] = False  # failed requests have a separate file
    partial: ClassVar[bool] = True  # answers are available before the end
    line: ClassVar[msgspec.json.Decoder[Any]]  # a line of the input: `name`, and the request as `body`
    no_stream: ClassVar[str] = ""  # the error for a streamed request
    result_id: ClassVar[str]  # prefix of result file ids

    @abstractmethod
    def check(self, batch: SimulatedBatch, lines: Iterable[bytes]) -> Checked:
        """Check the input before anything is answered."""

    def read(self, batch: SimulatedBatch, line: bytes) -> tuple[str, WireCall | Refusal]:
        """Return the name and request of a checked line, or its error if it is invalid."""
        value = self.line.decode(line)
        try:
            call = batch.dialect.read(bytes(value.body), batch.model)
            if call.stream:
                raise BadCall(self.no_stream)
        except BadCall as problem:
            return value.name, batch.dialect.make_error(400, str(problem), problem.field)
        return value.name, call

    @abstractmethod
    def render_answer(self, name: str, body: bytes) -> bytes:
        """Return a line of a result file with an answer."""

    @abstractmethod
    def render_refusal(self, name: str, refusal: Refusal) -> bytes:
        """Return a line for a refused request."""

    @abstractmethod
    def render_unanswered(self, name: str, state: State) -> bytes:
        """Return a line for a request that was not answered before its batch was `cancelled` or `expired`."""


@dataclass(slots=True, eq=False)
class File:
    """A file that a client uploaded or a batch wrote."""

    id: str  # id of the file at the service
    path: Path  # path of the content
    name: str  # given by the client
    purpose: str  # as the client states it
    size: int  # bytes
    created: float  # seconds since the epoch
    mime: str = ""  # media type; empty if not stated


@dataclass(slots=True, eq=False)
class SimulatedBatch:
    """A batch and its state."""

    id: str  # id of the batch at the service
    format: BatchFormat  # the vendor's format
    dialect: Dialect  # dialect of its requests
    source: Path  # path of the requests
    model: str  # model of its requests; empty until they are checked, if they name it
    facts: dict[str, Any]  # the vendor format's notes about its creation
    seconds: float  # seconds over which its requests are answered
    window: float  # seconds until it expires
    started: float  # time by the loop's clock
    created: float = field(default_factory=time.time)  # seconds since the epoch
    state: State = "validating"  # present state
    stamps: dict[State, float] = field(default_factory=dict)  # times of states, by the wall clock
    problems: list[BatchProblem] = field(default_factory=list)  # problems of its requests' form
    total: int = 0  # requests of the batch
    completed: int = 0  # answered requests
    failed: int = 0  # failed requests
    offset: int = 0  # place of the next line in `source`
    output: File | None = None  # file of the answers; None before the end
    errors: File | None = None  # file of the failed requests; None without one
    cancelled: float = math.inf  # moment of its cancellation, by the loop's clock
    changed: asyncio.Event = field(default_factory=asyncio.Event)  # set when it is cancelled

    @property
    def done(self) -> int:
        return self.completed + self.failed

    @property
    def frozen(self) -> float:
        """The time, by the loop's clock, after which nothing more is answered."""
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

    def set_state(self, state: State) -> None:
        """Set a new state of the batch. A batch that is being cancelled stays in this state until its end."""
        if self.state != "cancelling" or state in ENDED:
            self.state = state
            self.stamps[state] = time.time()


class Creation(NamedTuple):
    """A batch to begin."""

    source: File | bytes  # its requests, as a file or as lines
    dialect: Dialect  # dialect of its requests
    facts: dict[str, Any]  # the vendor format's notes
    token: str | None = None  # identifies the creation; None: the batch's id
    model: str = ""  # model of its requests, if they do not name it


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

    def remove(self, file: File) -> None:
        """Delete a file. A begun batch keeps its input."""
        del self.files[file.id]
        file.path.unlink(missing_ok=True)

    # -- batches

    def begin(self, id_: str, format_: BatchFormat, creation: Creation) -> SimulatedBatch:
        """Begin a batch. Returns at once, while the batch is validating."""
        path = self.choose_place()
        if isinstance(creation.source, File):
            path.hardlink_to(creation.source.path)
        else:
            path.write_bytes(creation.source)
        now = asyncio.get_running_loop().time()
        made = SimulatedBatch(
            id_,
            format_,
            creation.dialect,
            path,
            creation.model,
            creation.facts,
            self._seconds,
            self._window,
            now,
        )
        self.batches[id_] = made
        self._tasks[id_] = asyncio.create_task(self._work(made))
        return made

    def of(self, format_: BatchFormat) -> list[SimulatedBatch]:
        """Return the batches in a format, newest first."""
        return [batch for batch in reversed(self.batches.values()) if batch.format is format_]

    def cancel(self, batch: SimulatedBatch) -> None:
        """Stop answering a batch; an ended one is unchanged."""
        if batch.state in ENDED or batch.state == "cancelling":
            return
        batch.cancelled = asyncio.get_running_loop().time()
        batch.set_state("cancelling")
        batch.changed.set()

    async def drop(self, batch: SimulatedBatch) -> None:
        """Remove a batch completely."""
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

    # -- work

    async def _work(self, batch: SimulatedBatch) -> None:
        try:
            batch.total, batch.model, batch.problems = await self._run_in_thread(lambda: _check(batch))
            if not batch.problems:
                batch.set_state("in_progress")
                await self._answer(batch)
                batch.set_state("finalizing")
                end: State = _find_end(batch)
                if end != "completed" and batch.format.partial:
                    await self._run_in_thread(lambda: self._pass_over(batch, end))
                self._close(batch, end)
                batch.set_state(end)
        except OSError as problem:
            batch.problems = [BatchProblem("server_error", f"The simulator's disk failed: {problem}.")]
        finally:
            batch.source.unlink(missing_ok=True)
        if batch.problems:
            batch.set_state("failed")

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
                    await asyncio.wait_for(batch.changed.wait(), batch.wait(now))

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
            answered, result = self._answer_line(batch, line)
            made[answered].append(result)
        _append(self._write_results(batch, errors=False), made[True])
        _append(self._write_results(batch, errors=True), made[False])
        batch.completed += len(made[True])
        batch.failed += len(made[False])

    def _answer_line(self, batch: SimulatedBatch, line: bytes) -> tuple[bool, bytes]:
        """Return whether a request was answered, and its line in the results."""
        name, call = batch.format.read(batch, line)
        if isinstance(call, Refusal):
            return False, batch.format.render_refusal(name, call)
        key = self._answering.make_key(call)
        chosen = self._answering.choose_fault(key)
        if chosen is not None and chosen.name not in _ONLINE:
            return False, batch.format.render_refusal(name, batch.dialect.make_fault(chosen, call))
        replies = self._answering.make_replies(call, key)
        return True, batch.format.render_answer(name, batch.dialect.answer(call, replies, key.hex()[:24]))

    def _write_results(self, batch: SimulatedBatch, *, errors: bool) -> Path:
        suffix = ".errors" if errors and batch.format.errors_apart else ".output"
        return batch.source.with_name(batch.source.name + suffix)

    def _pass_over(self, batch: SimulatedBatch, end: State) -> None:
        """Write the remaining requests as unanswered."""
        path = self._write_results(batch, errors=True)
        with batch.source.open("rb") as source, path.open("ab") as into:
            source.seek(batch.offset)
            into.writelines(
                batch.format.render_unanswered(batch.format.read(batch, line)[0], end) for line in source
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
        return self.add(batch.format.result_id + make_id(), path, f"{batch.id}_{kind}.jsonl", "batch_output")


def make_id() -> str:
    """Return 24 unique hex digits."""
    return uuid4().hex[:24]


def _check(batch: SimulatedBatch) -> Checked:
    with batch.source.open("rb") as lines:
        return batch.format.check(batch, lines)


def _find_end(batch: SimulatedBatch) -> State:
    if batch.state == "cancelling":
        return "cancelled"
    return "completed" if batch.done == batch.total else "expired"


def _append(path: Path, lines: list[bytes]) -> None:
    if lines:
        with path.open("ab") as into:
            into.writelines(lines)
