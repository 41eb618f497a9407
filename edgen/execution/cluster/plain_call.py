"""A call without an asyncio task: callbacks take its ticket, and its reply or failure."""

from __future__ import annotations

import asyncio
from typing import Any, Literal, Protocol

from edgen.core.errors import CallError
from edgen.core.values import Request
from edgen.execution.client.admission import AdmissionClosed
from edgen.execution.client.call import UNSEEN, Answer, Call
from edgen.execution.client.form_support import Way
from edgen.execution.client.server_queue import Ticket
from edgen.execution.cluster.link import RemoteRollout, WorkerLostError
from edgen.execution.cluster.messages import AttemptResult, FirstReply, UnitOutcome


class CallOwner(Protocol):
    """The owner of the units that calls belong to."""

    def go_on(self, rollout: RemoteRollout) -> None:
        """Handle a unit's message, once its last call is over."""

    def keep_answer(self, plain: PlainCall) -> None:
        """Store the answer of a call, together with others of this turn of the event loop."""

    def retry(self, rollout: RemoteRollout, failed: tuple[Call, CallError]) -> None:
        """Start a task for the attempts after a failed first one."""

    def begin_again(self, rollout: RemoteRollout) -> None:
        """Give the unit of a lost worker to another worker."""

    def leave(self, rollout: RemoteRollout) -> None:
        """Forget a unit."""

    def give_up(self, rollout: RemoteRollout, error: BaseException) -> None:
        """Stop the run for an error of a unit."""


class PlainCall:
    """A call that waits only for its ticket, and then for the result of its attempt by a worker.

    `unseen`: the head has not seen its request, the first of its unit. `failure`: the attempt's failure, kept
    until the unseen request arrives. `dropped`: nobody waits for the call any more. `text`: the reply's text
    in bytes, if only the ledger needs it. `ended`: the unit's outcome, if it is stored with the reply.
    """

    __slots__ = (
        "_units", "answer", "call", "checksum", "dropped", "ended", "failure", "rollout", "text", "ticket",
        "unseen",
    )  # fmt: skip

    answer: Answer
    checksum: int | None  # the reply's checksum in the ledger

    def __init__(self, units: CallOwner, rollout: RemoteRollout, call: Call) -> None:
        self._units, self.rollout, self.call = units, rollout, call
        self.unseen = call.request is UNSEEN
        self.ticket: Ticket | None = None
        self.failure: CallError | None = None
        self.text: bytes | None = None
        self.ended: UnitOutcome | None = None
        self.dropped = False

    def done(self) -> bool:
        """Return whether it takes no more results."""
        return self.dropped

    def set_result(self, result: Any) -> None:
        """Take the ticket, or the result of the attempt."""
        if self.ticket is None:
            self.send(result)
        elif result.reply is None:
            self._take_back(self.ticket)
        else:
            self._take_reply(self.ticket, result)

    def set_exception(self, exception: Exception) -> None:
        """Take the failure of the attempt, or the end of all admissions."""
        if self.ticket is None:
            self._units.leave(self.rollout)
        else:
            assert isinstance(exception, CallError), "an attempt ends with a reply or a failure"
            self._take_failure(self.ticket, exception)

    def send(self, ticket: Ticket) -> None:
        """Let the worker make the attempt of the admitted call. A ticket is not returned from here, since
        Admission is calling."""
        self.ticket = ticket
        rollout, call = self.rollout, self.call
        call.queued += ticket.started - call.began
        client = rollout.client
        try:
            if rollout.link.lost:
                raise WorkerLostError
            client.begin_attempt(call)
            way: Way | Literal[""] = client.form_support.way if call.request.prose else "schema"
            if self.unseen:  # without a settled way, the worker makes no attempt if it needs the way
                way = client.form_support.way if client.form_support.settled else ""
            client.backend.permit(rollout, way, self, first=self.unseen)  # type: ignore[attr-defined]
        except (AdmissionClosed, WorkerLostError) as error:
            asyncio.get_running_loop().call_soon(self._return_ticket, error)

    def _return_ticket(self, error: Exception) -> None:
        if self.dropped:
            return
        if isinstance(error, WorkerLostError):
            self._units.begin_again(self.rollout)
        else:
            self._units.leave(self.rollout)

    def _take_back(self, ticket: Ticket) -> None:
        """Return the ticket of a permit that did not fit. The unit's request follows as a message."""
        self.rollout.client.end_unanswered(self.call, ticket)
        self.rollout.busy = False
        self._units.go_on(self.rollout)

    def _take_reply(self, ticket: Ticket, called: AttemptResult | FirstReply) -> None:
        rollout, call, reply = self.rollout, self.call, called.reply
        assert reply is not None, "it did not fail"
        client = rollout.client
        try:
            if isinstance(called, FirstReply):
                if called.ended is None or called.ended.refused or reply.others:
                    reply = called.whole_reply
                else:
                    self.text = called.text
            now = asyncio.get_running_loop().time()
            call.latency = now - ticket.started
            client.servers.check_model(ticket.lane, reply)
            if isinstance(called, FirstReply):
                call.key, call.request = called.key, Request(called.address, (), 0, called.role)
                costs = called.charged_tokens, called.cost_usd
                self.answer = Answer(reply, call.latency, call.tries, *costs)
                rollout.message = called.ended
            else:
                self.answer = client.answer(call, reply)
            self.checksum = called.checksum
            self._units.keep_answer(self)  # first, since the steps after it may fail
            client.end_answered(call, ticket, reply, call.latency, now)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a bug ends the run
            self._units.give_up(rollout, error)

    def _take_failure(self, ticket: Ticket, failure: CallError) -> None:
        rollout, call = self.rollout, self.call
        try:
            latency = asyncio.get_running_loop().time() - ticket.started
            rollout.client.end_failed(call, ticket, failure, latency)
            if self.unseen:  # its request follows as a message, unless the worker is lost
                self.failure, rollout.busy = failure, False
                self._units.go_on(rollout)
            else:
                self._units.retry(rollout, (call, failure))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a bug ends the run
            self._units.give_up(rollout, error)
