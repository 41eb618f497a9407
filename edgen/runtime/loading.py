"""Patience with a server that is loading its model."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from edgen.core.errors import CallError, FailureKind
from edgen.core.text import compile_later

PATIENCE = 300.0  # seconds
_EVERY = 1.0  # seconds between two tries
_LOADING = compile_later(r"(?i)\bload(?:ing|s)?\b")

T = TypeVar("T")


class Loading:
    """A wait for one server that loads its model, at most `patience` seconds for all calls together. `tell`
    gets a sentence when the wait begins."""

    def __init__(self, tell: Callable[[str], None], patience: float = PATIENCE) -> None:
        self._tell = tell
        self._patience = patience
        self._since: float | None = None
        self.waited: float | None = None
        """Seconds that the model took to load; None if no call had to wait for it."""

    async def answer(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Return the result of `ask`; retry while the server loads its model. Raises the CallError of `ask`,
        also after the patience ends."""
        while True:
            try:
                answer = await ask()
            except CallError as failure:
                if not _is_loading(failure) or not self._has_time():
                    raise
                await asyncio.sleep(min(_EVERY, self._patience))
            else:
                if self._since is not None and self.waited is None:
                    self.waited = time.monotonic() - self._since
                return answer

    def _has_time(self) -> bool:
        if self._since is None:
            self._since = time.monotonic()
            self._tell(f"The server is loading its model; waiting for it, at most {self._patience:g} s.")
        return time.monotonic() - self._since < self._patience


def _is_loading(failure: CallError) -> bool:
    """Return whether a server refused a call because it is loading its model."""
    return failure.kind is FailureKind.OVERLOADED and _LOADING.search(failure.message) is not None
