"""Waiting for people's answers, in an event loop: the side of a mailbox that asks."""

from __future__ import annotations

import asyncio
import hashlib
import time
from pathlib import Path

import msgspec

from edgen.core.people.requests import PersonAnswer, PersonRequest, list_fields
from edgen.core.system import run_in_thread
from edgen.core.values import TaskId
from edgen.store.people.mailbox import ConversationPlace, Mailbox

_EVERY = 0.15  # seconds between two looks at the mailbox
_OVERDUE = 1.0  # seconds between two looks for people who left


class PeopleRequests:
    """A desk that puts requests into the mailbox of the run in `folder`, and waits for their answers. The
    mailbox is made with the first request. `arm`: the arm of the run, or the judge or annotator, for which
    people answer, each separately. `together`: the roles that people play in one conversation."""

    def __init__(self, folder: Path, arm: str = "", together: tuple[str, ...] = ()) -> None:
        self._folder, self._arm, self._together = folder, arm, together
        self._mailbox: Mailbox | None = None
        self._waiting: dict[str, asyncio.Future[PersonAnswer | None]] = {}
        self._watching: asyncio.Task[None] | None = None

    async def ask(self, request: PersonRequest) -> PersonAnswer | None:
        """Wait for the answer to a request; return None if the person left."""
        if self._mailbox is None:
            self._mailbox = Mailbox(self._folder)
        key = hashlib.sha256(f"{self._arm}/{request.key}".encode()).hexdigest() if self._arm else request.key
        request = msgspec.structs.replace(request, key=key, arm=self._arm, together=self._together)
        if any(field.kind == "json" for field in list_fields(request)):
            request = msgspec.structs.replace(request, schema=b"")  # people write prose, not JSON
        if await run_in_thread(self._mailbox.has_left, ConversationPlace.of(request), request.role):
            return None
        await run_in_thread(self._mailbox.put, request, time.time())
        done, answer = self._mailbox.find_answer(request.key)
        if done:
            return answer
        waiting = self._waiting.get(request.key)
        if waiting is None:
            waiting = self._waiting[request.key] = asyncio.get_running_loop().create_future()
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch(self._mailbox))
        return await asyncio.shield(waiting)

    async def end(self, scenario: int, task: TaskId) -> None:
        """Note that no more requests follow about a task."""
        if self._mailbox is not None:
            await run_in_thread(self._mailbox.end, ConversationPlace(self._arm, scenario, task), time.time())

    async def _watch(self, mailbox: Mailbox) -> None:
        """Hand out answers as long as anyone waits."""
        looked, known = 0.0, -1
        while self._waiting:
            now = time.time()
            if now - looked >= _OVERDUE:
                looked = now
                for key in mailbox.list_overdue(now):
                    if key in self._waiting:
                        await run_in_thread(mailbox.give_up, key, now)
                known = -1
            if (version := mailbox.read_version()) != known:
                known = version
                for key in [*self._waiting]:
                    done, answer = mailbox.find_answer(key)
                    if done and not (waiting := self._waiting.pop(key)).done():
                        waiting.set_result(answer)
            await asyncio.sleep(_EVERY)

    async def close(self) -> None:
        """Stop waiting. The requests stay in the mailbox."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
        for waiting in self._waiting.values():
            waiting.cancel()
        self._waiting.clear()
        if self._mailbox is not None:
            self._mailbox.close()
