"""A backend that answers like the simulator and stops where a test requires it."""

from __future__ import annotations

from edgen.core.errors import CallError, FailureKind
from edgen.core.values import Reply, Request
from tests.execution.test_online_scheduler import Scripted


class KilledError(Exception):
    """The end of the process."""


class Players(Scripted):
    """A backend that answers like the simulator. `most`: the calls after which the process ends; `fails`:
    scenarios without an answer."""

    def __init__(self, most: int = 10**9, fails: frozenset[int] = frozenset()) -> None:
        super().__init__()
        self.most_calls, self.fails = most, fails
        self.scenarios: list[int] = []

    async def complete(self, request: Request) -> Reply:
        if self.calls >= self.most_calls:
            raise KilledError
        if request.address.scenario in self.fails:
            raise CallError(FailureKind.CONTEXT_OVERFLOW, "too long")
        self.scenarios.append(request.address.scenario)
        return await super().complete(request)
