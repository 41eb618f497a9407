"""Identical calls joined into one request for several answers, so that their prompt is paid once.

The first call also requests answers for the calls that its request lists as `same_prompt` and, at a task's
first request, for the first calls of the task's siblings. Siblings are verified: their protocols are started
and their first requests compared. All answers are stored in one group, each under its own key, before any is
used. A call whose answer is missing is made separately. If the service rejects the number of answers, half as
many are requested.

`SharedCalls` sends a request of several tasks once, such as those of the turns before a branch.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from edgen.core.errors import CallError, FailureKind
from edgen.core.values import Address, Reply, Request, Usage
from edgen.execution.client.admission import AdmissionClosed
from edgen.execution.client.budget import BudgetExhausted
from edgen.execution.client.call import Answer
from edgen.execution.client.model_client import ModelClient
from edgen.execution.rollout import AnyRollout, Rollout
from edgen.execution.scheduler import Work

log = logging.getLogger("edgen")


class CallPlace(NamedTuple):
    """A call's place in the ledger."""

    address: Address
    key: bytes


class CallShare(NamedTuple):
    """A call's answer, with its charges."""

    place: CallPlace
    reply: Reply
    charged_tokens: int
    cost_usd: float | None


AskFor = Callable[[AnyRollout, Request, Sequence[CallPlace]], Awaitable[Reply]]


class SharedCalls:
    """Sends a request that several tasks share only once, and gives its answer to each. `ask`: the
    scheduler's method that sends a request."""

    def __init__(self, work: Work, ask: Callable[[AnyRollout, Request], Awaitable[Reply]]) -> None:
        self._work = work
        self._ask = ask
        self._asking: dict[bytes, asyncio.Future[Reply]] = {}  # running requests, by key

    async def ask(self, rollout: AnyRollout, request: Request) -> Reply:
        """Return the stored answer to a rollout's request. Raises CallError and errors that stop the run."""
        key = rollout.key
        if (asked := self._asking.get(key)) is not None:
            return await asyncio.shield(asked)  # a cancelled waiter must not cancel the others
        if (stored := self._work.ledger.read_reply(request.address, key)) is not None:
            return stored
        asked = self._asking[key] = asyncio.get_running_loop().create_future()
        try:
            reply = await self._ask(rollout, request)
        except BaseException as problem:
            asked.set_exception(problem if isinstance(problem, CallError) else AdmissionClosed())
            asked.exception()  # marks it as retrieved: there may be no waiter
            raise
        finally:
            del self._asking[key]
        asked.set_result(reply)
        return reply


