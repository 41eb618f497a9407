"""Carries one batch through its life: sent once, waited for, its results fetched and read.

    ready -> sending -> sent (-> cancelling) -> read        dropped, where the provider refused all of it

Each step is in the ledger before the next is taken, so a kill at any moment leaves a state from which the next
process goes on. The one doubtful moment is between asking for a batch and hearing its id: then the provider is
asked which batches it has; if ours is not among them, the uploaded file is deleted, so that a request still under
way cannot become a batch, and only then is it all done again. Where batches cannot carry a name and no file goes
up beforehand (`BatchService.settles`), those that may be ours are waited for until they tell, and it is all done again
when a request under way can have become a batch no more.
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
from edgen.core.digest import sha256
from edgen.core.durations import seconds
from edgen.core.errors import RETRYABLE, CallError, FailureKind, ProviderError, RunError
from edgen.core.events import Events
from edgen.execution.batch.ownership import own_file
from edgen.execution.batch.results import ResultCounts, read_results
from edgen.execution.batch.round import new_token
from edgen.execution.batch.service_calls import TRANSFER, ServiceCalls, service_error
from edgen.execution.rollout import GO_ON, describe_failure
from edgen.providers.base import MAX_ANSWER
from edgen.providers.batches import (
    BatchService,
    OversizedError,
    RemoteBatch,
    Sending,
    Suspects,
    is_id,
)
from edgen.store.ledger import Batch, Ledger

_FIRST_LOOK = 1.0  # seconds after which a batch is first looked at again
_LONGER = 1.5  # times as long each time, up to batch.poll
_MEAN = 1 << 20  # bytes of an answer, on average over a file; a single one may be as large as online


class BatchLifecycle:
    """For the batches of one ledger. `on_results` is told what each result file came to, once it is read. `end` has all
    of them cancelled; what they have answered is still read."""

    def __init__(
        self,
        settings: CallSettings,
        ledger: Ledger,
        services: Mapping[str, BatchService],
        events: Events,
        on_results: Callable[[Batch, Path, ResultCounts], None],
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
        self._working: set[int] = set()  # batches that the provider works on
        # By batch: refusals in a row, and when the first was.
        self._no_room: dict[int, tuple[int, float]] = {}
        self.lost_tokens = 0  # charged for what will not be answered
        self.lost_usd = 0.0

    def end(self) -> None:
        """Cancel what is out."""
        self._ending.set()

    async def carry(self, batch: Batch) -> Batch:
        """Bring a batch to its end, from wherever it stands.

        Raises ProviderError where the provider refuses it, has lost it, or does not answer.
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

    async def drop(self, batch: Batch, why: str, *, charged: bool = False) -> Batch:
        """Give a batch up; its requests are not out any more. `charged`: the provider may have worked on it."""
        return await self._close(batch, charged=charged, state="dropped", message=why)

    async def _close(self, batch: Batch, *, charged: bool, **changes: Any) -> Batch:
        """A batch is over. What is left of it unanswered is charged at its most, where it may have been worked on."""
        _, tokens, usd = self._ledger.out.sums(batch.number) if charged else (0, 0, 0.0)
        self.lost_tokens += tokens
        self.lost_usd += usd
        batch = msgspec.structs.replace(batch, **changes)
        await self._ledger.out.note(batch, clear=True, lost=(tokens, usd))
        return batch

    # -- sending

    async def _send(self, batch: Batch) -> Batch:
        service, path = self._services[batch.backend], own_file(self._ledger.path, batch.file)
        async with self._uploads:
            self._tell(batch, f"uploading {_requests(batch)}")
            try:
                file_id = await self._calls.request(lambda: service.upload(path, batch.token), TRANSFER)
            except FileNotFoundError:
                raise RunError(
                    f"{path}: the request file of batch {batch.number} is missing. Restore it, or give the batch up "
                    "with `edgen batch cancel RUN`: its requests are then asked anew."
                ) from None
        batch = await self._note(batch, state="sending", file_id=file_id, sent_at=time.time())
        return await self._create(batch)

    async def _create(self, batch: Batch) -> Batch:
        """Have a batch begun, one attempt: what became of a failed one has to be found out first."""
        service = self._services[batch.backend]
        # Where no file has gone up, it goes now.
        within = self._settings.limits.timeout if service.settles is None else TRANSFER
        try:
            remote = await self._calls.once(lambda: service.create(self._sending(batch)), within)
        except CallError as failure:
            if service.settles is not None and _says_no(failure):
                batch = await self._note(batch, state="ready", file_id=None)
            elif service.settles is None and failure.kind not in RETRYABLE:
                # A gateway may say no to what the service has begun all the same.
                found = await self._calls.request(lambda: service.find(self._sending(batch)))
                if isinstance(found, RemoteBatch):
                    return await self._note_begun(batch, found)
                batch = await self._note(batch, state="ready", file_id=None)
            if failure.kind not in RETRYABLE:
                raise service_error(failure) from None
            await self._no_room_for(batch, failure)
            return batch  # where it is `sending` still: see whether it was begun all the same
        return await self._note_begun(batch, remote)

    def _sending(self, batch: Batch) -> Sending:
        others = (other.remote_id for other in self._ledger.out.batches() if other.number != batch.number)
        return Sending(
            token=batch.token,
            file=own_file(self._ledger.path, batch.file),
            file_id=batch.file_id,
            requests=batch.requests,
            asked_at=batch.sent_at,
            others=frozenset(name for name in others if name is not None),
        )

    async def _recover(self, batch: Batch) -> Batch:
        """After a create whose answer nobody heard: the batch that it made, or the file anew."""
        service, file_id = self._services[batch.backend], batch.file_id
        if service.settles is not None:
            return await self._look_for(batch, service, service.settles)
        for last in (False, True):
            found = await self._calls.request(lambda: service.find(self._sending(batch)))
            if isinstance(found, RemoteBatch):
                return await self._note_begun(batch, found)
            if not last and file_id is not None:
                await self._calls.request(lambda: service.forget(file_id))
        return await self._note(batch, state="ready", file_id=None)

    async def _look_for(self, batch: Batch, service: BatchService, settles: float) -> Batch:
        """As `_recover`, where batches cannot carry a name: one that may be ours is waited for, and none is sent anew
        before the create can have made one no more."""
        # A call may have been sending for so long before nobody heard of it any more.
        waited = time.time() - (batch.sent_at or batch.made_at) - TRANSFER
        clock = asyncio.get_running_loop().time
        until, pause, told = clock() + min(settles, settles - waited), _FIRST_LOOK, None
        while True:
            found = await self._calls.request(lambda: service.find(self._sending(batch)))
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

    async def _note_begun(self, batch: Batch, remote: RemoteBatch) -> Batch:
        self._no_room.pop(batch.number, None)
        batch = await self._note(batch, state="sent", remote_id=remote.id, sent_at=time.time())
        self._tell(batch, f"sent {_requests(batch)} as {remote.id}")
        return batch

    # -- waiting

    async def _wait(self, batch: Batch) -> Batch:
        """Look at a batch until it has ended, and read its results."""
        service, remote_id = self._services[batch.backend], batch.remote_id or ""
        pause, before, cancelled = min(_FIRST_LOOK, self._poll), None, False
        try:
            while True:
                try:
                    remote = await self._calls.request(lambda: service.state(remote_id), named=True)
                except CallError as failure:
                    raise self._lost_error(batch, failure) from None
                if remote.state == "ended":
                    self._working.discard(batch.number)
                    return await self._read_ended(batch, remote)
                self._working.add(batch.number)
                # Also where it is `cancelling` already: whether a killed process got that far is not known.
                if not cancelled and (self._ending.is_set() or batch.state == "cancelling"):
                    if batch.state != "cancelling":
                        batch = await self._note(batch, state="cancelling")
                    await self._calls.request(lambda: service.cancel(remote_id))
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

    async def _sleep(self, pause: float, batch: Batch) -> None:
        """Wait, but no longer than until all is to end."""
        if batch.state == "cancelling":
            await asyncio.sleep(pause)
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ending.wait(), pause)

    async def _read_ended(self, batch: Batch, remote: RemoteBatch) -> Batch:
        """Fetch and read the results of a batch that has ended, whatever the end was."""
        if remote.outcome == "failed" and not remote.files:
            return await self._note_refused(batch, remote)
        for number, file_id in enumerate(remote.files, 1):
            await self._fetch(batch, number, file_id)
        # A line that was never worked on is said to be so. What is not said at all may have been paid for; an
        # expired batch is not.
        left, *_ = self._ledger.out.sums(batch.number)
        charged = remote.outcome != "expired"
        if left and remote.outcome == "completed" and left == batch.requests:
            await self._close(
                batch, charged=True, state="read", message="completed, without one readable answer"
            )
            raise ProviderError(
                f"batch {batch.number} ({batch.remote_id}) is completed, and its results answer none of its "
                f"{_requests(batch)}. They may have been paid for and are charged; see the provider's page of the "
                f"batch, and the files in {own_file(self._ledger.path, batch.file).parent}. {GO_ON}"
            )
        batch = await self._close(batch, charged=charged, state="read", message=remote.outcome)
        unanswered = f", {left:,} of its requests without an answer" if left else ""
        self._tell(batch, f"{remote.outcome}{unanswered}", outcome=remote.outcome)
        return batch

    async def _fetch(self, batch: Batch, number: int, file_id: str) -> None:
        """Download a result file, unless it is there, and have it read."""
        service = self._services[batch.backend]
        if not is_id(file_id):
            failure = CallError(FailureKind.BAD_RESPONSE, f"it names {file_id[:80]!r} as a file of results")
            raise service_error(failure)
        mark = sha256(file_id)[:8]
        name = Path(batch.file).with_name(f"{batch.number:05d}.results-{number}-{mark}.jsonl")
        path = own_file(self._ledger.path, str(name))
        if not path.exists():  # one that is there is whole: a process was killed while it read it
            most = MAX_ANSWER + batch.requests * _MEAN
            try:
                await self._calls.request(
                    partial(service.download, file_id, path, most), TRANSFER, named=True
                )
            except OversizedError as failure:
                raise LostBatch(
                    f"batch {batch.number} ({batch.remote_id}): its results cannot be used: {failure.message} for "
                    f"{_requests(batch)}. See the provider's page of the batch. `edgen batch cancel RUN` gives it up: "
                    "it is charged at the most it can have cost, and its requests are asked anew."
                ) from None
            except CallError as failure:
                raise self._lost_error(batch, failure) from None
        price = self._settings.backends[batch.backend].price
        counts = await read_results(path, service.read, self._ledger, lambda _row: price, batch.sent_at)
        self._on_results(batch, path, counts)

    async def _note_refused(self, batch: Batch, remote: RemoteBatch) -> Batch:
        """The provider took none of it: for want of room, which may come, or for good."""
        failure = remote.failure or CallError(FailureKind.BAD_REQUEST, "the batch failed")
        if failure.kind not in RETRYABLE:
            await self.drop(batch, f"refused: {failure.message}")
            raise service_error(failure, f"batch {batch.number} was refused as a whole: ")
        self._tell(
            batch, f"no room for it yet ({failure.message}); it is sent again", failure=str(failure.kind)
        )
        # Another token: the provider knows the old one by a batch that failed.
        token = new_token(batch.token.removeprefix("edgen-").rpartition("-")[0])
        batch = await self._note(batch, state="ready", token=token, file_id=None, remote_id=None)
        await self._no_room_for(batch, failure, self._poll)
        return batch

    async def _no_room_for(self, batch: Batch, failure: CallError, least: float = 0.0) -> None:
        """Wait after a refusal that may pass. While others of ours are worked on, that is no wonder; by itself it is
        borne as long as limits.give_up_after. Raises ProviderError."""
        now = asyncio.get_running_loop().time()
        tries, since = self._no_room.get(batch.number, (0, now))
        if self._working - {batch.number}:
            since = now
        self._no_room[batch.number] = (tries + 1, since)
        wait = max(least, self._calls.policy.wait(min(tries + 1, 6), failure.retry_after, self._calls.rng))
        if now - since + wait > self._calls.policy.give_up_after or (
            not least and tries + 1 >= self._calls.policy.attempts
        ):
            raise service_error(failure, f"batch {batch.number} was not taken: ", _SMALLER)
        await asyncio.sleep(wait)

    def _lost_error(self, batch: Batch, failure: CallError) -> LostBatch:
        return LostBatch(
            f"batch {batch.number} ({batch.remote_id}) is not at the provider: {describe_failure(failure)}. Is this the key of "
            "another account or project? If the batch was deleted there, `edgen batch cancel RUN` gives it up, and its "
            "requests are asked anew; nothing else is lost."
        )

    async def _note(self, batch: Batch, **changes: Any) -> Batch:
        batch = msgspec.structs.replace(batch, **changes)
        await self._ledger.out.note(batch)
        return batch

    def _tell(self, batch: Batch, text: str, **facts: Any) -> None:
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
    """Whether a failure of a create surely left no batch behind: it never went out, or the service itself refused it."""
    status = failure.status or 0
    return failure.unsent or status == _OVERLOADED or (400 <= status < 500 and status != _REQUEST_TIMEOUT)


def _describe_search(found: Suspects | None, left: float) -> str:
    begun = "whether the provider has begun it is not known"
    if found is None:
        return f"{begun}; it is looked for, and sent anew in {left:.0f} s if it is not there by then"
    return (
        f"{begun}; it may be {' or '.join(found.ids[:3])}, which tells when it has ended. Cancelled at the provider, it "
        "ends sooner"
    )


_REQUEST_TIMEOUT, _OVERLOADED = 408, 529
_SMALLER = "Smaller batches may fit: --set batch.max_requests=1000."


class LostBatch(ProviderError):  # noqa: N818 - it says what happened
    """The provider does not have a batch that was sent, or not its results."""


def _requests(batch: Batch) -> str:
    return f"{batch.requests:,} request{'s' if batch.requests != 1 else ''}"
