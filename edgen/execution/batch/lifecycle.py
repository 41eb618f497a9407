"""Lifecycle of a batch: send it exactly once, wait for it, download and read its results.

ready -> sending -> sent (-> cancelling) -> read        dropped, if the provider refused all of it

Each step is in the ledger before the next begins, so after a kill at any moment the next process resumes.
Only a kill between the create request and its answer leaves a doubt. Then edgen searches the provider's list
of batches. If the batch is missing, edgen deletes the uploaded file, so that a request still under way cannot
create a batch, and sends everything again. Some services cannot name batches and take no file beforehand
(`BatchService.settles`). There, edgen watches possible batches until it can identify its own, or the create
request can no longer succeed.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from edgen.config import CallSettings
from edgen.core.digest import compute_sha256
from edgen.core.errors import RETRYABLE, CallError, FailureKind, ProviderError, RunError
from edgen.core.text import quantity, seconds
from edgen.core.values import MAX_ANSWER
from edgen.execution.batch.ownership import find_batch_file
from edgen.execution.batch.results import ResultCounts, check_lines, read_results
from edgen.execution.batch.round import make_token
from edgen.execution.batch.service_calls import TRANSFER, ServiceCalls, make_service_error
from edgen.execution.failure_texts import GO_ON, describe_failure
from edgen.execution.progress import Events
from edgen.providers.batches import (
    BatchService,
    OversizedError,
    RemoteBatch,
    Sending,
    Suspects,
    is_id,
)
from edgen.store.ledger import Ledger, NotedBatch
from edgen.store.ledger.checked_reader import read_wall_time

_FIRST_LOOK = 1.0  # seconds before the first check of a batch
_LONGER = 1.5  # factor for each further pause, up to batch.poll
_MEAN = 1 << 20  # maximum mean bytes of an answer in a file


class BatchLifecycle:
    """The batches of one ledger. `on_results` gets the batch, path and counts of each result file, once it is
    read. `end` cancels all batches; their finished answers are still read."""

    def __init__(
        self,
        settings: CallSettings,
        ledger: Ledger,
        services: Mapping[str, BatchService],
        events: Events,
        on_results: Callable[[NotedBatch, Path, ResultCounts], None],
    ) -> None:
        self._ledger = ledger
        self._services = services
        self._events = events
        self._on_results = on_results
        self._settings = settings
        self._poll = seconds(settings.batch.poll)
        self._calls = ServiceCalls(settings.limits, events)
        self._ending = asyncio.Event()
        self._uploads = asyncio.Semaphore(2)
        self._working: set[int] = set()  # numbers of batches in progress at the provider
        # By batch: number of refusals in a row, and loop's time of the first.
        self._no_room: dict[int, tuple[int, float]] = {}
        self.lost_tokens = 0  # tokens charged for requests that stay unanswered
        self.lost_usd = 0.0

    def end(self) -> None:
        """Cancel outstanding batches."""
        self._ending.set()

    async def complete(self, batch: NotedBatch) -> NotedBatch:
        """Carry a batch from any state to its end, and return it.

        Raises ProviderError if the provider refuses it, has lost it, or does not answer.
        """
        while True:
            if self._ending.is_set() and batch.state == "ready":
                return await self.drop(batch, "given up before it was sent")
            if batch.state == "ready":
                batch = await self._send(batch)
            elif batch.state == "sending":
                batch = await self._recover(batch)
            elif batch.state in ("sent", "cancelling"):
                batch = await self._wait(batch)
            else:
                return batch

    async def drop(self, batch: NotedBatch, why: str, *, charged: bool = False) -> NotedBatch:
        """Give a batch up and release its requests. `charged`: the provider may have worked on it."""
        return await self._close(batch, charged=charged, state="dropped", message=why)

    async def _close(self, batch: NotedBatch, *, charged: bool, **changes: Any) -> NotedBatch:
        """Close a batch. `charged`: charge its unanswered requests at their maximum, since the provider may
        have worked on them."""
        _, tokens, usd = self._ledger.out.read_sums(batch.number) if charged else (0, 0, 0.0)
        self.lost_tokens += tokens
        self.lost_usd += usd
        batch = msgspec.structs.replace(batch, **changes)
        await self._ledger.out.note(batch, clear=True, lost=(tokens, usd))
        return batch

    # -- sending

    async def _send(self, batch: NotedBatch) -> NotedBatch:
        service, path = self._services[batch.backend], find_batch_file(self._ledger.path, batch.file)
        async with self._uploads:
            self._tell(batch, f"uploading {_describe_requests(batch)}")
            try:
                file_id = await self._calls.send_request(lambda: service.upload(path, batch.token), TRANSFER)
            except FileNotFoundError:
                raise RunError(
                    f"{path}: the request file of batch {batch.number} is missing. Restore it, or give the "
                    "batch up with `edgen batch cancel RUN`: its requests are then sent again."
                ) from None
        batch = await self._note(batch, state="sending", file_id=file_id, sent_at=read_wall_time())
        return await self._create(batch)

    async def _create(self, batch: NotedBatch) -> NotedBatch:
        """Create a batch in one attempt. After a failure, find out first whether the batch was created."""
        service = self._services[batch.backend]
        # Without a separate upload, the create request carries the file.
        within = self._settings.limits.timeout if service.settles is None else TRANSFER
        try:
            remote = await self._calls.attempt_once(lambda: service.create(self._make_sending(batch)), within)
        except CallError as failure:
            if service.settles is not None and _says_no(failure):
                batch = await self._note(batch, state="ready", file_id=None)
            elif service.settles is None and failure.kind not in RETRYABLE:
                # A gateway may report an error although the service created the batch.
                found = await self._calls.send_request(lambda: service.find(self._make_sending(batch)))
                if isinstance(found, RemoteBatch):
                    return await self._note_begun(batch, found)
                batch = await self._note(batch, state="ready", file_id=None)
            if failure.kind not in RETRYABLE:
                raise make_service_error(failure) from None
            await self._wait_for_room(batch, failure)
            return batch  # if still `sending`: check whether it was created nevertheless
        return await self._note_begun(batch, remote)

    def _make_sending(self, batch: NotedBatch) -> Sending:
        others = (other.remote_id for other in self._ledger.list_batches() if other.number != batch.number)
        return Sending(
            token=batch.token,
            file=find_batch_file(self._ledger.path, batch.file),
            file_id=batch.file_id,
            requests=batch.requests,
            asked_at=batch.sent_at,
            others=frozenset(name for name in others if name is not None),
        )

    async def _recover(self, batch: NotedBatch) -> NotedBatch:
        """Recover after an unconfirmed create request: find its batch, or prepare to send again."""
        service, file_id = self._services[batch.backend], batch.file_id
        if service.settles is not None:
            return await self._look_for(batch, service, service.settles)
        for last in (False, True):
            found = await self._calls.send_request(lambda: service.find(self._make_sending(batch)))
            if isinstance(found, RemoteBatch):
                return await self._note_begun(batch, found)
            if not last and file_id is not None:
                await self._calls.send_request(lambda: service.forget(file_id))
        return await self._note(batch, state="ready", file_id=None)

    async def _look_for(self, batch: NotedBatch, service: BatchService, settles: float) -> NotedBatch:
        """Recover as `_recover` does, for batches without names: watch possible batches, and send nothing
        until the create request can no longer succeed."""
        # The create request may have started up to TRANSFER seconds after its note.
        waited = time.time() - (batch.sent_at or batch.made_at) - TRANSFER
        clock = asyncio.get_running_loop().time
        until, pause = clock() + min(settles, settles - waited), _FIRST_LOOK
        told: Suspects | str | None = "nothing"
        while True:
            found = await self._calls.send_request(lambda: service.find(self._make_sending(batch)))
            if isinstance(found, RemoteBatch):
                return await self._note_begun(batch, found)
            left = until - clock()
            if found is None and left <= 0:
                return await self._note(batch, state="ready", file_id=None)
            if found != told:
                self._tell(batch, _describe_search(found, left))
                told = found
            pause = min(self._poll, pause)
            await asyncio.sleep(pause if found is not None else min(pause, left))
            pause *= _LONGER

    async def _note_begun(self, batch: NotedBatch, remote: RemoteBatch) -> NotedBatch:
        self._no_room.pop(batch.number, None)
        batch = await self._note(batch, state="sent", remote_id=remote.id, sent_at=read_wall_time())
        self._tell(batch, f"sent {_describe_requests(batch)} as {remote.id}")
        return batch

    # -- waiting

    async def _wait(self, batch: NotedBatch) -> NotedBatch:
        """Poll a batch until it has ended, and read its results."""
        service, remote_id = self._services[batch.backend], batch.remote_id or ""
        pause, before, cancelled = min(_FIRST_LOOK, self._poll), None, False
        try:
            while True:
                try:
                    remote = await self._calls.send_request(lambda: service.state(remote_id), named=True)
                except CallError as failure:
                    raise self._make_lost_error(batch, failure) from None
                if remote.state == "ended":
                    self._working.discard(batch.number)
                    return await self._read_ended(batch, remote)
                self._working.add(batch.number)
                # Cancel again if noted as `cancelling`: a killed process may not have sent the request.
                if not cancelled and (self._ending.is_set() or batch.state == "cancelling"):
                    if batch.state != "cancelling":
                        batch = await self._note(batch, state="cancelling")
                    await self._calls.send_request(lambda: service.cancel(remote_id))
                    cancelled = True
                    self._tell(batch, "cancelling; what is answered by then is kept")
                    pause = min(_FIRST_LOOK, self._poll)
                if remote.done is not None and remote.done != before:
                    self._tell(batch, f"{remote.done:,} of {batch.requests:,} answered", done=remote.done)
                    before = remote.done
                await self._sleep(pause, batch)
                pause = min(self._poll, pause * _LONGER)
        finally:
            self._working.discard(batch.number)

    async def _sleep(self, pause: float, batch: NotedBatch) -> None:
        """Sleep, but wake up when `end` is called."""
        if batch.state == "cancelling":
            await asyncio.sleep(pause)
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ending.wait(), pause)

    async def _read_ended(self, batch: NotedBatch, remote: RemoteBatch) -> NotedBatch:
        """Fetch and read the results of an ended batch, for every kind of end."""
        if remote.outcome == "failed" and not remote.files:
            return await self._note_refused(batch, remote)
        for number, file_id in enumerate(remote.files, 1):
            await self._fetch(batch, number, file_id)
        # Lines report requests that the provider never worked on. Requests without a line may have been paid
        # for, except in an expired batch.
        left, *_ = self._ledger.out.read_sums(batch.number)
        charged = remote.outcome != "expired"
        if left and remote.outcome == "completed" and left == batch.requests:
            await self._close(
                batch, charged=True, state="read", message="completed, without one readable answer"
            )
            raise ProviderError(
                f"batch {batch.number} ({batch.remote_id}) is completed, and its results answer none of its "
                f"{_describe_requests(batch)}. They may have been paid for and are charged; see the provider's page "
                "of the "
                f"batch, and the files in {find_batch_file(self._ledger.path, batch.file).parent}. {GO_ON}"
            )
        batch = await self._close(batch, charged=charged, state="read", message=remote.outcome)
        unanswered = f", {left:,} of its requests without an answer" if left else ""
        self._tell(batch, f"{remote.outcome}{unanswered}", outcome=remote.outcome)
        return batch

    async def _fetch(self, batch: NotedBatch, number: int, file_id: str) -> None:
        """Download a result file, unless it exists, and read it."""
        service = self._services[batch.backend]
        if not is_id(file_id):
            failure = CallError(FailureKind.BAD_RESPONSE, f"it names {file_id[:80]!r} as a file of results")
            raise make_service_error(failure)
        mark = compute_sha256(file_id)[:8]
        name = Path(batch.file).with_name(f"{batch.number:05d}.results-{number}-{mark}.jsonl")
        path = find_batch_file(self._ledger.path, str(name))
        if not path.exists():  # an existing file is complete: a process was killed after the download
            most = MAX_ANSWER + batch.requests * _MEAN
            try:
                await self._calls.send_request(
                    partial(service.download, file_id, path, most), TRANSFER, named=True
                )
            except OversizedError as failure:
                raise LostBatch(
                    f"batch {batch.number} ({batch.remote_id}): its results cannot be used: "
                    f"{failure.message} for "
                    f"{_describe_requests(batch)}. See the provider's page of the batch. `edgen batch cancel RUN` "
                    "gives it up: "
                    "it is charged at the most it can have cost, and its requests are sent again."
                ) from None
            except CallError as failure:
                raise self._make_lost_error(batch, failure) from None
        config = self._settings.backends[batch.backend]
        price, read = config.price, check_lines(config.provider, service.read)
        counts = await read_results(path, read, self._ledger, lambda _row: price, batch.sent_at)
        self._on_results(batch, path, counts)

    async def _note_refused(self, batch: NotedBatch, remote: RemoteBatch) -> NotedBatch:
        """Record that the provider refused the whole batch; prepare it again after a temporary failure.
        Raises ProviderError after a permanent one."""
        failure = remote.failure or CallError(FailureKind.BAD_REQUEST, "the batch failed")
        if failure.kind not in RETRYABLE:
            await self.drop(batch, f"refused: {failure.message}")
            raise make_service_error(failure, f"batch {batch.number} was rejected as a whole: ")
        self._tell(
            batch, f"no room for it yet ({failure.message}); it is sent again", failure=str(failure.kind)
        )
        # A new token, since at the provider the old one names a failed batch.
        token = make_token(batch.token.removeprefix("edgen-").rpartition("-")[0])
        batch = await self._note(batch, state="ready", token=token, file_id=None, remote_id=None)
        await self._wait_for_room(batch, failure, self._poll)
        return batch

    async def _wait_for_room(self, batch: NotedBatch, failure: CallError, least: float = 0.0) -> None:
        """Back off while the provider's queue is full: without limit while other batches of this ledger are
        in progress, else up to limits.give_up_after. Raises ProviderError after that."""
        now = asyncio.get_running_loop().time()
        tries, since = self._no_room.get(batch.number, (0, now))
        if self._working - {batch.number}:
            since = now
        self._no_room[batch.number] = (tries + 1, since)
        wait = max(least, self._calls.policy.wait(min(tries + 1, 6), failure.retry_after, self._calls.rng))
        if now - since + wait > self._calls.policy.give_up_after or (
            not least and tries + 1 >= self._calls.policy.attempts
        ):
            raise make_service_error(failure, f"batch {batch.number} was not accepted: ", _SMALLER)
        await asyncio.sleep(wait)

    def _make_lost_error(self, batch: NotedBatch, failure: CallError) -> LostBatch:
        return LostBatch(
            f"batch {batch.number} ({batch.remote_id}) is not at the provider: {describe_failure(failure)}. "
            "Is this the key of "
            "another account or project? If the batch was deleted there, `edgen batch cancel RUN` gives it "
            "up, and its requests are sent again; nothing else is lost."
        )

    async def _note(self, batch: NotedBatch, **changes: Any) -> NotedBatch:
        batch = msgspec.structs.replace(batch, **changes)
        await self._ledger.out.note(batch)
        return batch

    def _tell(self, batch: NotedBatch, text: str, **facts: Any) -> None:
        self._events.tell(
            "batch",
            f"batch {batch.number}: {text}",
            number=batch.number,
            state=batch.state,
            id=batch.remote_id,
            requests=batch.requests,
            **facts,
        )


def _says_no(failure: CallError) -> bool:
    """Return whether a failed create request certainly left no batch: it was never sent, or the service
    refused it."""
    status = failure.status or 0
    return failure.unsent or status == _OVERLOADED or (400 <= status < 500 and status != _REQUEST_TIMEOUT)


def _describe_search(found: Suspects | None, left: float) -> str:
    begun = "it is unknown whether the provider has started it"
    if found is None:
        return f"{begun}; edgen looks for it, and sends it again in {left:.0f} s if it is still missing"
    return (
        f"{begun}; it may be {' or '.join(found.ids[:3])}, which edgen can check once it has ended. It ends "
        "sooner if you cancel it at the provider"
    )


_REQUEST_TIMEOUT, _OVERLOADED = 408, 529
_SMALLER = "Smaller batches may fit: --set batch.max_requests=1000."


class LostBatch(ProviderError):  # noqa: N818 - it says what happened
    """A sent batch is missing at the provider, or its results cannot be used."""


def _describe_requests(batch: NotedBatch) -> str:
    return quantity(batch.requests, "request")
