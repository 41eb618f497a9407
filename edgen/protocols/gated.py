"""Gates: a conversation is retried until it passes.

This wraps the work of any protocol, which does not know of it. Each retry starts the conversation again, with
attempt numbers that no earlier try has used. So the job's `asks` limits every call, for unreadable answers
and for failed gates together. The gates may request labels: these calls are part of the try.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping
from typing import NamedTuple

import msgspec

from edgen.config import ANNOTATOR
from edgen.core.errors import CallError
from edgen.core.values import Conversation, Rejection, Reply, Request
from edgen.protocols.base import Conversing, Rules, make_call_seed
from edgen.protocols.labelled_units import Said


class PassedConversation(NamedTuple):
    """A conversation that passes, and its labels by annotators, by layer."""

    conversation: Conversation
    labels: Mapping[str, Said]


Decided = Generator[Request, Reply, Mapping[str, Said] | Rejection]
"""Why a conversation does not pass; what annotators said of one that does."""
Decide = Callable[[Conversation, Rules], Decided]
Gated = Generator[Request, Reply, PassedConversation | Rejection]


class _Tried(NamedTuple):
    result: PassedConversation | Rejection
    refused: bool = False  # by a gate


def try_until_passed(start: Callable[[Rules], Conversing], rules: Rules, decide: Decide) -> Gated:
    """Return the first conversation that passes, or the rejection of the last one.

    In a branching job, other replicates depend on a conversation, so it is tried once.
    """
    used = 0
    while True:
        left = msgspec.structs.replace(rules, asks=rules.asks - used)
        roles: set[str] = set()
        tried, more = yield from _shift_attempts(_try(start(left), left, decide), used, rules.seed, roles)
        used += more
        if tried.refused and _would_repeat(roles, rules):
            return tried.result
        if not tried.refused or used >= rules.asks or rules.branch is not None:
            return tried.result


def _try(work: Conversing, rules: Rules, decide: Decide) -> Generator[Request, Reply, _Tried]:
    made = yield from work
    if isinstance(made, Rejection):
        return _Tried(made)
    decided = yield from decide(made, rules)
    if isinstance(decided, Rejection):
        return _Tried(decided, refused=True)
    return _Tried(PassedConversation(made, decided))


def _shift_attempts(
    work: Generator[Request, Reply, _Tried], by: int, seed: int, roles: set[str]
) -> Generator[Request, Reply, tuple[_Tried, int]]:
    """Do the work with attempts counted from `by`. Return its result and the highest number of attempts of a
    call. The roles of all requests are added to `roles`."""
    used = 1
    try:
        request = next(work)
        while True:
            used = max(used, request.address.attempt + 1)
            roles.add(request.role)
            try:
                reply = yield _delay_request(request, by, seed) if by else request
            except CallError as failure:
                request = work.throw(failure)
            else:
                request = work.send(reply)
    except StopIteration as end:
        return end.value, used
    finally:
        work.close()


def _would_repeat(roles: Collection[str], rules: Rules) -> bool:
    """Return whether a retry would make the same conversation again, since all models answer at temperature
    0."""
    backends = [rules.backend(role) for role in roles if role != ANNOTATOR]
    return all(one is not None and one.repeats for one in backends)


def _delay_request(request: Request, by: int, seed: int) -> Request:
    """Return a request and its `same_prompt` ones with their attempt numbers raised by `by`."""
    address = msgspec.structs.replace(request.address, attempt=request.address.attempt + by)
    same_prompt = tuple(_delay_request(one, by, seed) for one in request.same_prompt)
    return msgspec.structs.replace(
        request, address=address, seed=make_call_seed(seed, address), same_prompt=same_prompt
    )
