"""Calls that ask the very same, joined to one request for several answers, so that their prompt is paid once.

Whoever asks first asks for all: for the calls that its request names as alike, and, at the first request of a task, for those of the
task's twins. That twins ask the same is not believed: their protocols are begun, and their first requests compared. All answers are
stored in one group, each under its own key, before any of them is used. A call whose answer did not come is made by
itself; so is each where the service refuses to give several.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from edgen.core.errors import CallError, FailureKind
from edgen.core.values import Address, Reply, Request, Usage
from edgen.execution.client.budget import BudgetExhausted
from edgen.execution.client.model_client import Answer, ModelClient
from edgen.execution.rollout import Rollout
from edgen.execution.scheduler import Work

log = logging.getLogger("edgen")


class Place(NamedTuple):
    """A call that an answer belongs to."""

    address: Address
    key: bytes


class Share(NamedTuple):
    """A call's answer, with what it is charged at."""

    place: Place
    reply: Reply
    charged_tokens: int
    cost_usd: float | None


AskOne = Callable[[Rollout, Request], Awaitable[Reply]]
AskSeveral = Callable[[Rollout, Request, Sequence[Place]], Awaitable[Reply]]


class JoinedCalls:
    """Joins the calls of a scheduler, which makes one call with `one`, and one for several places with `several`."""

    def __init__(self, work: Work, one: AskOne, several: AskSeveral) -> None:
        self._work = work
        self._one, self._several = one, several
        self._under_way: dict[bytes, asyncio.Future[None]] = {}
        self._refused: set[str] = set()  # names of clients whose services give one answer alone

    async def ask(self, rollout: Rollout, request: Request) -> Reply:
        """The answer to a rollout's request, stored. Raises CallError and what stops the run."""
        client = rollout.client
        same, waited = client.key(_anonymous(request)), False
        while (under_way := self._under_way.get(same)) is not None:
            waited = True
            await asyncio.shield(under_way)  # who stops waiting leaves the others waiting
        if (stored := self._work.ledger.reply(request.address, rollout.key)) is not None:
            return stored
        alone = waited or client.name in self._refused
        others = [] if alone else [*self._open_places(rollout, request)]
        if not others:
            return await self._one(rollout, request)
        ended = self._under_way[same] = asyncio.get_running_loop().create_future()
        try:
            return await self._lead(rollout, request, [Place(request.address, rollout.key), *others])
        finally:
            del self._under_way[same]
            ended.set_result(None)

    def _open_places(self, rollout: Rollout, request: Request) -> Iterator[Place]:
        """The calls without an answer that ask the same, as many as one request may bring answers to besides its own."""
        client, ledger = rollout.client, self._work.ledger
        room = client.most_choices - 1
        for place in (*_named(client, request), *self._twins(rollout, request)):
            if room and ledger.reply(*place) is None:
                room -= 1
                yield place

    def _twins(self, rollout: Rollout, request: Request) -> Iterator[Place]:
        """The first calls of the tasks that may ask the same, of those that do."""
        if rollout.spent.asks:
            return
        tasks, address = self._work.tasks, request.address
        for name in tasks.twins(address.scenario, address.task):
            twin = Rollout(tasks.task(address.scenario, name), self._work.clients)
            asked = twin.request
            twin.close()
            if asked is not None and _anonymous(asked) == _anonymous(request):
                yield Place(asked.address, twin.key)

    async def _lead(self, rollout: Rollout, request: Request, places: Sequence[Place]) -> Reply:
        """Ask for several; by itself where that cannot be."""
        wanted = msgspec.structs.replace(request, choices=len(places))
        try:
            return await self._several(rollout, wanted, places)
        except BudgetExhausted:
            return await self._one(rollout, request)
        except CallError as failure:
            if failure.kind is not FailureKind.BAD_REQUEST:
                raise
            reply = await self._one(rollout, request)  # raises it again where the request itself is bad
            self._refuse(rollout.client.name, str(failure).rstrip(" ."))
            return reply

    def _refuse(self, name: str, said: str) -> None:
        if name not in self._refused:
            self._refused.add(name)
            log.warning(
                "backend %s: the service gives one answer to a request (%s), so calls that ask the same go one by one; "
                "`choices` can be left out.",
                name,
                said,
            )


def _anonymous(request: Request) -> Request:
    """What is asked, whoever asks."""
    return msgspec.structs.replace(request, address=Address(request.address.scenario, 0), seed=0, alike=())


def _named(client: ModelClient, request: Request) -> Iterator[Place]:
    return (Place(one.address, client.key(one)) for one in request.alike)


def share_out(answer: Answer, places: Sequence[Place], price: Callable[[int, int], float]) -> list[Share]:
    """Each call's part of an answer, as far as there are choices.

    A service counts what all choices took together: each is given a part of the completion by its length, and the
    first one the prompt and what is left. So the parts add up to what was counted and charged.
    """
    first = msgspec.structs.replace(answer.reply, others=())
    others = answer.reply.others[: len(places) - 1]
    usage, cost = answer.reply.usage, answer.cost_usd
    letters = sum(len(one.text) for one in (first, *answer.reply.others)) or 1
    counts = [0 if usage is None else usage.completion_tokens * len(one.text) // letters for one in others]
    costs = [price(0, count) for count in counts]
    if usage is not None:
        left = usage.completion_tokens - sum(counts)
        first = msgspec.structs.replace(first, usage=msgspec.structs.replace(usage, completion_tokens=left))
        others = tuple(
            msgspec.structs.replace(one, usage=Usage(0, count))
            for one, count in zip(others, counts, strict=True)
        )
    own = None if cost is None else round(cost - sum(costs), 12)
    shares = [Share(places[0], first, answer.charged_tokens - sum(counts), own)]
    for place, one, count, usd in zip(places[1:], others, counts, costs, strict=False):
        shares.append(Share(place, one, count, None if cost is None else usd))
    return shares
