"""One task's generator between two requests, and what becomes of it in the end: what every driver shares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from edgen.engine.line import Line
from edgen.engine.tally import Tally
from edgen.engine.task import Settled, Spent, Task
from edgen.errors import FATAL, RETRYABLE, CallError, EdgenError, FailureKind, ProviderError
from edgen.ledger import Ledger, Outcome
from edgen.model import Reply, Request, Status

_GONE = 3  # scenarios in a row without an answer at the end of a run: no accident any more


class Walk:
    """A task on its way. Every method returns what it asks next, None when it has come to its `result`."""

    __slots__ = ("request", "result", "spent", "task")

    def __init__(self, task: Task) -> None:
        self.task = task
        self.spent = Spent()
        self.result: Any = None
        self.request: Request | None = None  # the one that waits for its answer

    def start(self) -> Request | None:
        return self._step(self.task.protocol.send, None)

    def answer(self, reply: Reply, key: bytes, line: Line) -> Request | None:
        """Go on with the reply to the last request."""
        assert self.request is not None, "nothing was asked"
        self.spent.add(reply, key, self.request.role, line.kind, line.backend.model)
        return self._step(self.task.protocol.send, reply)

    def fail(self, failure: CallError) -> Request | None:
        """Go on after a call that got no answer. The protocol may know better than to fail: what it asked last
        may be what is wrong. Raises the CallError where it does not."""
        return self._step(self.task.protocol.throw, failure)

    def close(self) -> None:
        self.task.protocol.close()

    def _step(self, step: Callable[[Any], Request], given: Any) -> Request | None:
        try:
            self.request = step(given)
        except StopIteration as end:
            self.request, self.result = None, end.value
            return None
        return self.request


class Ends:
    """What becomes of walks: outcomes in the ledger and the tally, and the moment at which to give up.

    `stop` is told why the run cannot go on; `stop_after` scenarios in a row without an answer are such a reason.
    """

    def __init__(
        self,
        ledger: Ledger,
        fingerprint: str,
        tally: Tally,
        stop: Callable[[EdgenError], None],
        stop_after: int,
    ) -> None:
        self._ledger = ledger
        self._fingerprint = fingerprint
        self._tally = tally
        self._stop = stop
        self._stop_after = stop_after
        # Those that failed since the last answer. What several of one index wait for fails for all of them.
        self._failed_in_a_row: set[int] = set()
        self._last: CallError | None = None  # of them, where no service answered at all
        self._simulated = False

    def answered(self) -> None:
        """An answer came."""
        self._failed_in_a_row.clear()

    def settle(self, index: int, replicate: int, walk: Walk) -> None:
        """A walk came to its result."""
        if walk.spent.simulated and not self._simulated:
            self._simulated = True
            self._ledger.set_fact("simulated", self._fingerprint)
        self._note(index, replicate, walk, walk.task.settled(walk.result, walk.spent))

    def fail(self, index: int, replicate: int, walk: Walk, failure: CallError) -> None:
        """A walk broke off for want of an answer."""
        if failure.kind in FATAL:
            role = walk.request.role if walk.request is not None else "default"
            which = "" if role == "default" else f"Backend {role}: "
            self._stop(ProviderError(f"{which}{advice(failure)} {GO_ON}"))
            return
        self._failed_in_a_row.add(index)
        self._last = failure if failure.kind in RETRYABLE else None
        self._note(index, replicate, walk, Settled(Status.FAILED, str(failure.kind), failure.message))
        if len(self._failed_in_a_row) >= self._stop_after:
            self._give_up(failure)

    def over(self, *, silent: bool) -> None:
        """All walks have ended. Several that ended without an answer, and none after them: the service is gone,
        and there were not enough left to notice it by. `silent`: whether several calls were begun after the last
        answer; else those that took too long are stragglers that others overtook."""
        last = self._last
        if len(self._failed_in_a_row) < min(_GONE, self._stop_after) or last is None:
            return
        if silent or last.kind is not FailureKind.TIMEOUT:
            self._give_up(last)

    def _give_up(self, failure: CallError) -> None:
        self._stop(
            ProviderError(
                f"{len(self._failed_in_a_row)} scenarios in a row got no answer, the last with "
                f"{clause(failure)}. The run stopped rather than go on for nothing. See what is wrong with "
                f"`edgen doctor JOB`. {GO_ON}"
            )
        )

    def _note(self, index: int, replicate: int, walk: Walk, settled: Settled) -> None:
        outcome = Outcome(
            index, replicate, settled.status, settled.reason, settled.detail, walk.task.group, walk.spent.key
        )
        self._ledger.settle(outcome, self._fingerprint, settled.record)
        self._tally.settle(settled.status, settled.reason)


GO_ON = "Then start the same command again: it goes on where it stopped."
_ADVICE = {
    FailureKind.AUTHENTICATION: "The key is missing or not accepted: check the environment variable that the job names.",
    FailureKind.PERMISSION: "The key may not use this model or service: check its project and permissions.",
    FailureKind.QUOTA: "The account's quota or credit is used up: raise it, or wait until it is renewed.",
    FailureKind.NOT_FOUND: "The model or the path does not exist there: check `model` and `base_url` in the job.",
    FailureKind.BAD_REQUEST: "The request as it stands is not taken: check the backend's parameters and `extra_body`.",
    FailureKind.CONTEXT_OVERFLOW: "The prompt is too long for the model: shorten the template, or give it more context.",
}


def advice(failure: CallError) -> str:
    """A failure, and what a person can do about it."""
    what = _ADVICE.get(failure.kind, "Check that the service runs and that `base_url` is right.")
    return f"The service refused: {clause(failure)}. {what}"


def clause(failure: CallError) -> str:
    """A failure without its full stop."""
    return str(failure).rstrip(" .?!")
