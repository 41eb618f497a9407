"""A conversation that has to pass gates: without one that passes, it is retried.

It wraps the work of any protocol, which does not know of it. Each retry begins the conversation again, at
attempts that no earlier try has used; so no call is made more often than the job's `asks` allows, both for
unreadable answers and for results that did not pass. The gates may ask for labels themselves: these calls are
part of the try.
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
    """A conversation that passes, and what annotators said of it, by layer."""

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
    """Return the first conversation that passes; the last one's rejection if none does.

    If replicates leave the first one (`branch`), others depend on a conversation, and it is tried once.
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
    """Do the work with every attempt counted from `by` on; return also the highest number of attempts of a
    call. `roles` gets the roles that were asked."""
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
    """Return whether the same conversation would be made again, at temperature 0."""
    backends = [rules.backend(role) for role in roles if role != ANNOTATOR]
    return all(one is not None and one.repeats for one in backends)


def _delay_request(request: Request, by: int, seed: int) -> Request:
    """Return a request, and the alike ones to follow, that many attempts later."""
    address = msgspec.structs.replace(request.address, attempt=request.address.attempt + by)
    alike = tuple(_delay_request(one, by, seed) for one in request.alike)
    return msgspec.structs.replace(request, address=address, seed=make_call_seed(seed, address), alike=alike)
