"""Partners that play the other roles: the job's backends, with one budget, one set of limits and one pool of
connections.

They live in a thread with its own event loop. So they serve any number of event loops, and programs without
one.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import threading
from collections.abc import Generator, Iterable
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

from edgen.config import CallSettings, check_budget, find_backend_name
from edgen.core.errors import CallError, EdgenError, UsageError
from edgen.core.values import Reply, Request
from edgen.execution.client.budget import Budget, Spending
from edgen.execution.client.budget_lease import BudgetLease
from edgen.execution.client.model_client import ModelClient
from edgen.execution.online_scheduler import Watchdog
from edgen.execution.session import make_clients
from edgen.providers import Backend, make
from edgen.store.budget_book import BudgetBook

T = TypeVar("T")
Asking = Generator[Request, Reply, T]
Replies = dict[Request, Reply]


class Partners:
    """The backends of a job. Environments `join` and `leave`; the last one closes the connections."""

    def __init__(self, settings: CallSettings) -> None:
        self._settings = settings
        self._budget = (
            Budget(settings.limits.max_tokens, settings.limits.max_cost) if settings.limits.capped else None
        )
        if self._budget is not None and settings.limits.budget is not None:
            check_budget(settings.backends, settings.limits)
            book = BudgetBook(Path(settings.limits.budget))
            # It has no ledger: if it is killed, its whole lease counts as spent.
            self._budget = self._budget.make_concurrent(
                BudgetLease(book, f"env {secrets.token_hex(8)}"), (0, 0.0)
            )
        self._backends: dict[str, Backend] = {}
        self._clients: dict[str, ModelClient] = {}  # by role
        self._users = 0
        self._lock = threading.Lock()  # guards users, backends and the thread
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        # Only the thread uses these. Running requests, each with the reason to cancel it, if any.
        self._asking: dict[asyncio.Task[object], EdgenError | None] = {}
        self._watching: asyncio.Task[None] | None = None

    @property
    def spent(self) -> Spending | None:
        """Charged tokens and US dollars; None if the job sets no budget."""
        return None if self._budget is None else self._budget.spent

    def join(self, settings: CallSettings, roles: Iterable[str]) -> None:
        """Add an environment that calls `roles`. Raises UsageError if its job's settings differ,
        ProviderError or InputError if a backend cannot be made."""
        mine = self._settings
        if (settings.limits, settings.backends) != (mine.limits, mine.backends):
            raise UsageError(
                f"{settings.name} and {mine.name} cannot share a budget: their `backends` or `limits` "
                "differ. Give both jobs the same."
            )
        with self._lock:
            new = sorted({*roles} - {*self._clients})
            for name in sorted({find_backend_name(settings, role) for role in new} - {*self._backends}):
                self._backends[name] = make(
                    mine.backends[name],
                    timeout=mine.limits.timeout,
                    connections=mine.limits.in_flight,
                    environ=os.environ,
                )
            made = make_clients(mine, self._backends, new, self._budget, existing=self._clients.values())
            self._clients = {**self._clients, **made}  # a new dict: the thread may be reading the old one
            self._users += 1

    def leave(self) -> None:
        """Remove an environment. The last one cancels running requests and closes the connections."""
        with self._lock:
            self._users -= 1
            loop, thread = self._loop, self._thread
            if self._users or loop is None or thread is None:
                return
            self._loop = self._thread = None
        asyncio.run_coroutine_threadsafe(self._close(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    def ask(self, asking: Asking[T], known: Replies) -> Future[T]:
        """Run a generator of requests to its end in the thread. `known` holds existing replies, and receives
        new ones. Raises UsageError after all environments have left."""
        with self._lock:
            if not self._users:
                raise UsageError("the environment is closed.")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="edgen-env", daemon=True)
                self._thread.start()
            return asyncio.run_coroutine_threadsafe(self._drive(asking, known), self._loop)

    async def _drive(self, asking: Asking[T], known: Replies) -> T:
        task = asyncio.current_task()
        assert task is not None, "the thread runs tasks"
        self._asking[task] = None
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch())
        try:
            return await self._answer(asking, known)
        except asyncio.CancelledError:
            if (reason := self._asking[task]) is not None:
                raise reason from None
            raise
        finally:
            del self._asking[task]

    async def _answer(self, asking: Asking[T], known: Replies) -> T:
        try:
            request = next(asking)
            while True:
                try:
                    if request not in known:
                        known[request] = (await self._clients[request.role].ask(request)).reply
                except CallError as failure:
                    request = asking.throw(failure)
                else:
                    request = asking.send(known[request])
        except StopIteration as end:
            result: T = end.value
            return result

    async def _watch(self) -> None:
        """Check for silent services while requests are running."""
        clients = self._clients
        watchdog = Watchdog(clients, self._settings.limits)
        while self._asking:
            if clients is not self._clients:  # another environment has joined
                clients = self._clients
                watchdog = Watchdog(clients, self._settings.limits)
            await asyncio.sleep(watchdog.every)
            reason = watchdog.check(asyncio.get_running_loop().time())
            if reason is not None:
                self._break_off(reason)
                return

    def _break_off(self, reason: EdgenError) -> None:
        for task in self._asking:
            self._asking[task] = reason
            task.cancel()

    async def _close(self) -> None:
        self._break_off(UsageError("the environment was closed."))
        await asyncio.gather(*self._asking, return_exceptions=True)
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
        if self._budget is not None:
            self._budget.close()
        for backend in self._backends.values():
            await backend.aclose()
