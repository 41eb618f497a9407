"""Carries one batch through its life: sent once, waited for, its results fetched and read.

    ready -> sending -> sent (-> cancelling) -> read        dropped, where the provider refused all of it

Each step is in the ledger before the next is taken, so a kill at any moment leaves a state from which the next
process goes on. The one doubtful moment is between asking for a batch and hearing its id: then the provider is
asked which batches it has; if ours is not among them, the uploaded file is deleted, so that a request still under
way cannot become a batch, and only then is it all done again.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from edgen.backends.batches import Batches, Remote
from edgen.config import Job
from edgen.durations import seconds
from edgen.engine.walk import GO_ON, advice, clause
from edgen.errors import FATAL, RETRYABLE, CallError, FailureKind, ProviderError, RunError
from edgen.events import Events
from edgen.ledger import Batch, Ledger
from edgen.retry import RetryPolicy, call_with_retries

T = TypeVar("T")

_FIRST_LOOK = 1.0  # seconds after which a batch is first looked at again
_LONGER = 1.5  # times as long each time, up to batch.poll
_TRANSFER = 3600.0  # seconds that one file may take

# What is to be done with a result file of a batch; and when none of it will follow.
Take = Callable[[Batch, Path], Awaitable[None]]


class Courier:
    """For the batches of one ledger. `end` has all of them cancelled, what they have answered is still read."""

    def __init__(
        self, job: Job, ledger: Ledger, services: Mapping[str, Batches], events: Events, take: Take
    ) -> None:
        self._ledger = ledger
        self._services = services
        self._events = events
        self._take = take
        self._poll = seconds(job.batch.poll)
        self._timeout = job.limits.timeout
        self._policy = RetryPolicy(attempts=job.limits.attempts, give_up_after=job.limits.give_up_after)
        self._rng = random.Random()  # noqa: S311 - jitter of waits; nothing that is stored depends on it
        self._ending = asyncio.Event()
        self._uploads = asyncio.Semaphore(2)
        self.refused: dict[int, int] = {}  # by batch: how often the provider had no room for it

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
        if charged:
            _, tokens, usd = self._ledger.out.sums(batch.number)
            self._ledger.out.lose(tokens, usd)
        return await self._note(batch, clear=True, state="dropped", message=why)

    # -- sending

    async def _send(self, batch: Batch) -> Batch:
        service, path = self._services[batch.backend], self._ledger.path.parent / batch.file
        async with self._uploads:
            self._tell(batch, f"uploading {_requests(batch)}")
            try:
                file_id = await self._asked(lambda: service.upload(path, batch.token), _TRANSFER)
            except FileNotFoundError:
                raise RunError(
                    f"{path}: the request file of batch {batch.number} is missing. Restore it, or give the batch up "
                    "with `edgen batch cancel RUN`: its requests are then asked anew."
                ) from None
        batch = await self._note(batch, state="sending", file_id=file_id)
        return await self._create(batch)

    async def _create(self, batch: Batch) -> Batch:
        """Have an uploaded file begun, one attempt: what became of a failed one has to be found out first."""
        try:
            async with _within(self._timeout):
                remote = await self._services[batch.backend].create(batch.file_id or "", batch.token)
        except CallError as failure:
            if failure.kind in FATAL or not _mendable(failure):
                await self._note(batch, state="ready", file_id=None)  # it was refused: nothing was begun
                raise self._worded(failure) from None
            self._count(batch, failure)
            await asyncio.sleep(self._policy.wait(self.refused[batch.number], failure.retry_after, self._rng))
            return batch  # still `sending`: see whether it was begun all the same
        return await self._begun(batch, remote)

    async def _recover(self, batch: Batch) -> Batch:
        """After a create whose answer nobody heard: the batch that it made, or the file anew."""
        service, file_id = self._services[batch.backend], batch.file_id
        for last in (False, True):
            remote = await self._asked(lambda: service.find(batch.token, batch.made_at))
            if remote is not None:
                return await self._begun(batch, remote)
            if not last and file_id is not None:
                await self._asked(lambda: service.forget(file_id))
        return await self._note(batch, state="ready", file_id=None)

    async def _begun(self, batch: Batch, remote: Remote) -> Batch:
        batch = await self._note(batch, state="sent", remote_id=remote.id, sent_at=time.time())
        self._tell(batch, f"sent {_requests(batch)} as {remote.id}")
        return batch

    # -- waiting

    async def _wait(self, batch: Batch) -> Batch:
        """Look at a batch until it has ended, and read its results."""
        service, remote_id = self._services[batch.backend], batch.remote_id or ""
        pause, before = min(_FIRST_LOOK, self._poll), None
        while True:
            try:
                remote = await self._asked(lambda: service.state(remote_id), named=True)
            except _Gone as gone:
                raise self._lost(batch, gone.failure) from None
            if remote.state == "ended":
                return await self._ended(batch, remote)
            if self._ending.is_set() and batch.state == "sent":
                batch = await self._note(batch, state="cancelling")
                await self._asked(lambda: service.cancel(remote_id))
                self._tell(batch, "cancelling; what is answered by then is kept")
                pause = min(_FIRST_LOOK, self._poll)
            if remote.done is not None and remote.done != before:
                self._tell(batch, f"{remote.done:,} of {batch.requests:,} answered", done=remote.done)
                before = remote.done
            await self._sleep(pause, batch)
            pause = min(self._poll, pause * _LONGER)

    async def _sleep(self, pause: float, batch: Batch) -> None:
        """Wait, but no longer than until all is to end."""
        if batch.state == "cancelling":
            await asyncio.sleep(pause)
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ending.wait(), pause)

    async def _ended(self, batch: Batch, remote: Remote) -> Batch:
        folder = (self._ledger.path.parent / batch.file).parent
        service = self._services[batch.backend]
        for number, file_id in enumerate(remote.files, 1):
            path = folder / f"{batch.number:05d}.results-{number}.jsonl"
            if not path.exists():  # one that is there is whole: a process was killed while it read it
                try:
                    await self._asked(partial(service.download, file_id, path), _TRANSFER, named=True)
                except _Gone as gone:
                    raise self._lost(batch, gone.failure) from None
            await self._take(batch, path)
        if remote.outcome == "failed":
            return await self._refused(batch, remote)
        left, *_ = self._ledger.out.sums(batch.number)
        batch = await self._note(batch, clear=True, state="read", message=remote.outcome)
        unanswered = f", {left:,} of its requests unanswered" if left else ""
        self._tell(batch, f"{remote.outcome}{unanswered}", outcome=remote.outcome)
        return batch

    async def _refused(self, batch: Batch, remote: Remote) -> Batch:
        """The provider took none of it: for want of room, which may come, or for good."""
        failure = remote.failure or CallError(FailureKind.BAD_REQUEST, "the batch failed")
        if not _mendable(failure):
            await self.drop(batch, f"refused: {failure.message}")
            raise self._worded(failure, f"batch {batch.number} was refused as a whole: ")
        self._count(batch, failure)
        tries = self.refused[batch.number]
        self._tell(
            batch, f"no room for it yet ({failure.message}); it is sent again", failure=str(failure.kind)
        )
        await asyncio.sleep(max(self._poll, self._policy.wait(tries, failure.retry_after, self._rng)))
        token = f"{batch.token.partition('~')[0]}~{tries}"
        return await self._note(batch, state="ready", token=token, file_id=None, remote_id=None)

    # -- what all steps share

    def _count(self, batch: Batch, failure: CallError) -> None:
        """Count a refusal that may pass. Raises ProviderError when there were too many."""
        self.refused[batch.number] = self.refused.get(batch.number, 0) + 1
        if self.refused[batch.number] >= self._policy.attempts:
            raise self._worded(failure, f"batch {batch.number} was not taken: ", _SMALLER)

    async def _asked(
        self, attempt: Callable[[], Awaitable[T]], within: float | None = None, *, named: bool = False
    ) -> T:
        """The result of one request to the provider, tried as often as the limits say.

        Raises ProviderError; where the request is about something `named` that is not there, _Gone.
        """

        async def bounded() -> T:
            async with _within(within or self._timeout):
                return await attempt()

        try:
            return await call_with_retries(bounded, self._policy, on_retry=self._on_retry, rng=self._rng)
        except CallError as failure:
            if named and failure.kind is FailureKind.NOT_FOUND:
                raise _Gone(failure) from None
            raise self._worded(failure) from None

    def _on_retry(self, failure: CallError, wait: float) -> None:
        self._events.tell(
            "retries", f"batch service: {clause(failure)}; again in {wait:.0f} s", kind=str(failure.kind)
        )

    def _worded(self, failure: CallError, what: str = "", hint: str = "") -> ProviderError:
        if failure.kind in FATAL:
            return ProviderError(f"{what}{advice(failure)} {GO_ON}")
        kept = "What is at the provider stays known."
        return ProviderError(
            f"{what}the batch service gave no use: {clause(failure)}. {hint or kept} {GO_ON}"
        )

    def _lost(self, batch: Batch, failure: CallError) -> LostBatch:
        return LostBatch(
            f"batch {batch.number} ({batch.remote_id}) is not at the provider: {clause(failure)}. Is this the key of "
            "another account or project? If the batch was deleted there, `edgen batch cancel RUN` gives it up, and its "
            "requests are asked anew; nothing else is lost."
        )

    async def _note(self, batch: Batch, *, clear: bool = False, **changes: Any) -> Batch:
        batch = msgspec.structs.replace(batch, **changes)
        await self._ledger.out.note(batch, clear=clear)
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


_SMALLER = "Smaller batches may fit: --set batch.max_requests=1000."


class LostBatch(ProviderError):  # noqa: N818 - it says what happened
    """The provider does not have a batch that was sent, or not its results."""


class _Gone(Exception):  # noqa: N818 - it says what happened
    """The provider has nothing of that name."""

    def __init__(self, failure: CallError) -> None:
        self.failure = failure
        super().__init__(failure)


@contextlib.asynccontextmanager
async def _within(limit: float) -> AsyncIterator[None]:
    """A bound on one request, as a failure like others."""
    try:
        async with asyncio.timeout(limit):
            yield
    except TimeoutError:
        raise CallError(FailureKind.TIMEOUT, f"no answer within {limit:g} s") from None


def _requests(batch: Batch) -> str:
    return f"{batch.requests:,} request{'s' if batch.requests != 1 else ''}"


def _mendable(failure: CallError) -> bool:
    return failure.kind in RETRYABLE
