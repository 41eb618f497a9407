"""The requests of a round, written to the files that batches are sent from: one backend a file, whole or not at all."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Iterator
from pathlib import Path

import msgspec

from edgen.core.files import Part
from edgen.core.values import Request
from edgen.execution.batch.ownership import folder_of, own_file
from edgen.execution.client.budget import BudgetExhausted, Reservation
from edgen.execution.client.model_client import ModelClient
from edgen.execution.scheduler import Work
from edgen.providers.batches import BatchService, custom_id
from edgen.store.ledger import Batch

_PACE = 500  # requests that may be on their way to the ledger before it is waited for


class RequestWriter:
    """Writes one backend's requests of the round with this number. `folder` is a person's, None for the run's own;
    `holds` takes what is set aside of the budget for each batch, by its number."""

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
        self._folder = folder or folder_of(work.ledger.path)
        most = work.tasks.call_settings.batch.max_requests or service.limits.requests
        self._room = min(service.limits.requests, most)
        self._budget = work.budget
        self._holds = holds
        self.made: list[Batch] = []  # whole: ready to be sent, or written for somebody
        self._batch: Batch | None = None
        self._file: Part | None = None
        self._bytes = 0
        self._requests = 0

    async def add(self, request: Request, key: bytes) -> BudgetExhausted | None:
        """Write a request to the present file; what the budget says where it does not cover it. Raises CallError
        where it cannot be written at all."""
        line = self._service.line(custom_id(request.address, key), request) + b"\n"
        most = self._client.most(request)
        tokens, usd = sum(most), self._client.price_of(*most, batch=True)
        if self._requests >= self._room or self._bytes + len(line) > self._service.limits.bytes:
            await self.close()
        if self._budget is not None and not self._budget.has_room(tokens, usd):
            return self._budget.exhausted(tokens, usd)
        batch, file = await self._open()
        if self._budget is not None:
            self._holds[batch.number] = self._budget.take(tokens, usd, self._holds.get(batch.number))
        with _naming(self._path(batch)):
            file.write(line)
        self._ledger.out.put(batch.number, request.address, key, tokens, usd)
        self._bytes += len(line)
        self._requests += 1
        if self._requests % _PACE == 0:
            await self._ledger.flush()
        return None

    async def close(self) -> None:
        """Finish the present file, if there is one."""
        if self._batch is None or self._file is None:
            return
        file, batch = self._file, self._batch
        self._file = self._batch = None
        path, home = self._path(batch), self._ledger.path.parent
        with _naming(path):
            await asyncio.to_thread(_finish, file)
        place = path.relative_to(home) if path.is_relative_to(home) else path.absolute()
        batch = msgspec.structs.replace(
            batch, state="ready" if self._own else "written", requests=self._requests, file=str(place)
        )
        await self._ledger.out.note(batch)
        self._bytes = self._requests = 0
        self.made.append(batch)

    def abandon(self) -> None:
        """Leave an unfinished file away; its batch counts for nothing from the next start on."""
        if self._file is not None:
            self._file.discard()
            self._file = None

    async def _open(self) -> tuple[Batch, Part]:
        if self._batch is None or self._file is None:
            with _naming(self._folder):
                self._folder.mkdir(parents=True, exist_ok=True)
            self._batch = await self._ledger.out.begin(
                fingerprint=self._work.fingerprint,
                backend=self._client.name,
                token=new_token(self._work.tasks.call_settings.name),
                round_=self._number,
            )
            path = self._path(self._batch)
            if self._own:
                own_file(self._ledger.path, f"{self._folder.name}/{path.name}")
            with _naming(path):
                self._file = Part(path)
        return self._batch, self._file

    def _path(self, batch: Batch) -> Path:
        """Below the run's folder its number is name enough; a person's folder may hold files of other runs."""
        name = f"{batch.number:05d}" if self._own else batch.token
        return self._folder / f"{name}.{self._client.name}.jsonl"


def new_token(name: str) -> str:
    """What a batch is known by at the provider, and no other."""
    return f"edgen-{name[:40]}-{secrets.token_hex(8)}"


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """What the system says about a file, with its name: it may be on another disk than the run."""
    try:
        yield
    except OSError as problem:
        raise OSError(problem.errno, problem.strerror, str(path)) from None


def _finish(file: Part) -> None:
    try:
        file.close()
        file.publish()
    finally:
        file.discard()
