"""The units of a plan at workers, without an asyncio task for each: callbacks handle the messages of a frame.

A unit alternates between worker and head: the worker sends a request or the outcome; the head makes the call
and stores the reply, and only then handles the worker's next message. An outcome that arrives with its last
reply is stored in the same transaction.

A call that waits only for its turn at a service needs no task either (`PlainCall`); replies that arrive in
one turn of the event loop are stored together. Tasks make any other call, as in OnlineScheduler, and retry
failed calls.

Most units are given to a worker with a permit for their first request, once a place at the service is free.
So a conversation of one reply takes one message in each direction.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import Counter
from collections.abc import Coroutine, Iterator, Sequence
from functools import partial
from typing import Any, Protocol

from edgen.core.errors import CallError, EdgenError
from edgen.core.values import Reply
from edgen.execution.client.call import UNSEEN, Call
from edgen.execution.client.model_client import ModelClient
from edgen.execution.cluster.backend import RemoteBackend
from edgen.execution.cluster.link import RemoteRollout, WorkerLink, WorkerLostError
from edgen.execution.cluster.messages import CallFailure, OpenRequest, StartUnit, Unit, UnitOutcome, UnitReply
from edgen.execution.cluster.plain_call import PlainCall
from edgen.execution.cluster.pool import Pool
from edgen.execution.joined_calls import CallPlace, split_choices
from edgen.execution.rollout import OutcomeRecorder
from edgen.execution.scheduler import Work
from edgen.store.ledger.checked_reader import read_wall_time


class UnitOwner(Protocol):
    """The scheduler whose units these are."""

    stopped: EdgenError | None

    def stop_for(self, error: BaseException) -> None:
        """Stop the run for an error of a unit. Raises it if it is a bug."""

    async def ask(self, rollout: RemoteRollout, failed: tuple[Call, CallError] | None) -> Reply:
        """Return the stored reply to a rollout's request. `failed`: see ModelClient.ask. Raises CallError and
        errors that stop the run."""


# Seconds (least, most) that replies wait for others before a commit, which costs as much as the rows of ten
# replies. Within these, a fifth of an answer's latency, since waiting replies keep their places at the
# service.
_PAUSE = (0.025, 0.1)
_OF_ANSWER = 0.2


class Units:
    """The units that one scheduler has at the workers of a pool. `plain`: tasks neither share requests nor
    join calls, so a call may need no task."""

    def __init__(
        self, scheduler: UnitOwner, work: Work, recorder: OutcomeRecorder, pool: Pool, *, plain: bool
    ) -> None:
        self._scheduler, self._work, self._recorder, self._pool = scheduler, work, recorder, pool
        self._plain = plain
        self._first: ModelClient | None = None  # client of most units' first requests; None: not plain calls
        self._planned: Iterator[Unit] = iter(())
        self._again: list[Unit] = []  # units of workers that were lost
        self._at_once = 0
        self._open: dict[RemoteRollout, PlainCall | None] = {}
        self._exhausted = self._waiting = self._scheduled = self._abandoned = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._answered: list[PlainCall] = []  # stored at the end of this turn of the event loop

    async def run(self, planned: Iterator[Unit], at_once: int) -> None:
        """Run the units, `at_once` at a time; begin none after the scheduler is stopped."""
        self._planned, self._at_once = planned, at_once
        try:
            self.begin_more()
            await self._ended
        finally:
            self._ended.cancel()
            for rollout in [*self._open]:
                self.leave(rollout)
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    # -- units

    def begin_more(self) -> None:
        """Begin as many units as may be open. End `run` if none is left."""
        if self._ended.done():
            return
        stopped = self._scheduler.stopped is not None
        if not stopped and len(self._open) < self._at_once:
            try:
                self._fill()
            except (Exception, SystemExit) as error:  # noqa: BLE001 - a bug ends the run
                self._fail(error)
        if (stopped or (self._exhausted and not self._again)) and not self._open and not self._ended.done():
            self._ended.set_result(None)

    def _fill(self) -> None:
        """Begin units at the workers with the fewest. A unit is given with a permit if its first request is
        probably a plain call to the client `_first`."""
        client, now = self._first, self._loop.time()
        if client is not None and not client.makes_unseen_calls:
            client = None
        links = [
            (len(link.units), link.number, link, client if _is_reached(client, link) else None)
            for link in self._pool.links
            if link.ready
        ]
        heapq.heapify(links)
        while len(self._open) < self._at_once:
            if not links:
                if not self._waiting:
                    self._waiting = True
                    self._keep(self._await_worker())
                return
            unit = self._again.pop() if self._again else next(self._planned, None)
            if unit is None:
                self._exhausted = True
                return
            count, number, link, first = links[0]
            rollout = link.units[unit] = RemoteRollout(link, unit, self.go_on)
            self._open[rollout] = None
            try:
                stored = self._work.ledger.read_replies(*unit)
                if first is None or stored:
                    link.send(StartUnit(unit, stored))
                else:  # given with a permit, once a place is free
                    call = Call(request=UNSEEN, key=b"", keep=True, tries=1, began=now)
                    self._enter(rollout, first, call)
            except BaseException:
                self.leave(rollout)
                raise
            heapq.heapreplace(links, (count + 1, number, link, first))

    async def _await_worker(self) -> None:
        await self._pool.pick()
        self._waiting = False
        self.begin_more()

    def begin_again(self, rollout: RemoteRollout) -> None:
        """Give the unit of a lost worker to another worker."""
        self._again.append(rollout.unit)
        self.leave(rollout)

    def leave(self, rollout: RemoteRollout) -> None:
        """Forget a unit: it has its outcome, begins again, or the run ends without it."""
        if rollout not in self._open:
            return
        plain = self._open.pop(rollout)
        rollout.link.units.pop(rollout.unit, None)
        if plain is not None:
            plain.dropped = True
            if plain.ticket is not None and not plain.ticket.settled:
                rollout.client.end_unanswered(plain.call, plain.ticket)
        if not self._scheduled:
            self._schedule_round()

    def abandon(self) -> None:
        """Wait only for calls in flight, after a worker's failure: the outcome of its unit will not
        arrive."""
        self._abandoned = True
        for rollout in [*self._open]:
            self.go_on(rollout)

    def go_on(self, rollout: RemoteRollout) -> None:
        """Handle a unit's message, once its last call is over."""
        if rollout.busy or rollout not in self._open:
            return
        try:
            if rollout.lost:
                self.begin_again(rollout)
            elif rollout.message is not None:
                self._take(rollout)
            elif self._abandoned:
                self.leave(rollout)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a bug ends the run
            self.give_up(rollout, error)

    def _take(self, rollout: RemoteRollout) -> None:
        message = rollout.take()
        self._work.counts.replayed += message.replayed
        if rollout.last is not None and not (
            isinstance(message, UnitOutcome) and message.failure is not None
        ):
            self._recorder.count_answer(rollout.unit, rollout)
        if isinstance(message, UnitOutcome):
            if self._recorder.is_heard:
                rollout.busy = True
                self._keep(self._end_heard(rollout, message))
            else:
                self._record(rollout, message)
        elif self._scheduler.stopped is not None:
            self.leave(rollout)
        else:
            self._recorder.refuse_useless()
            self._call(rollout, message)

    async def _end_heard(self, rollout: RemoteRollout, message: UnitOutcome) -> None:
        try:
            await self._recorder.end_task(rollout.unit)
            self._record(rollout, message)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a bug ends the run
            self.give_up(rollout, error)

    def _record(self, rollout: RemoteRollout, message: UnitOutcome) -> None:
        if message.failure is not None:
            self._recorder.fail(rollout.unit, rollout, message.failure.error)
        else:
            self._recorder.settle(rollout.unit, rollout)
        self.leave(rollout)

    # -- calls

    def _call(self, rollout: RemoteRollout, message: OpenRequest) -> None:
        """Make the call of a unit's request."""
        request, client = message.request, self._work.clients[message.request.role]
        before, self._open[rollout] = self._open[rollout], None
        rollout.client, rollout.busy = client, True
        if before is not None and before.failure is not None:
            before.call.request, before.call.key = request, message.key
            self.retry(rollout, (before.call, before.failure))
            return
        call = None
        if self._plain and _is_reached(client, rollout.link):
            call = client.make_plain_call(request, message.key)
        if rollout.last is None:
            self._first = None if call is None else client
        if call is None:
            self._keep(self._ask(rollout))
            return
        self._enter(rollout, client, call, client.estimate_tokens(request))

    def _enter(self, rollout: RemoteRollout, client: ModelClient, call: Call, tokens: int = 0) -> None:
        """Let a call without a task wait for its turn."""
        rollout.client, rollout.busy = client, True
        plain = self._open[rollout] = PlainCall(self, rollout, call)
        ticket = client.admission.admit_or_queue(plain, tokens, client.servers.lanes)
        if ticket is not None:
            plain.send(ticket)

    def retry(self, rollout: RemoteRollout, failed: tuple[Call, CallError]) -> None:
        """Start a task for the attempts after a failed first one."""
        self._open[rollout] = None
        self._keep(self._ask(rollout, failed))

    def keep_answer(self, plain: PlainCall) -> None:
        """Store the answer of a call, together with others of this turn of the event loop."""
        self._answered.append(plain)
        if not self._scheduled:
            self._schedule_round()

    async def _ask(self, rollout: RemoteRollout, failed: tuple[Call, CallError] | None = None) -> None:
        """Make a call that may wait for more than its turn, and send the worker its result."""
        unit, request = rollout.unit, rollout.request
        assert request is not None, "its call is made"
        try:
            try:
                reply = await self._scheduler.ask(rollout, failed)
            except CallError as failure:
                rollout.last = None
                rollout.link.send(UnitReply(unit, None, CallFailure.of(failure)))
            else:
                rollout.last = (request, reply)
                if rollout.got is not reply:
                    rollout.link.send(UnitReply(unit, reply))
                rollout.got = None
        except WorkerLostError:
            pass  # the unit begins again elsewhere
        except asyncio.CancelledError:  # the run was stopped
            self.leave(rollout)
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a bug ends the run
            self.give_up(rollout, error)
        rollout.busy = False
        self.go_on(rollout)

    # -- the end of a moment

    def _schedule_round(self) -> None:
        """Schedule `_end_moment` for the end of this turn of the event loop."""
        self._scheduled = True
        self._loop.call_soon(self._end_moment)

    def _end_moment(self) -> None:
        """Store the replies that have arrived, and begin units in the place of ended ones."""
        self._scheduled = False
        answered, self._answered = self._answered, []
        try:
            if answered:
                self._store(answered)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a bug ends the run
            self._fail(error)
        self.begin_more()

    def _store(self, answered: Sequence[PlainCall]) -> None:
        """Store replies, and the outcomes that arrived with them, in one transaction. A bug in one outcome's
        rows, such as a plugin's, ends the run; all replies and the other outcomes are stored."""
        ledger, recorder, statements, now = self._work.ledger, self._recorder, [], read_wall_time()
        with_outcome = not recorder.is_heard
        for plain in answered:
            rollout, answer, call = plain.rollout, plain.answer, plain.call
            address, reply, tokens, cost = (
                call.request.address, answer.reply, answer.charged_tokens, answer.cost_usd,
            )  # fmt: skip
            try:
                if reply.others:
                    places = (CallPlace(address, call.key),)
                    ((_, reply, tokens, cost),) = split_choices(
                        answer, places, rollout.client.charges.compute_most_cost
                    )
                spent = (tokens, cost, now, answer.latency, answer.tries)
                known = (plain.checksum, plain.text)
                statements += ledger.make_reply_statements(address, call.key, reply, *spent, *known)
                if plain.dropped:
                    continue
                rollout.last = (call.request, answer.reply)
                message = rollout.message
                if with_outcome and isinstance(message, UnitOutcome) and message.settled is not None:
                    rollout.take()
                    statements += recorder.make_statements(rollout.unit, rollout, message.settled)
                    plain.ended = message
            except (Exception, SystemExit) as error:  # noqa: BLE001 - a bug ends the run
                self.give_up(rollout, error)
        stored = ledger.writer.put_for(len(answered), statements)
        stored.add_done_callback(partial(self._take_stored, answered))

    def _take_stored(self, answered: Sequence[PlainCall], stored: asyncio.Future[None]) -> None:
        """Count replies that are on disk, and let their units continue."""
        if stored.cancelled():
            return
        error = stored.exception()
        if error is None:
            try:
                self._count_stored(answered)
                return
            except (Exception, SystemExit) as bug:  # noqa: BLE001 - it ends the run
                error = bug
        for plain in answered:  # the replies keep their places, so nothing more is sent
            self.leave(plain.rollout)
        self._fail(error)

    def _count_stored(self, answered: Sequence[PlainCall]) -> None:
        for admission, count in Counter(plain.rollout.client.admission for plain in answered).items():
            admission.release_stored(count)
        recorder, counts = self._recorder, self._work.counts
        recorder.note_answer()
        least, most = _PAUSE
        self._work.ledger.writer.pause = min(max(answered[-1].answer.latency * _OF_ANSWER, least), most)
        for plain in answered:
            rollout, answer = plain.rollout, plain.answer
            counts.add_answer(answer.reply.usage, answer.cost_usd)
            if (ended := plain.ended) is not None and ended.settled is not None:
                counts.replayed += ended.replayed
                recorder.count_answer(rollout.unit, rollout)
                recorder.count_outcome(rollout, ended.settled)
                self.leave(rollout)
            elif not plain.dropped:
                self._open[rollout], rollout.busy = None, False
                self.go_on(rollout)

    # -- errors

    def give_up(self, rollout: RemoteRollout, error: BaseException) -> None:
        self.leave(rollout)
        self._fail(error)

    def _fail(self, error: BaseException) -> None:
        """Stop the run for an error; a bug is raised by `run`."""
        try:
            self._scheduler.stop_for(error)
        except (Exception, SystemExit) as bug:  # noqa: BLE001 - raised there
            if not self._ended.done():
                self._ended.set_exception(bug)

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _is_reached(client: ModelClient | None, link: WorkerLink) -> bool:
    """Return whether this worker can make a client's calls."""
    backend = None if client is None else client.backend
    return isinstance(backend, RemoteBackend) and backend.is_reached_by(link)
