"""One task from start to outcome, shared by every scheduler.

`run_task` is the loop around a task's generator: it takes replies from the ledger as far as possible,
requests the rest, and records the outcome.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from edgen.core.errors import (
    FATAL,
    RETRYABLE,
    CallError,
    EdgenError,
    FailureKind,
    FailuresError,
    LongPromptError,
    ProviderError,
)
from edgen.core.plugins.faults import blame, refuse_value
from edgen.core.text import describe_type
from edgen.core.values import Rejection, RejectionReason, Reply, Request, Status, TaskId
from edgen.execution.client.model_client import ModelClient
from edgen.execution.early_stop import USELESS, Usefulness
from edgen.execution.failure_texts import GO_ON, add_advice, describe_failure, make_backend_prefix
from edgen.execution.scheduler import Work
from edgen.planning.speakers import explain_rejection
from edgen.protocols.labelled_units import ABOUT
from edgen.protocols.parts import Settled, Spent, Task, close_generator
from edgen.store.ledger import Outcome
from edgen.store.ledger.facts import SIMULATED, put_fact
from edgen.store.ledger.ledger import make_outcome_statements
from edgen.store.ledger.writer import Statement

MOST_REQUESTS = 100_000  # maximum requests of one task: a protocol that asks more never ends
_GONE = 3  # this many unanswered scenarios in a row at the end of a run are no coincidence


class AnyRollout(Protocol):
    """A task in progress, here or at a worker; see Rollout."""

    client: ModelClient  # client of the present request
    key: bytes  # ledger's key of the present request
    request: Request | None  # present request; None: the task has a result
    last: tuple[Request, Reply] | None  # last answered request and its reply
    refused: str  # why the last answer was unusable; empty if it was usable
    fresh: int  # replies that did not come from the ledger

    @property
    def last_key(self) -> bytes | None:
        """The key of the last answered request; None before the first."""

    @property
    def simulated(self) -> bool:
        """True if the simulator wrote at least one answer."""

    @property
    def settled(self) -> Settled:
        """The outcome of a task with a result."""

    @property
    def group(self) -> int:
        """The hash of the task's group for the split."""

    @property
    def checksums(self) -> tuple[int, int] | None:
        """The checksums of the outcome and its record in the ledger, if they are known."""


class Rollout:
    """A task in progress. `request`: the present one, with its ledger `key` and the `client` of its role;
    None once the task has its `result`. `last`: the latest answered request and its reply. `refused`: why
    that reply was unusable; empty if it was usable. `fresh`: the number of newly fetched answers."""

    __slots__ = (
        "_clients", "_requests", "client", "fresh", "key", "last", "refused", "request", "result", "spent",
        "task",
    )  # fmt: skip

    request: Request | None
    client: ModelClient
    key: bytes
    checksums = None  # the ledger computes them

    def __init__(self, task: Task, clients: Mapping[str, ModelClient]) -> None:
        self.task = task
        self.spent = Spent()
        self.result: Any = None
        self.last: tuple[Request, Reply] | None = None
        self.refused = ""
        self.fresh = 0
        self._clients = clients
        self._requests = 0
        self._step(task.protocol.send, None)

    def answer(self, reply: Reply) -> None:
        """Continue with the reply to the present request."""
        asked = self.request
        assert asked is not None, "nothing was asked"
        if asked.address.step < ABOUT:  # a record names the models that made it, not those that labelled it
            self.spent.add(reply, self.key, asked, self.client.kind, self.client.backend.model)
        self._step(self.task.protocol.send, reply)
        if isinstance(self.result, Rejection):
            self.result = explain_rejection(self.result, reply.text, asked)
        self.last, self.refused = (asked, reply), self._find_refusal()

    def _find_refusal(self) -> str:
        """Return why the last answer was unusable, from the next request or the result; empty if it was
        usable. A rejection by a gate does not make an answer unusable."""
        if self.request is not None:
            return self.request.retry_reason
        result = self.result
        if isinstance(result, Rejection) and result.reason is not RejectionReason.GATE:
            return result.code
        return ""

    def answer_from(self, stored: Mapping[bytes, Reply]) -> int:
        """Continue with stored replies as long as they match; return how many were used. `stored`: replies by
        key."""
        count = 0
        while self.request is not None and (reply := stored.get(self.key)) is not None:
            self.answer(reply)
            count += 1
        return count

    def fail(self, failure: CallError) -> None:
        """Continue after a failed call: throw the failure into the protocol, which may handle it. Raises the
        CallError if it does not."""
        self._step(self.task.protocol.throw, failure)

    def close(self) -> None:
        close_generator(self.task.kind, self.task.made_by, self.task.protocol)

    @property
    def last_key(self) -> bytes | None:
        """The key of the last answered request; None before the first."""
        return self.spent.key

    @property
    def simulated(self) -> bool:
        """True if the simulator wrote at least one answer."""
        return self.spent.simulated

    @property
    def settled(self) -> Settled:
        """The outcome of a task with a result."""
        return self.task.settled(self.result, self.spent)

    @property
    def group(self) -> int:
        """The hash of the task's group for the split."""
        return self.task.group

    def _step(self, step: Callable[[Any], Request], given: Any) -> None:
        try:
            self.request = request = step(given)
        except StopIteration as end:
            self.request, self.result = None, end.value
            return
        except LongPromptError as error:
            if not self._requests:
                raise
            raise CallError(FailureKind.CONTEXT_OVERFLOW, f"the next prompt is too long: {error}") from error
        except BaseException as error:  # noqa: BLE001 - raised again
            blame(self.task.kind, self.task.made_by, error)
        if self.task.check is not None:
            self.request = request = self.task.check(request)
        if not isinstance(request, Request):
            refuse_value(
                self.task.kind, self.task.made_by, f"yielded {describe_type(request)}, not a Request"
            )
        if (client := self._clients.get(request.role)) is None:
            known = ", ".join(sorted(self._clients))
            said = f"asked the role {request.role!r}, which its `roles` does not list (listed: {known})"
            refuse_value(self.task.kind, self.task.made_by, said)
        self._requests += 1
        if self._requests > MOST_REQUESTS:
            refuse_value(
                self.task.kind, self.task.made_by, f"asked {MOST_REQUESTS:,} requests and did not end"
            )
        self.client = client
        self.key = self.client.make_key(request)


