"""What a backend is: one attempt at one model call, its failures classified.

Retries, rate limits, storage and budgets are other people's business; an adapter translates a
Request to its service's wire format and the answer back to a Reply.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from edgen.model import Reply, Request

MAX_ANSWER = 32 * 1024 * 1024  # bytes of one answer, the most that is read


class Backend(Protocol):
    """A model behind an adapter. Built by `edgen.backends.make`, closed with `aclose`."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """All that shapes this backend's answers, JSON-able: type, base URL, model, parameters.

        It becomes part of every ledger key. It holds no API key and nothing that only changes
        speed.
        """

    @property
    def model(self) -> str:
        """The model's name as asked for."""

    async def complete(self, request: Request) -> Reply:
        """Make one attempt. Raises CallError, whatever went wrong; cancellation passes through."""

    async def models(self) -> list[str] | None:
        """The names that the service offers, None if it cannot say. Raises CallError."""

    async def aclose(self) -> None:
        """Release connections. Never raises; calling it twice is allowed."""
