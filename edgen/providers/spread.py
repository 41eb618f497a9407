"""One model on several servers: a call goes to the server with the fewest open calls.

The first server stands for all in the ledger, so others may come and go. A server that refuses a connection
is skipped for a while; its call goes to another in the same attempt, since nothing of it was sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from edgen.core.errors import CallError, FailureKind
from edgen.core.values import Reply, Request
from edgen.providers.base import Backend, CountsSlots

PAUSE = 10.0  # seconds for which a server that refused a connection is tried last


class SpreadBackend:
    """A backend that spreads calls over two or more `backends` of the same model."""

    def __init__(self, backends: Sequence[Backend]) -> None:
        self.backends = tuple(backends)
        self.identity = backends[0].identity
        self.model = backends[0].model
        self._out = [0] * len(backends)
        self._away_until = [0.0] * len(backends)
        self._turn = 0

    def __repr__(self) -> str:
        return f"SpreadBackend({', '.join(map(repr, self.backends))})"

    async def complete(self, request: Request) -> Reply:
        """Make one attempt. Raises CallError."""
        left = list(range(len(self.backends)))
        while True:
            number = self._choose(left)
            left.remove(number)
            self._out[number] += 1
            try:
                return await self.backends[number].complete(request)
            except CallError as failure:
                if not (failure.unsent and failure.kind is FailureKind.CONNECTION):
                    raise
                self._away_until[number] = asyncio.get_running_loop().time() + PAUSE
                if not left:
                    raise
            finally:
                self._out[number] -= 1

    def _choose(self, left: Sequence[int]) -> int:
        """Return the server to use: reachable first, then least busy, then in turn."""
        now = asyncio.get_running_loop().time()
        self._turn += 1
        return min(
            left,
            key=lambda n: (self._away_until[n] > now, self._out[n], (n - self._turn) % len(self.backends)),
        )

    async def models(self) -> list[str] | None:
        """Return the names that the first server offers. Raises CallError."""
        return await self.backends[0].models()

    async def slots(self) -> int | None:
        """Return the slots of all servers together; None if one of them does not say. Raises CallError."""
        asked = [one for one in self.backends if isinstance(one, CountsSlots)]
        each = await asyncio.gather(*(one.slots() for one in asked))
        known = [slots for slots in each if slots is not None]
        return sum(known) if len(known) == len(self.backends) else None

    async def aclose(self) -> None:
        """Close all connections. Never raises; may be called twice."""
        for backend in self.backends:
            await backend.aclose()