# Returns the reply to a rollout's present request, already stored; None if it comes in a later round. Raises
# CallError.
Ask = Callable[[Rollout, Request], Awaitable[Reply | None]]


async def run_task(
    work: Work, recorder: OutcomeRecorder, unit: tuple[int, TaskId], ask: Ask, *, fresh: bool = False
) -> bool:
    """Run the task of a unit, (scenario, task), to its outcome; return False if an answer is outstanding.
    `fresh`: this start fetched the last answers in the ledger."""
    rollout = Rollout(work.tasks.make_task(*unit), work.clients)
    stored = work.ledger.read_replies(*unit)
    try:
        while True:
            if stored:
                count = rollout.answer_from(stored)
                work.counts.replayed += count
                if fresh and count:
                    recorder.count_answer(unit, rollout)
                fresh = False
            if (request := rollout.request) is None:
                break
            recorder.refuse_useless()
            try:
                reply = await ask(rollout, request)
            except CallError as failure:
                rollout.fail(failure)
                continue
            if reply is None:
                return False
            rollout.answer(reply)
            recorder.count_answer(unit, rollout)
    except CallError as failure:
        if recorder.is_heard:
            await recorder.end_task(unit)
        recorder.fail(unit, rollout, failure)
    else:
        if recorder.is_heard:
            await recorder.end_task(unit)
        recorder.settle(unit, rollout)
    finally:
        rollout.close()
    return True


