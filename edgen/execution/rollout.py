"""One task from its start to its outcome: what every scheduler shares.

`run_task` is the loop around a task's generator: it answers from the ledger as far as that leads, has the rest asked,
and records what became of the task.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from edgen.core.errors import FATAL, RETRYABLE, CallError, EdgenError, FailureKind, ProviderError
from edgen.core.values import Reply, Request, Status, TaskId
from edgen.execution.client.model_client import ModelClient
from edgen.execution.scheduler import Work
from edgen.protocols.labelled_units import ABOUT
from edgen.protocols.task import Settled, Spent, Task
from edgen.store.ledger import Outcome

_GONE = 3  # scenarios in a row without an answer at the end of a run: no accident any more


class Rollout:
    """A task on its way. `request` is what it asks now, with its ledger `key` and the `client` that answers for its
    role; None once the task has come to its `result`."""

    __slots__ = ("_clients", "client", "key", "request", "result", "spent", "task")

    request: Request | None
    client: ModelClient
    key: bytes

    def __init__(self, task: Task, clients: Mapping[str, ModelClient]) -> None:
        self.task = task
        self.spent = Spent()
        self.result: Any = None
        self._clients = clients
        self._step(task.protocol.send, None)

    def answer(self, reply: Reply) -> None:
        """Go on with the reply to the present request."""
        assert self.request is not None, "nothing was asked"
        if self.request.address.step < ABOUT:  # a record tells who made it, not who labelled it
            self.spent.add(reply, self.key, self.request.role, self.client.kind, self.client.backend.model)
        self._step(self.task.protocol.send, reply)

    def answer_from(self, stored: Mapping[bytes, Reply]) -> int:
        """Go on with stored replies as far as they lead. Returns how many there were."""
        count = 0
        while self.request is not None and (reply := stored.get(self.key)) is not None:
            self.answer(reply)
            count += 1
        return count

    def fail(self, failure: CallError) -> None:
        """Go on after a call that got no answer. The protocol may know better than to fail: what it asked last
        may be what is wrong. Raises the CallError where it does not."""
        self._step(self.task.protocol.throw, failure)

    def close(self) -> None:
        self.task.protocol.close()

    def _step(self, step: Callable[[Any], Request], given: Any) -> None:
        try:
            self.request = request = step(given)
        except StopIteration as end:
            self.request, self.result = None, end.value
            return
        self.client = self._clients[request.role]
        self.key = self.client.key(request)


# Gets the reply to a rollout's present request, stored; None where it will come in a later round. Raises CallError.
Ask = Callable[[Rollout, Request], Awaitable[Reply | None]]


async def run_task(work: Work, recorder: OutcomeRecorder, unit: tuple[int, TaskId], ask: Ask) -> bool:
    """Run the task of a unit, (index, replicate), to its outcome; False where an answer is still to come."""
    rollout = Rollout(work.tasks.task(*unit), work.clients)
    stored = work.ledger.replies(*unit)
    try:
        while True:
            if stored:
                work.counts.replayed += rollout.answer_from(stored)
            if (request := rollout.request) is None:
                break
            try:
                reply = await ask(rollout, request)
            except CallError as failure:
                rollout.fail(failure)
                continue
            if reply is None:
                return False
            rollout.answer(reply)
    except CallError as failure:
        recorder.fail(unit, rollout, failure)
    else:
        recorder.settle(unit, rollout)
    finally:
        rollout.close()
    return True


class OutcomeRecorder:
    """Records what becomes of tasks, in the ledger and in the counts, and notices when to give up.

    `stop` is told why the run cannot go on; limits.stop_after_failures scenarios in a row without an answer are such
    a reason, unless `lenient`.
    """

    def __init__(self, work: Work, stop: Callable[[EdgenError], None]) -> None:
        self.lenient = False
        self._work = work
        self._stop = stop
        self._stop_after = work.tasks.call_settings.limits.stop_after_failures
        # Those that failed since the last answer. What several of one index wait for fails for all of them.
        self._failed_in_a_row: set[int] = set()
        self._last: CallError | None = None  # of them, where no service answered at all
        self._simulated = False

    def note_answer(self) -> None:
        """An answer came."""
        self._failed_in_a_row.clear()

    def settle(self, unit: tuple[int, TaskId], rollout: Rollout) -> None:
        """Record the outcome of a task that came to its result."""
        if rollout.spent.simulated and not self._simulated:
            self._simulated = True
            self._work.ledger.set_fact("simulated", self._work.fingerprint)
        self._record(unit, rollout, rollout.task.settled(rollout.result, rollout.spent))

    def fail(self, unit: tuple[int, TaskId], rollout: Rollout, failure: CallError) -> None:
        """Record that a task got no answer; stop the run where the next would get none either."""
        if self.lenient:
            self.note_answer()
        if failure.kind in FATAL:
            self._work.ledger.out.forgive(FATAL)  # the next start asks again
            role = rollout.request.role if rollout.request is not None else "default"
            self._stop(ProviderError(f"{backend_prefix(role)}{advice(failure)} {GO_ON}"))
            return
        self._failed_in_a_row.add(unit[0])
        self._last = failure if failure.kind in RETRYABLE else None
        self._record(unit, rollout, Settled(Status.FAILED, str(failure.kind), failure.message))
        if len(self._failed_in_a_row) >= self._stop_after:
            self._give_up(failure)

    def end(self, *, silent: bool) -> None:
        """All tasks have ended. Several without an answer, and none after them: the service is gone, and there were
        not enough left to notice it by. `silent`: whether several calls were begun after the last answer; else those
        that took too long are stragglers that others overtook."""
        last = self._last
        if len(self._failed_in_a_row) < min(_GONE, self._stop_after) or last is None:
            return
        if silent or last.kind is not FailureKind.TIMEOUT:
            self._give_up(last)

    def _give_up(self, failure: CallError) -> None:
        self._stop(
            ProviderError(
                f"{len(self._failed_in_a_row)} scenarios in a row got no answer, the last with "
                f"{describe_failure(failure)}. The run stopped rather than go on for nothing. See what is wrong with "
                f"`edgen doctor JOB`. {GO_ON}"
            )
        )

    def _record(self, unit: tuple[int, TaskId], rollout: Rollout, settled: Settled) -> None:
        outcome = Outcome(
            *unit, settled.status, settled.reason, settled.detail, rollout.task.group, rollout.spent.key
        )
        self._work.ledger.settle(outcome, self._work.fingerprint, settled.record, settled.beside)
        self._work.counts.settle(settled.status, settled.reason)


GO_ON = "Then start the same command again: it goes on where it stopped."
_ADVICE = {
    FailureKind.AUTHENTICATION: "The key is missing or not accepted: check the environment variable that the job names.",
    FailureKind.PERMISSION: "The key may not use this model or service: check its project and permissions.",
    FailureKind.QUOTA: "The account's quota or credit is used up: raise it, or wait until it is renewed.",
    FailureKind.NOT_FOUND: "The model or the path does not exist there: check `model` and `base_url` in the job.",
    FailureKind.BAD_REQUEST: "The request as it stands is not taken: check the backend's parameters and `extra_body`.",
    FailureKind.BAD_OUTPUT: "The server cannot read what its own model wrote: look at its chat template and parser, "
    "and give the model room with `max_tokens`.",
    FailureKind.CONTEXT_OVERFLOW: "The prompt is too long for the model: shorten the template, or give it more context.",
}


def advice(failure: CallError) -> str:
    """A failure, and what a person can do about it."""
    what = _ADVICE.get(failure.kind, "Check that the service runs and that `base_url` is right.")
    return f"The service refused: {describe_failure(failure)}. {what}"


def backend_prefix(role: str) -> str:
    """What a sentence about a role's backend begins with; empty where a job has one backend alone."""
    return "" if role == "default" else f"Backend {role}: "


def describe_failure(failure: CallError) -> str:
    """A failure without its full stop."""
    return str(failure).rstrip(" .?!")
