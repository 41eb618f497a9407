"""People as a backend: each request waits in the run's mailbox until a person answers it."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from edgen.plugin import (
    Backend,
    BatchAnswers,
    CallError,
    FailureKind,
    Key,
    Link,
    LocalCalls,
    Provider,
    Reply,
    Request,
    RequestFeatures,
)
from edgen.plugin.errors import Problem
from edgen.plugin.protocols import TaskId
from edgen.plugin.providers import AskPeople, PersonRequest, Price, PricesAndTokens, scrub, view_of
from edgen.providers.human.config import HumanConfig

_NOBODY = (
    "a person answers this role, and nobody can be asked here: generate the job, then invite somebody with "
    "`edgen web RUN`, or play it with `edgen play JOB`"
)
_encode = msgspec.msgpack.Encoder().encode


class HumanBackend:
    """A backend whose answers people give, by way of `people`; None if nobody can be asked."""

    def __init__(self, config: HumanConfig, people: AskPeople | None) -> None:
        self.model = config.model
        self.identity: dict[str, Any] = {"type": config.provider, "model": config.model}
        self._config = config
        self._people = people

    def __repr__(self) -> str:
        return f"HumanBackend({self.model})"

    async def complete(self, request: Request) -> Reply:
        """Return a person's answer. Raises CallError if the person left or nobody can be asked."""
        if self._people is None:
            raise CallError(FailureKind.BAD_REQUEST, _NOBODY)
        pending = PersonRequest(
            key=self._make_key(request),
            address=request.address,
            role=request.role,
            view=view_of(request),
            schema=request.schema or b"",
            again=request.retry_reason,
            wait=self._config.seconds,
        )
        answer = await self._people.ask(pending)
        if answer is None:
            raise CallError(FailureKind.LEFT, f"the person left, and gave no answer in {self._config.wait}")
        return Reply(text=scrub(answer.text), finish_reason="stop", model=self.model, given=answer.times)

    async def end(self, scenario: int, task: TaskId) -> None:
        """Notify the people that their conversation has ended."""
        if self._people is not None:
            await self._people.end(scenario, task)

    def _make_key(self, request: Request) -> str:
        """Return a digest of everything that shapes the answer."""
        shaping = (self.model, request.role, request.address, request.messages, request.schema)
        return hashlib.sha256(_encode(shaping)).hexdigest()

    async def models(self) -> list[str] | None:
        """Return None: people cannot be listed."""
        return None

    async def aclose(self) -> None:
        """Do nothing: there are no connections."""


class HumanProvider(RequestFeatures, PricesAndTokens, BatchAnswers, LocalCalls, Provider):
    name = "human"
    Config = HumanConfig
    schema_field = "schema"
    instead_of_batches = "People answer one request at a time: leave --via batch out."
    stays_here = True

    def problems(self, config: HumanConfig) -> list[Problem]:
        try:
            assert config.seconds
        except ValueError as error:
            return [Problem("wait", str(error))]
        return []

    def list_price(self, config: HumanConfig) -> Price:  # noqa: ARG002 - edgen does not pay people
        return Price(prompt=0, completion=0)

    def create(self, config: HumanConfig, key: Key, link: Link) -> Backend:  # noqa: ARG002 - it has no key
        return HumanBackend(config, link.people)


PROVIDER = HumanProvider()
