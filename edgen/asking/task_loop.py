"""The loop of every asker: what has no answer yet is asked, under supervision, and kept in the asker's
ledger."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from edgen.asking.answering import AskerBackends
from edgen.asking.asker import Asker
from edgen.asking.ledger_paths import AskerFolder
from edgen.core.errors import EdgenError
from edgen.execution.session import RunSession, SharedState
from edgen.runtime.control import Control
from edgen.runtime.monitor import Monitor
from edgen.runtime.supervise import Supervised, supervise, tell_lost_replies
from edgen.store.ledger import Ledger

A = TypeVar("A", bound=Asker[Any, Any], covariant=True)


class AtWork(NamedTuple, Generic[A]):
    """An asker with the backends that answer it."""

    asker: A
    answering: AskerBackends


async def ask(work: Sequence[AtWork[Asker[Any, Any]]], place: AskerFolder, control: Control) -> None:
    """Have askers of one place ask, side by side, what their ledgers do not hold yet.

    They share the budget and the limits of each service. Raises what stopped them.
    """
    paths = [place.ledger(one.asker) for one in work]
    shared = SharedState(work[0].asker.job.limits)
    async with contextlib.AsyncExitStack() as stack:
        parts: list[Supervised] = []
        for (asker, answering), path in zip(work, paths, strict=True):
            place.note(asker)
            ledger = await stack.enter_async_context(Ledger(path, logprobs=asker.logprobs))
            tell_lost_replies(ledger, control)
            session = RunSession(
                asker,
                answering.backends,
                ledger,
                roles=asker.roles,
                elsewhere=() if parts else place.find_use_elsewhere(paths),
                scheduler=answering.scheduler,
                shared=shared,
            )
            session.counts.planned = asker.planned
            parts.append(Supervised(session, asker.title, _work_of(asker, session)))
        await supervise(parts, control)


async def ask_until_ended(
    work: Sequence[AtWork[Asker[Any, Any]]], place: AskerFolder, control: Control
) -> EdgenError | None:
    """Do the same as `ask`, but return the error that stopped the askers once one of them has a ledger, whose
    content can then be reported."""
    try:
        await ask(work, place, control)
    except EdgenError as error:
        if not any(place.ledger(one.asker).exists() for one in work):
            raise
        return error
    return None


def _work_of(asker: Asker[Any, Any], session: RunSession) -> Callable[[Monitor], Awaitable[object]]:
    return lambda _monitor: asker.work_through(session)