class JoinedCalls:
    """Joins identical calls of a scheduler. `ask_for`: the scheduler's method that makes one call for one or
    several places."""

    def __init__(self, work: Work, ask_for: AskFor) -> None:
        self._work = work
        self._ask_for = ask_for
        self._under_way: dict[bytes, asyncio.Future[frozenset[bytes]]] = {}  # keys of running requests
        # By client name: maximum answers per request, after a rejection; the first request for several
        # answers, while it runs; and clients whose services have returned several.
        self._most: dict[str, int] = {}
        self._trial: dict[str, asyncio.Future[None]] = {}
        self._proven: set[str] = set()

    async def ask(self, rollout: AnyRollout, request: Request) -> Reply:
        """Return the stored answer to a rollout's request. Raises CallError and errors that stop the run."""
        client = rollout.client
        same, alone = client.make_key(_strip_address(request)), False
        own = CallPlace(request.address, rollout.key)
        while True:
            while (under_way := self._under_way.get(same)) is not None:
                # Shielded: other waiters go on if this one stops. A call without an answer is made alone.
                alone |= rollout.key in await asyncio.shield(under_way)
            if (stored := self._work.ledger.read_reply(*own)) is not None:
                return stored
            others = [] if alone else [*self._open_places(rollout, request)]
            if not others:
                return await self._ask_for(rollout, request, [own])
            if (trial := self._trial.get(client.name)) is None:
                break
            await asyncio.shield(trial)
        places = [own, *others]
        ended = self._under_way[same] = asyncio.get_running_loop().create_future()
        try:
            with self._serialize_trials(client.name):
                return await self._lead(rollout, request, places)
        finally:
            del self._under_way[same]
            ended.set_result(frozenset(place.key for place in places))

    @contextlib.contextmanager
    def _serialize_trials(self, name: str) -> Iterator[None]:
        """Serialise requests for several answers until a service has returned several, so that one worker
        meets a rejection, not all."""
        if name in self._proven:
            yield
            return
        trial = self._trial[name] = asyncio.get_running_loop().create_future()
        try:
            yield
        finally:
            del self._trial[name]
            trial.set_result(None)

    def _open_places(self, rollout: AnyRollout, request: Request) -> Iterator[CallPlace]:
        """Yield unanswered identical calls, as many as one request can answer in addition to its own."""
        client, ledger = rollout.client, self._work.ledger
        room = self._most.get(client.name, client.most_choices) - 1
        for place in (*_list_named_places(client, request), *self._iterate_siblings(rollout, request)):
            if room and ledger.read_reply(*place) is None:
                room -= 1
                yield place

    def _iterate_siblings(self, rollout: AnyRollout, request: Request) -> Iterator[CallPlace]:
        """Yield the first calls of sibling tasks, if they are identical to this request."""
        if rollout.last_key is not None:
            return
        tasks, address = self._work.tasks, request.address
        for name in tasks.list_sibling_tasks(address.scenario, address.task):
            sibling = Rollout(tasks.make_task(address.scenario, name), self._work.clients)
            asked = sibling.request
            sibling.close()
            if asked is not None and _strip_address(asked) == _strip_address(request):
                yield CallPlace(asked.address, sibling.key)

    async def _lead(self, rollout: AnyRollout, request: Request, places: Sequence[CallPlace]) -> Reply:
        """Request answers for several places, or for the first if that is not possible."""
        wanted = msgspec.structs.replace(request, choices=len(places))
        try:
            reply = await self._ask_for(rollout, wanted, places)
            self._proven.add(rollout.client.name)
            return reply
        except BudgetExhausted:
            return await self._ask_for(rollout, request, places[:1])
        except CallError as failure:
            if failure.kind is not FailureKind.BAD_REQUEST:
                raise
            # If the request itself is invalid, this raises again.
            reply = await self._ask_for(rollout, request, places[:1])
            self._ask_fewer(rollout.client.name, len(places), str(failure).rstrip(" ."))
            return reply

    def _ask_fewer(self, name: str, refused: int, said: str) -> None:
        """After a service rejects n answers per request, cap later requests at n // 2, at least 2; then
        at 1."""
        most = max(refused // 2, 2 if refused > 2 else 1)
        if most >= self._most.get(name, refused):
            return
        self._most[name] = most
        how = "one" if most == 1 else f"{most} at most"
        log.warning(
            "backend %s: the service does not give %d answers to a request (%s); edgen requests %s now.",
            name,
            refused,
            said,
            how,
        )


def _strip_address(request: Request) -> Request:
    """Return the request without its address."""
    return msgspec.structs.replace(
        request, address=Address(request.address.scenario, 0), seed=0, same_prompt=()
    )


def _list_named_places(client: ModelClient, request: Request) -> Iterator[CallPlace]:
    return (CallPlace(one.address, client.make_key(one)) for one in request.same_prompt)


def split_choices(
    answer: Answer, places: Sequence[CallPlace], price: Callable[[int, int], float]
) -> list[CallShare]:
    """Return each call's share of an answer with several choices; calls without a choice get none.

    A service counts all choices together. Each call gets a part of the completion by length; the first also
    gets the prompt and the remainder. So the parts add up to the counted and charged amounts. `price`: US
    dollars of (prompt, completion) tokens.
    """
    if not answer.reply.others:
        return [CallShare(places[0], answer.reply, answer.charged_tokens, answer.cost_usd)]
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
    shares = [CallShare(places[0], first, answer.charged_tokens - sum(counts), own)]
    for place, one, count, usd in zip(places[1:], others, counts, costs, strict=False):
        shares.append(CallShare(place, one, count, None if cost is None else usd))
    return shares
