"""Batch services of plugins, whose values are checked."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from pathlib import Path
from typing import Any, NoReturn

from edgen.core.plugins.faults import blame, refuse_value, require_type
from edgen.core.plugins.unending_tasks import LateError, run_apart
from edgen.core.system import run_in_thread
from edgen.core.values import MAX_ANSWER, Request
from edgen.providers.batches import BatchLimits, LineResult, NeverBegun, RemoteBatch, Suspects

_PARTS = (
    "limits", "settles", "client", "line", "read", "upload", "create", "find", "state", "cancel", "forget",
    "download", "aclose",
)  # fmt: skip
_CLOSING = 15.0  # seconds that a service may take to close


def _make_checked_call(method: str, type_: Any, what: str) -> Any:
    """Return the coroutine method that calls a plugin's `method`, whose result must be of the type; `what`
    names it."""

    async def call(self: CheckedBatchService, *given: Any) -> Any:
        return await self._call(method, type_, what, *given)

    return call


class CheckedBatchService:
    """A plugin's batch service. Raises FaultyPluginError with the provider's name for a value of another
    type, and does not wait for calls that ignore their cancellation. See `BatchService` for the methods."""

    def __init__(self, provider: str, service: Any) -> None:
        self._provider, self._service = provider, service
        if missing := [name for name in _PARTS if not hasattr(service, name)]:
            self._refuse(f"has a batch service without `{missing[0]}`: {type(service).__name__}")
        self.limits = self._require(service.limits, BatchLimits, "a BatchLimits as `limits`")
        seconds = "a number of seconds or None as `settles`"
        self.settles = self._require(service.settles, int | float | None, seconds)

    @property
    def client(self) -> Any:
        return self._service.client

    def line(self, name: str, request: Request) -> bytes:
        made: bytes = self._require(self._service.line(name, request), bytes, "bytes from `line`")
        if b"\n" in made:
            self._refuse(f"returned more than one line from `line`: {made[:80]!r}")
        return made

    def read(self, line: bytes) -> LineResult | NeverBegun | None:
        read: LineResult | NeverBegun | None = self._service.read(line)  # checked with other results
        return read

    upload = _make_checked_call("upload", str | None, "an id or None")
    create = _make_checked_call("create", RemoteBatch, "a RemoteBatch")
    find = _make_checked_call("find", RemoteBatch | Suspects | None, "a RemoteBatch, Suspects or None")
    state = _make_checked_call("state", RemoteBatch, "a RemoteBatch")
    cancel = _make_checked_call("cancel", object, "anything")
    forget = _make_checked_call("forget", object, "anything")

    async def download(self, file_id: str, to: Path, limit: int = MAX_ANSWER) -> None:
        await self._call("download", object, "anything", file_id, to, limit)
        if not await run_in_thread(to.is_file):
            self._refuse("returned from `download` and did not write the file of results")

    async def aclose(self) -> None:
        try:
            await self._call("aclose", object, "anything", seconds=_CLOSING)
        except LateError:
            self._refuse(f"did not return from `aclose` of its batch service within {_CLOSING:g} s")

    async def _call(
        self, method: str, type_: Any, what: str, *given: Any, seconds: float | None = None
    ) -> Any:
        """Return what a method returns within `seconds`, which must be of the type; `what` names it."""
        work = getattr(self._service, method)(*given)
        if not inspect.isawaitable(work):
            self._refuse(f"has a batch service whose `{method}` is not `async def`")
        found = await run_apart(self._await_end(method, work), seconds)
        return self._require(found, type_, f"{what} from `{method}`")

    async def _await_end(self, method: str, work: Awaitable[Any]) -> Any:
        try:
            return await work
        except (SystemExit, KeyboardInterrupt) as error:  # they would end the loop
            blame("provider", self._provider, error, f"in `{method}` of its batch service")

    def _require(self, value: Any, type_: Any, what: str) -> Any:
        return require_type("provider", self._provider, value, type_, what)

    def _refuse(self, said: str) -> NoReturn:
        refuse_value("provider", self._provider, said)