class OutcomeRecorder:
    """Recorder of outcomes in the ledger and in the counts. It calls `stop` with the reason if the run should
    end: too few usable answers, a fatal failure, or, unless `lenient`, limits.stop_after_failures scenarios
    in a row without an answer."""

    def __init__(self, work: Work, stop: Callable[[EdgenError], None]) -> None:
        self.lenient = False
        self._work = work
        self._usable: defaultdict[str, int] = defaultdict(int)  # answers by role, while all are usable
        self._accepted = 0  # tasks with new answers, while all are accepted
        self._usefulness = Usefulness(work, {}, 0) if work.ledger.read_fact(USELESS) else None
        self._hearing = [one.hears_ends for one in {*work.clients.values()} if one.hears_ends is not None]
        self._stop = stop
        self._stop_after = work.tasks.call_settings.limits.stop_after_failures
        # Scenarios failed since the last answer. A set, since a shared request fails for all replicates that
        # wait for it.
        self._failed_in_a_row: set[int] = set()
        self._last: CallError | None = None  # their last failure, if a retry may fix it
        self._simulated = False

    def refuse_useless(self) -> None:
        """Raise UselessError if the run stopped as useless before and nothing has changed since. Called
        before each request."""
        if self._usefulness is not None:
            self._usefulness.refuse_useless()

    @property
    def is_heard(self) -> bool:
        """True if a backend wants to hear of ends of tasks."""
        return bool(self._hearing)

    async def end_task(self, unit: tuple[int, TaskId]) -> None:
        """Notify the backends that want to hear of ends of tasks. Call it before the outcome is stored: after
        a kill in between, they are notified again."""
        for backend in self._hearing:
            await backend.end(*unit)

    def note_answer(self) -> None:
        """Record that an answer has arrived."""
        self._failed_in_a_row.clear()

    def count_answer(self, unit: tuple[int, TaskId], rollout: AnyRollout) -> None:
        """Count a rollout's latest, newly fetched answer. A shared answer counts for the task that requested
        it."""
        assert rollout.last is not None, "it was answered"
        request, reply = rollout.last
        if request.address.task != unit[1]:
            return
        rollout.fresh += 1
        if self._usefulness is None:
            if not rollout.refused:
                self._usable[request.role] += 1
                return
            self._usefulness = Usefulness(self._work, self._usable, self._accepted)
        retried = rollout.request is not None
        forms = self._work.clients[request.role].form_support
        self._usefulness.count_answer(request, reply, rollout.refused, forms, retried=retried)
        self._stop_if_useless(self._usefulness)

    def _stop_if_useless(self, usefulness: Usefulness) -> None:
        if (reason := usefulness.reach_verdict()) is not None:
            self._stop(reason)

    def settle(self, unit: tuple[int, TaskId], rollout: AnyRollout) -> None:
        """Record the outcome of a task with a result."""
        settled = rollout.settled
        self._work.ledger.writer.add(*self.make_statements(unit, rollout, settled))
        self.count_outcome(rollout, settled)

    def make_statements(
        self, unit: tuple[int, TaskId], rollout: AnyRollout, settled: Settled
    ) -> list[Statement]:
        """Return the statements that store the outcome of a task. Call `count_outcome` after storing."""
        end = Outcome(*unit, settled.status, settled.reason, settled.detail, rollout.group, rollout.last_key)
        statements = make_outcome_statements(
            end, self._work.fingerprint, settled.record, settled.additional, rollout.checksums
        )
        if rollout.simulated and not self._simulated:
            self._simulated = True
            statements += put_fact(SIMULATED, self._work.fingerprint)
        return statements

    def count_outcome(self, rollout: AnyRollout, settled: Settled) -> None:
        """Count the outcome of a task with a result."""
        self._work.counts.settle(settled.status, settled.reason)
        if not rollout.fresh:
            return
        if self._usefulness is None:
            if settled.status is Status.ACCEPTED:
                self._accepted += 1
                return
            self._usefulness = Usefulness(self._work, self._usable, self._accepted)
        self._usefulness.count_settled(settled.status, settled.reason)
        self._stop_if_useless(self._usefulness)

    def fail(self, unit: tuple[int, TaskId], rollout: AnyRollout, failure: CallError) -> None:
        """Record that a task got no answer. Stop the run if further tasks would get none either."""
        if self.lenient:
            self.note_answer()
        if failure.kind is FailureKind.LEFT:
            self._record_end(unit, rollout, Settled(Status.REJECTED, str(failure.kind), failure.message))
            return
        if failure.kind in FATAL:
            self._work.ledger.out.ignore_failures(FATAL)  # the next start retries
            role = rollout.request.role if rollout.request is not None else "default"
            self._stop(ProviderError(f"{make_backend_prefix(role)}{add_advice(failure)} {GO_ON}"))
            return
        self._failed_in_a_row.add(unit[0])
        self._last = failure if failure.kind in RETRYABLE else None
        self._record_end(unit, rollout, Settled(Status.FAILED, str(failure.kind), failure.message))
        if len(self._failed_in_a_row) >= self._stop_after:
            self._give_up(failure)

    def end(self, *, silent: bool) -> None:
        """Handle the end of all tasks: stop the run if the last scenarios got no answer, though too few for
        limits.stop_after_failures. `silent`: several calls began after the last answer; else calls that timed
        out are stragglers."""
        last = self._last
        if len(self._failed_in_a_row) < min(_GONE, self._stop_after) or last is None:
            return
        if silent or last.kind is not FailureKind.TIMEOUT:
            self._give_up(last)

    def _give_up(self, failure: CallError) -> None:
        self._stop(
            FailuresError(
                f"{len(self._failed_in_a_row)} scenarios in a row got no answer, the last with "
                f"{describe_failure(failure)}. The run stopped, because more calls would be useless. `edgen "
                f"doctor JOB` shows what is wrong. {GO_ON}"
            )
        )

    def _record_end(self, unit: tuple[int, TaskId], rollout: AnyRollout, settled: Settled) -> None:
        """Record the outcome of a task without a result."""
        outcome = Outcome(
            *unit, settled.status, settled.reason, settled.detail, rollout.group, rollout.last_key
        )
        self._work.ledger.settle(outcome, self._work.fingerprint, None)
        self._work.counts.settle(settled.status, settled.reason)
