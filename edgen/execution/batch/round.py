"""One round of batches: run every pending task from the ledger to its first unanswered request.

A fully answered task is settled. Otherwise its request is written to the batch file of its backend. A file is
published complete or not at all.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import sys
from array import array
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from edgen.core.errors import CallError, limit_attempts
from edgen.core.files import Part, name_file_in_errors, remove_leftovers_for
from edgen.core.system import run_in_thread
from edgen.core.values import Reply, Request, TaskId
from edgen.execution.batch.ownership import find_batch_file, find_batch_folder
from edgen.execution.client.budget import BudgetExhausted, Reservation
from edgen.execution.client.model_client import ModelClient
from edgen.execution.rollout import OutcomeRecorder, Rollout, run_task
from edgen.execution.scheduler import Work
from edgen.providers.batches import BatchService, make_custom_id, mark_of
from edgen.store.ledger import OPEN, NotedBatch

_BREATH = 50  # tasks run before others get their turn
_PACE = 500  # requests queued for the ledger between two flushes


class WaitingTasks:
    """A compact list of (scenario, task) of all waiting tasks: there may be as many as the run has
    conversations."""

    def __init__(self, units: Iterable[tuple[int, TaskId]]) -> None:
        self._scenarios = array("q")
        self._tasks: list[TaskId] = []
        for scenario, task in units:
            self._scenarios.append(scenario)
            # Task names repeat with every scenario: one object per name saves memory.
            self._tasks.append(sys.intern(task) if isinstance(task, str) else task)

    def __len__(self) -> int:
        return len(self._tasks)

    def __iter__(self) -> Iterator[tuple[int, TaskId]]:
        return zip(self._scenarios, self._tasks, strict=True)

    def __setitem__(self, place: int, unit: tuple[int, TaskId]) -> None:
        self._scenarios[place], self._tasks[place] = unit

    def cut(self, count: int) -> None:
        """Keep only the first `count`."""
        del self._scenarios[count:], self._tasks[count:]


class RoundPlanner:
    """A planner of one round. `services`, `folder`, `holds`: see RequestWriter. `fresh`: this start fetched
    the last answers. `short`: the budget's error, if it did not cover a request. `asked`: the number of
    requests written."""

    def __init__(
        self,
        work: Work,
        recorder: OutcomeRecorder,
        number: int,
        services: Mapping[str, BatchService],
        folder: Path | None,
        holds: dict[int, Reservation],
        *,
        fresh: bool,
    ) -> None:
        self._fresh = fresh
        self.short: BudgetExhausted | None = None
        self.asked = 0
        self._work = work
        self._recorder = recorder
        self._number, self._services, self._folder, self._holds = number, services, folder, holds
        self._shares = work.tasks.sharers > 1
        self._attempts = work.tasks.call_settings.limits.attempts
        self._open = bool(work.ledger.list_batches(*OPEN))
        self._lowered: set[str] = set()  # backends that switched to another way of forms in this round
        self._shared: set[bytes] = set()  # requests of this round that several tasks share
        self._writers: dict[str, RequestWriter] = {}

    async def run(self, pending: WaitingTasks) -> list[NotedBatch]:
        """Run all pending tasks; `pending` keeps the tasks that wait for an answer. Return the new batches,
        ready to be sent."""
        left = 0
        try:
            for count, unit in enumerate(pending):
                if count % _BREATH == 0:
                    await asyncio.sleep(0)
                if not await run_task(self._work, self._recorder, unit, self._ask, fresh=self._fresh):
                    pending[left] = unit
                    left += 1
            for writer in self._writers.values():
                await writer.close()
        finally:
            for writer in self._writers.values():
                writer.abandon()
        pending.cut(left)
        await self._work.ledger.flush()
        return [batch for writer in self._writers.values() for batch in writer.made]

    async def _ask(self, rollout: Rollout, request: Request) -> Reply | None:
        """Return the answer to another task's equal request; else add the request to this round and return
        None. Raises CallError if it failed permanently."""
        ledger, key = self._work.ledger, rollout.key
        if self._shares and (reply := ledger.read_reply(request.address, key)) is not None:
            self._work.counts.replayed += 1
            return reply
        tries, failure = ledger.out.read_failure(request.address, key) or (0, None)
        if (
            failure is not None
            and tries >= limit_attempts(failure.kind, self._attempts)
            and not self._lower(rollout.client, request, failure)
        ):
            raise failure
        if key in self._shared or (self._open and ledger.out.has(request.address, key)):
            return None
        await self._write(rollout.client, request, key, again=tries > 0)
        return None

    def _lower(self, client: ModelClient, request: Request, failure: CallError) -> bool:
        """Return whether to send a refused request again, with less of its form. A backend's way changes at
        most once a round, for all refused requests together."""
        if client.name not in self._lowered and client.form_support.use_next_form(request, failure):
            self._lowered.add(client.name)
        return client.name in self._lowered and bool(request.prose)

    async def _write(self, client: ModelClient, request: Request, key: bytes, *, again: bool) -> None:
        """Write a request to the file of its backend. Raises CallError if it cannot be written."""
        writer = self._writers.get(client.name)
        if writer is None:
            service = self._services[client.name]
            writer = RequestWriter(self._work, service, client, self._number, self._folder, self._holds)
            self._writers[client.name] = writer
        refused = await writer.add(request, key)
        if refused is not None:
            self.short = refused
            return
        self.asked += 1
        self._work.counts.retried += again
        if self._shares:
            self._shared.add(key)


class RequestWriter:
    """A writer of one backend's requests in a round. `folder`: the user's; None: the run's own. `holds`: gets
    the budget reserved for each batch, by number."""

    def __init__(
        self,
        work: Work,
        service: BatchService,
        client: ModelClient,
        number: int,
        folder: Path | None,
        holds: dict[int, Reservation],
    ) -> None:
        self._work = work
        self._ledger = work.ledger
        self._service = service
        self._client = client
        self._number = number
        self._own = folder is None
        self._folder = folder or find_batch_folder(work.ledger.path)
        most = work.tasks.call_settings.batch.max_requests or service.limits.requests
        self._room = min(service.limits.requests, most)
        self._budget = work.budget
        self._holds = holds
        self.made: list[NotedBatch] = []  # complete batches: ready to be sent, or written for the user
        self._batch: NotedBatch | None = None
        self._token = make_token(work.tasks.call_settings.name)  # token of the present or next batch
        self._file: Part | None = None
        self._bytes = 0
        self._requests = 0

    async def add(self, request: Request, key: bytes) -> BudgetExhausted | None:
        """Write a request to the present file. Return the error if the budget does not cover the request.
        Raises CallError if the service's format cannot hold it."""
        line = self._render_line(request, key)
        most = self._client.charges.estimate_at_most(request)
        tokens, usd = sum(most), self._client.charges.compute_most_cost(*most, batch=True)
        if self._requests >= self._room or self._bytes + len(line) > self._service.limits.bytes:
            await self.close()
            line = self._render_line(request, key)
        if self._budget is not None and not self._budget.has_room(tokens, usd):
            return self._budget.make_exhausted_error(tokens, usd)
        batch, file = await self._open()
        if self._budget is not None:
            self._holds[batch.number] = self._budget.take(tokens, usd, self._holds.get(batch.number))
        with name_file_in_errors(self._find_path(batch)):
            file.write(line)
        self._ledger.out.put(batch.number, request.address, key, tokens, usd)
        self._bytes += len(line)
        self._requests += 1
        if self._requests % _PACE == 0:
            await self._ledger.flush()
        return None

    def _render_line(self, request: Request, key: bytes) -> bytes:
        sent = self._client.form_support.adapt_request(request)
        mark = "" if self._service.settles is None else mark_of(self._token)
        return self._service.line(make_custom_id(request.address, key, mark), sent) + b"\n"

    async def close(self) -> None:
        """Complete the present file, if there is one."""
        if self._batch is None or self._file is None:
            return
        file, batch = self._file, self._batch
        self._file = self._batch = None
        path, home = self._find_path(batch), self._ledger.path.parent
        with name_file_in_errors(path):
            await run_in_thread(_finish, file)
        place = path.relative_to(home) if path.is_relative_to(home) else path.absolute()
        batch = msgspec.structs.replace(
            batch, state="ready" if self._own else "written", requests=self._requests, file=str(place)
        )
        await self._ledger.out.note(batch)
        self._bytes = self._requests = 0
        self._token = make_token(self._work.tasks.call_settings.name)
        self.made.append(batch)

    def abandon(self) -> None:
        """Discard an incomplete file; later starts ignore its batch."""
        if self._file is not None:
            self._file.discard()
            self._file = None

    async def _open(self) -> tuple[NotedBatch, Part]:
        if self._batch is None or self._file is None:
            with name_file_in_errors(self._folder):
                self._folder.mkdir(parents=True, exist_ok=True)
            if not self._own:  # leftovers of killed starts have names that do not recur
                remove_leftovers_for(self._folder, _is_request_file)
            self._batch = await self._ledger.out.begin(
                fingerprint=self._work.fingerprint,
                backend=self._client.name,
                token=self._token,
                round_=self._number,
            )
            path = self._find_path(self._batch)
            if self._own:
                find_batch_file(self._ledger.path, f"{self._folder.name}/{path.name}")
            with name_file_in_errors(path):
                self._file = Part(path)
        return self._batch, self._file

    def _find_path(self, batch: NotedBatch) -> Path:
        """Return the path of a batch's file, named by its number; by its token in a user's folder, which may
        hold files of several runs."""
        name = f"{batch.number:05d}" if self._own else batch.token
        return self._folder / f"{name}.{self._client.name}.jsonl"


def make_token(name: str) -> str:
    """Return a unique token that identifies a batch at the provider."""
    return f"edgen-{name[:40]}-{secrets.token_hex(8)}"


def _is_request_file(name: str) -> bool:
    """Return whether a file has the name of a request file for the user to send."""
    return re.fullmatch(r"edgen-.*-[0-9a-f]{16}\..+\.jsonl", name) is not None


def _finish(file: Part) -> None:
    try:
        file.close()
        file.publish()
    finally:
        file.discard()
