"""A conversation that has to pass gates: what comes to none that passes is asked for again.

It wraps the work of any protocol, which knows nothing of it. Each further try begins the conversation anew, at attempts
that no try before has used; so no call is asked for more often than the job's `asks` allows, whether an answer could not
be read or what it came to did not pass.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

import msgspec

from edgen.core.errors import CallError
from edgen.core.values import Conversation, Rejection, Reply, Request
from edgen.protocols.base import Conversing, Result, Rules, call_seed

Refuse = Callable[[Conversation], Rejection | None]  # why a conversation does not pass


def gated(start: Callable[[Rules], Conversing], rules: Rules, refuse: Refuse) -> Conversing:
    """The first conversation that passes; the last one's rejection if none does. Where replicates leave the first one
    (`branch`), a conversation is what others rest on, and is tried once."""
    used = 0
    while True:
        left = msgspec.structs.replace(rules, asks=rules.asks - used)
        result, more = yield from _shifted(start(left), used, rules.seed)
        refused = refuse(result) if isinstance(result, Conversation) else None
        used += more
        if refused is None:
            return result
        if used >= rules.asks or rules.branch is not None:
            return refused


def _shifted(work: Conversing, by: int, seed: int) -> Generator[Request, Reply, tuple[Result, int]]:
    """The work with every attempt counted from `by` on; also how many attempts the call that took most has used."""
    used = 1
    try:
        request = next(work)
        while True:
            used = max(used, request.address.attempt + 1)
            try:
                reply = yield _later(request, by, seed) if by else request
            except CallError as failure:
                request = work.throw(failure)
            else:
                request = work.send(reply)
    except StopIteration as end:
        return end.value, used
    finally:
        work.close()


def _later(request: Request, by: int, seed: int) -> Request:
    """A request, and those that will be alike, so many attempts later."""
    address = msgspec.structs.replace(request.address, attempt=request.address.attempt + by)
    alike = tuple(_later(one, by, seed) for one in request.alike)
    return msgspec.structs.replace(request, address=address, seed=call_seed(seed, address), alike=alike)
