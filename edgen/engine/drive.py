"""Drives conversations online: a bounded set of workers, each running one protocol at a time.

A worker takes the next conversation, feeds its protocol from the ledger where the ledger knows the
answer and from the backend where not, stores every answer before the protocol sees it, and settles
the outcome. A bad answer is data; only bugs raise.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from edgen.engine.line import Line
from edgen.engine.plan import Plan, Spent
from edgen.engine.tally import Tally
from edgen.errors import FATAL, CallError, EdgenError, FailureKind, ProviderError
from edgen.ledger import Ledger, Outcome
from edgen.limits import AdmissionClosed
from edgen.model import Conversation, Rejection, RejectionReason, Reply, Request, Scenario, Status
from edgen.validation import is_valid

GRACE = 30.0  # seconds that calls in flight are given to end once the run is to stop
SLACK = 256  # workers beyond the calls in flight: their answers wait for the disk


class Driver:
    """Runs conversations until they are all settled or something stops the run."""

    def __init__(
        self,
        plan: Plan,
        lines: Mapping[str, Line],
        ledger: Ledger,
        fingerprint: str,
        tally: Tally,
        *,
        grace: float = GRACE,
    ) -> None:
        self.tally = tally
        self._plan = plan
        self._lines = lines
        self._ledger = ledger
        self._fingerprint = fingerprint
        self._grace = grace
        self._stop_after = plan.job.limits.stop_after_failures
        self._failures_in_a_row = 0
        self._simulated = False
        self._reason: EdgenError | None = None
        self._stopping = asyncio.Event()
        self._backing_off: set[asyncio.Task[Any]] = set()

    @property
    def stopped(self) -> EdgenError | None:
        """Why the run stops, None while it goes on."""
        return self._reason

    @property
    def in_flight(self) -> int:
        """Calls that the backends work on now."""
        return sum(line.admission.running for line in set(self._lines.values()))

    @property
    def paused_for(self) -> float:
        """Seconds that a service has asked to wait, 0 if none has."""
        return max(line.admission.paused_for for line in self._lines.values())

    def stop(self, reason: EdgenError) -> None:
        """Admit nothing more; calls in flight may end. The first reason counts."""
        if self._reason is not None:
            return
        self._reason = reason
        self._stopping.set()
        for line in self._lines.values():
            line.admission.close()
        for task in list(self._backing_off):
            task.cancel()

    def hurry(self) -> None:
        """End the wait for calls in flight."""
        self._grace = 0.0

    async def run(self, units: Iterator[tuple[int, int]]) -> None:
        """Work through (scenario, replicate) pairs. Raises the reason if the run was stopped."""
        count = self._plan.job.limits.in_flight * len(self._lines) + SLACK
        workers = [asyncio.create_task(self._work(units)) for _ in range(count)]
        everybody = asyncio.gather(*workers)
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            either: set[asyncio.Future[Any]] = {everybody, stopping}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not everybody.done():
                await self._let_end(everybody)
        finally:
            for task in (*workers, stopping):
                task.cancel()
            await asyncio.gather(*workers, stopping, return_exceptions=True)
        if everybody.done() and not everybody.cancelled():
            everybody.result()  # a worker's bug, if there was one
        if self._reason is not None:
            raise self._reason

    async def _let_end(self, everybody: asyncio.Future[list[None]]) -> None:
        """Wait for the workers' calls in flight, as long as the grace lasts; `hurry` ends it."""
        clock = asyncio.get_running_loop().time
        started = clock()
        while not everybody.done() and clock() - started < self._grace:
            await asyncio.wait({everybody}, timeout=0.1)

    async def _work(self, units: Iterator[tuple[int, int]]) -> None:
        for index, replicate in units:
            if self._reason is not None:
                return
            try:
                await self._converse(self._plan.scenario(index), replicate)
            except AdmissionClosed:
                return
            except asyncio.CancelledError:
                if self._reason is None:
                    raise
                return
            except EdgenError as error:
                self.stop(error)
                return

    async def _converse(self, scenario: Scenario, replicate: int) -> None:
        protocol = self._plan.start(scenario, replicate)
        known = self._ledger.replies(scenario.index, replicate)
        spent = Spent()
        step: Callable[[Any], Request] = protocol.send
        given: Any = None
        request: Request | None = None
        try:
            while True:
                try:
                    request = step(given)
                except StopIteration as end:
                    result = end.value
                    break
                line = self._line(request)
                key = line.key(request)
                stored = known.get(key) if known else None
                try:
                    given = stored if stored is not None else await self._ask(line, request, key)
                except CallError as failure:
                    # The protocol may know better than to fail: what it asked last may be what is wrong.
                    step, given = protocol.throw, failure
                    continue
                if stored is not None:
                    self.tally.replayed += 1
                spent.add(given, key)
                step = protocol.send
        except CallError as failure:
            self._failed(scenario, replicate, failure, spent)
            return
        finally:
            protocol.close()
        self._settle(scenario, replicate, result, spent, self._line(request))

    def _line(self, request: Request | None) -> Line:
        role = "default" if request is None else request.role
        return self._lines.get(role) or self._lines["default"]

    async def _ask(self, line: Line, request: Request, key: bytes) -> Reply:
        """Ask and store. Returns when the answer is on the disk."""
        tally = self.tally
        answer = await line.ask(request, self._on_retry, self._on_attempt)
        reply = answer.reply
        await self._ledger.store(
            request.address,
            key,
            reply,
            answer.latency,
            answer.tries,
            charged_tokens=answer.charged_tokens,
            cost_usd=answer.cost_usd,
        )
        self._failures_in_a_row = 0
        tally.made += 1
        if reply.usage is not None:
            tally.prompt_tokens += reply.usage.prompt_tokens
            tally.completion_tokens += reply.usage.completion_tokens
        if answer.cost_usd is not None:
            tally.cost_usd = (tally.cost_usd or 0.0) + answer.cost_usd
        return reply

    def _on_retry(self, _failure: CallError, _wait: float) -> None:
        self.tally.retried += 1
        task = asyncio.current_task()
        if task is not None:
            self._backing_off.add(task)
            if self._reason is not None:
                task.cancel()

    def _on_attempt(self) -> None:
        if self._backing_off:
            self._backing_off.discard(asyncio.current_task())

    def _settle(
        self, scenario: Scenario, replicate: int, result: Conversation | Rejection, spent: Spent, line: Line
    ) -> None:
        record = None
        if spent.simulated and not self._simulated:
            self._simulated = True
            self._ledger.set_fact("simulated", self._fingerprint)
        if isinstance(result, Conversation):
            record = self._plan.record(
                scenario,
                replicate,
                result,
                spent,
                backend=line.kind,
                model=line.backend.model,
            )
            if not is_valid(record):
                record = None
                result = Rejection(RejectionReason.INVALID, "the record breaks the schema")
        if isinstance(result, Rejection):
            status, reason, detail = Status.REJECTED, str(result.reason), result.detail
        else:
            status, reason, detail = Status.ACCEPTED, None, None
        self._note(scenario, replicate, status, reason, detail, spent.key, record)

    def _failed(self, scenario: Scenario, replicate: int, failure: CallError, spent: Spent) -> None:
        if failure.kind in FATAL:
            self.stop(ProviderError(f"{advice(failure)} {_GO_ON}"))
            return
        self._failures_in_a_row += 1
        self._note(scenario, replicate, Status.FAILED, str(failure.kind), failure.message, spent.key, None)
        if self._failures_in_a_row >= self._stop_after:
            self.stop(
                ProviderError(
                    f"{self._failures_in_a_row} conversations in a row got no answer, the last with "
                    f"{_clause(failure)}. The run stopped rather than go on for nothing. See what is wrong with "
                    f"`edgen doctor JOB`. {_GO_ON}"
                )
            )

    def _note(
        self,
        scenario: Scenario,
        replicate: int,
        status: Status,
        reason: str | None,
        detail: str | None,
        reply_key: bytes | None,
        record: bytes | None,
    ) -> None:
        group = self._plan.group(scenario)
        outcome = Outcome(scenario.index, replicate, status, reason, detail, group, reply_key)
        self._ledger.settle(outcome, self._fingerprint, record)
        self.tally.settle(status, reason)


_GO_ON = "Then start the same command again: it goes on where it stopped."
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
    return f"The service refused: {_clause(failure)}. {what}"


def _clause(failure: CallError) -> str:
    return str(failure).rstrip(" .?!")
