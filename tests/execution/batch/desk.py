"""A batch service without a network. It makes the faults that a test asks for, and works
correctly otherwise."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec

from edgen.core.errors import CallError, FailureKind
from edgen.core.values import MAX_ANSWER, Message, Reply, Request
from edgen.providers.batches import (
    BatchLimits,
    LineResult,
    NeverBegun,
    RemoteBatch,
    Sending,
    Suspects,
    mark_of,
)
from edgen.simulator.text import respond


class Line(msgspec.Struct):
    id: str
    messages: list[Message]
    seed: int


class Result(msgspec.Struct):
    id: str
    reply: Reply | None = None
    kind: str | None = None
    unanswered: bool = False


read_line = msgspec.json.Decoder(Line).decode
_result = msgspec.json.Decoder(Result).decode
encode = msgspec.json.encode

Trouble = Callable[[str], None]


class Desk:
    """Batches by their ids, in memory. `trouble` gets each step's name and may raise an error there; `judge`
    returns the outcome of a batch of this many lines and how many of them are answered; `kind` returns the
    failure that answers a line, None for a reply."""

    settles: float | None = None

    def __init__(self, *, requests: int = 50_000, size: int = 10**9, looks: int = 0) -> None:
        self.limits = BatchLimits(requests=requests, bytes=size)
        self.looks = looks  # looks at a batch before it has ended
        self.files: dict[str, bytes] = {}
        self.begun: dict[str, str] = {}  # id -> token
        self.content: dict[str, list[Line]] = {}
        self.seen: Counter[str] = Counter()
        self.steps: list[str] = []
        self.asked: Counter[int] = Counter()  # answered requests by seed
        self.cancelled: set[str] = set()
        self.trouble: Trouble = lambda step: None
        self.after: Trouble = lambda step: None
        self.judge: Callable[[str, int], tuple[str, int]] = lambda batch, lines: ("completed", lines)
        self.kind: Callable[[Line], FailureKind | None] = lambda line: None
        self.answer: Callable[[Line], Reply] = lambda line: respond(line.messages, seed=line.seed)
        self.extra: list[bytes] = []
        self.failure: CallError | None = None
        self.hangs: set[str] = set()  # steps that never end

    async def _step(self, name: str) -> None:
        self.steps.append(name)
        if name in self.hangs:
            await asyncio.Event().wait()
        self.trouble(name)

    def line(self, name: str, request: Request) -> bytes:
        return encode(Line(name, list(request.messages), request.seed))

    def read(self, line: bytes) -> LineResult | NeverBegun | None:
        try:
            result = _result(line)
        except msgspec.DecodeError:
            return None
        if result.unanswered:
            return NeverBegun(result.id, "expired")
        if result.kind is not None:
            return LineResult(result.id, failure=CallError(FailureKind(result.kind), "no"))
        return LineResult(result.id, reply=result.reply)

    async def upload(self, file: Path, token: str) -> str | None:
        await self._step("upload")
        name = f"file-{len(self.files)}"
        self.files[name] = file.read_bytes()
        return name

    def _file(self, sending: Sending) -> bytes:
        if sending.file_id not in self.files:
            raise CallError(FailureKind.BAD_REQUEST, "no such file")
        return self.files[sending.file_id]

    async def create(self, sending: Sending) -> RemoteBatch:
        await self._step("create")
        content = self._file(sending)
        number = f"batch-{len(self.begun)}"
        self.begun[number] = sending.token
        self.content[number] = [read_line(line) for line in content.splitlines()]
        assert len({line.id for line in self.content[number]}) == len(self.content[number])
        self.after("create")
        return RemoteBatch(id=number, state="working")

    async def find(self, sending: Sending) -> RemoteBatch | Suspects | None:
        await self._step("find")
        named = (number for number, token in self.begun.items() if token == sending.token)
        return next((RemoteBatch(id=number, state="working") for number in named), None)

    async def state(self, remote_id: str) -> RemoteBatch:
        await self._step("state")
        if remote_id not in self.begun:
            raise CallError(FailureKind.NOT_FOUND, "no such batch")
        self.seen[remote_id] += 1
        if self.seen[remote_id] <= self.looks and remote_id not in self.cancelled:
            return RemoteBatch(id=remote_id, state="working", done=0)
        outcome, done = self.judge(remote_id, len(self.content[remote_id]))
        files = (f"out-{remote_id}",) if outcome != "failed" or done else ()
        return RemoteBatch(
            id=remote_id, state="ended", outcome=outcome, files=files, done=done, failure=self.failure
        )

    async def cancel(self, remote_id: str) -> None:
        await self._step("cancel")
        self.cancelled.add(remote_id)

    async def forget(self, file_id: str) -> None:
        await self._step("forget")
        self.files.pop(file_id, None)

    async def download(self, file_id: str, to: Path, limit: int = MAX_ANSWER) -> None:
        await self._step("download")
        number = file_id.removeprefix("out-")
        lines = self.content[number]
        _, done = self.judge(number, len(lines))
        results = []
        for place, line in enumerate(lines):
            if place >= done:
                results.append(Result(line.id, unanswered=True))
            elif (kind := self.kind(line)) is not None:
                results.append(Result(line.id, kind=str(kind)))
            else:
                self.asked[line.seed] += 1
                results.append(Result(line.id, self.answer(line)))
        temporary = to.with_name(f".{to.name}.tmp")
        temporary.write_bytes(b"\n".join([*(encode(result) for result in results), *self.extra]) + b"\n")
        temporary.rename(to)
        await asyncio.sleep(0)

    async def aclose(self) -> None:
        return


class NamelessDesk(Desk):
    """A Desk whose batches have no token, and get their requests with the call that creates them. `late`:
    batches that its list does not show yet."""

    settles: float | None = 0.2

    def __init__(self, **settings: int) -> None:
        super().__init__(**settings)
        self.late: set[str] = set()
        self.listed: Counter[str] = Counter()

    async def upload(self, file: Path, token: str) -> str | None:
        await self._step("upload")
        return str(len(self.begun)) if self.begun else None

    def _file(self, sending: Sending) -> bytes:
        return sending.file.read_bytes()

    async def find(self, sending: Sending) -> RemoteBatch | Suspects | None:
        await self._step("find")
        working = []
        for number, lines in list(self.content.items())[int(sending.file_id or 0) :]:
            if number in sending.others or number in self.late or len(lines) != sending.requests:
                continue
            self.listed[number] += 1
            if self.listed[number] <= self.looks and number not in self.cancelled:
                working.append(number)
            elif lines[0].id.endswith(f"-{mark_of(sending.token)}"):
                return RemoteBatch(id=number, state="ended")
        return Suspects(tuple(working)) if working else None
