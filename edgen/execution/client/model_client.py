"""A backend with everything that governs its calls: keys, admission, budget, retries and charges.

A call reserves budget, is admitted, noted as outstanding (if there is a budget), attempted once and settled;
a retry repeats all of these. An answer holds its place until the caller has stored it.

An unreachable service (connections refused or broken, a gateway without a server) is not the call's fault:
calls held back by its circuit use no attempt, and the watchdog decides how long to wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import random
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec

from edgen.config import BackendConfig, Limits
from edgen.config.backends import find_features
from edgen.core.errors import CallError, FailureKind, ProviderError
from edgen.core.pictures import refuse_pictures
from edgen.core.values import Reply, Request
from edgen.execution.client.admission import Admission, AdmissionClosed
from edgen.execution.client.budget import Budget
from edgen.execution.client.call import Answer, Call, EstimateTooLowError
from edgen.execution.client.charges import Charges, may_be_charged
from edgen.execution.client.form_support import FormSupport
from edgen.execution.client.retry import RetryPolicy, retry
from edgen.execution.client.server_queue import Lane, OneServer, Ticket
from edgen.execution.client.window import LoadVerdict
from edgen.providers import Backend, find_calls, list_servers
from edgen.providers.base import Fleet, HearsEnds, ShowsProgress
from edgen.store.ledger import OutstandingCalls

if TYPE_CHECKING:
    from edgen.execution.client.fleet import FleetServers

# A requested wait longer than give_up_after stops the run only after this many seconds of refusals.
_LONG_ASK = 30.0
# Failed connections of one call that use no attempt. Later ones do: if the prompt itself breaks them, the run
# must still end.
_FREE_CONNECTION_FAILURES = 2
_ASSUMED_COMPLETION = 700  # tokens of a completion before the first answers, without max_tokens

_encode = msgspec.msgpack.Encoder().encode


class ModelClient:
    """A backend with its limits; `name` is its name in the job."""

    def __init__(
        self,
        name: str,
        config: BackendConfig,
        backend: Backend,
        admission: Admission,
        limits: Limits,
        budget: Budget | None,
        out: OutstandingCalls | None,
    ) -> None:
        self.name = name
        self.backend = backend
        self.kind = config.provider
        self.unpaid = find_calls(config).unpaid
        self.admission = admission
        self.policy = RetryPolicy(attempts=limits.attempts, give_up_after=limits.give_up_after)
        self._no_pictures = find_features(config).picture_problem(config)
        self.charges = Charges(config)
        self._retry_max_tokens = config.retry_max_tokens
        # Answers per request; 1 if calls are not joined.
        self.most_choices = find_features(config).most_choices if config.choices == "auto" else 1
        self._meters_tokens = limits.tokens_per_minute is not None
        self._budget = budget
        self._rng = random.Random()  # noqa: S311 - jitter of waits; nothing that is stored depends on it
        self._ledger = out if budget is not None else None
        self._in_flight, self._closed = 0, False
        self._backing_off: set[asyncio.Task[Any]] = set()  # tasks whose calls wait for a retry
        self.answers = 0  # answers so far
        self.begun = 0  # calls since the last answer, counted at their first attempt
        self.last_failure: CallError | None = None  # the last failure since the last answer
        self.timeouts = 0  # attempts without an answer in time
        self.hears_ends = backend if isinstance(backend, HearsEnds) else None
        self.servers: FleetServers | OneServer
        if isinstance(backend, Fleet):
            from edgen.execution.client.fleet import FleetServers

            self.servers = FleetServers(backend, backend.model, self.kind, limits.timeout, admission)
        else:
            lanes = admission.list_lanes(list_servers(backend))
            self.servers = OneServer(backend, self.kind, limits.timeout, lanes)
        self._prefix = hashlib.sha256(msgspec.json.encode(dict(backend.identity), order="deterministic"))
        self.restore_forms: Callable[[FormSupport], None] = lambda _support: None
        self._completion = float(config.max_tokens or _ASSUMED_COMPLETION)  # running mean, tokens

    @functools.cached_property
    def form_support(self) -> FormSupport:
        """The form support, created for the first request with a form. `restore_forms` restores an earlier
        session's way."""
        support = FormSupport(self.name, self._prefix.hexdigest()[:16])
        self.restore_forms(support)
        return support

    def make_key(self, request: Request) -> bytes:
        """Return the ledger's key of a request: sha256 over everything that shapes its answer."""
        digest = self._prefix.copy()
        digest.update(_encode((request.address, request.messages, request.seed, request.max_tokens_scale)))
        if request.schema is not None:
            digest.update(request.schema)
        if request.prose:
            digest.update(b"\nor prose")
        if request.logprobs is not None:
            digest.update(b"\nlogprobs %d" % request.logprobs)
        if request.max_tokens_scale > 1 and (room := self._retry_max_tokens) is not None:
            digest.update(b"\nretry_max_tokens %d" % room)
        return digest.digest()

    @property
    def in_flight(self) -> int:
        """The number of calls running at the backend."""
        return self._in_flight

    @property
    def signs_of_life(self) -> int:
        """The number of signs of life: answers so far, plus signs that the backend is computing one."""
        return self.answers + (self.backend.progress if isinstance(self.backend, ShowsProgress) else 0)

    @property
    def out(self) -> int:
        """The number of calls in flight or waiting for a retry."""
        return self._in_flight + len(self._backing_off)

    def close(self, *, shared: bool = False) -> None:
        """Begin no more attempts: reject calls that wait for their turn, cancel those that wait for a retry.
        `shared`: other sessions keep using the admission."""
        self._closed = True
        if not shared:
            self.admission.close()
        for task in list(self._backing_off):
            task.cancel()

    async def ask(
        self,
        request: Request,
        on_retry: Callable[[CallError], None] = lambda _failure: None,
        key: bytes = b"",
        store: Callable[[Answer], Awaitable[None]] | None = None,
        failed: tuple[Call, CallError] | None = None,
    ) -> Answer:
        """Return the answer, after as many attempts as the policy allows. `key`: the request's key, if calls
        are noted. `store` stores the answer; its place stays taken until then. `failed`: a call whose first
        attempt was made elsewhere, and its failure.

        Raises CallError when attempts are used up, AdmissionClosed when the run stops admitting,
        BudgetExhausted when the budget does not cover another call.
        """
        if self._no_pictures is not None:
            refuse_pictures(request.messages, self._no_pictures)
        if failed is None:
            began = asyncio.get_running_loop().time()
            call = Call(request=request, key=key, keep=store is not None, tries=1, began=began)
            try:
                reply = await self._attempt(call)
            except CallError as failure:
                failed = call, failure
        if failed is not None:
            call, first = failed
            reply = await self._retry(call, first, on_retry)
        answer = self.answer(call, reply)
        if store is not None:
            await store(answer)
            # Not in a `finally`: if storing fails, the place stays taken, and no more requests are sent.
        self.admission.release_stored()
        return answer

    def answer(self, call: Call, reply: Reply) -> Answer:
        """Return the reply to a call with its costs."""
        tokens, cost = self.charges.charge(reply, call.request)
        return Answer(reply, call.latency, call.tries, tokens, cost, call.held)

    async def _retry(self, call: Call, first: CallError, on_retry: Callable[[CallError], None]) -> Reply:
        """Retry a call after its first failure, and return the reply. Raises CallError."""
        task = asyncio.current_task()
        assert task is not None, "a call is made in a task"

        def make_attempt() -> Awaitable[Reply]:
            self._backing_off.discard(task)
            call.tries += 1
            return self._attempt(call)

        def note_retry(failure: CallError, _wait: float) -> None:
            on_retry(failure)
            self._backing_off.add(task)
            if self._closed or self.admission.closed:
                task.cancel()

        try:
            return await retry(make_attempt, first, self.policy, call.began, note_retry, self._rng, call)
        finally:
            self._backing_off.discard(task)

    async def ask_once(self, request: Request) -> Reply:
        """Return the reply to one attempt, counted in the budget. Raises the attempt's errors and
        BudgetExhausted."""
        return await self._attempt(Call(request=request, key=b"", keep=False))

    def _attempt(self, call: Call) -> Awaitable[Reply]:
        call.sent = False
        return (
            self._attempt_when_admitted(call)
            if self._budget is None
            else self._attempt_within_budget(self._budget, call)
        )

    async def _attempt_within_budget(self, budget: Budget, call: Call) -> Reply:
        """Make one attempt; reserve again if its maximum use rose while it waited."""
        while True:
            with contextlib.suppress(EstimateTooLowError):
                return await self._attempt_within(budget, call)

    async def _attempt_within(self, budget: Budget, call: Call) -> Reply:
        """Make one attempt within a reservation of its maximum use."""
        most = self.charges.estimate_at_most(call.request)
        call.most, call.held = (sum(most), self.charges.compute_most_cost(*most)), None
        reservation = await budget.reserve(*call.most)
        lost = (0, 0.0)
        try:
            reply = await self._attempt_when_admitted(call)
        except BaseException as problem:
            if call.sent and may_be_charged(problem):
                lost = call.most
            # Remove the note before freeing the budget: the ledger's total never exceeds the caps.
            if self._ledger is not None and call.held is not None:
                self._ledger.end_without_reply(call.held, *lost)
            budget.settle(reservation, *lost)
            raise
        self.charges.learn(reply, call.request)
        # No await until the caller stores the reply, so notes of other calls are queued after it.
        tokens, cost = self.charges.charge(reply, call.request)
        budget.settle(reservation, tokens, cost or 0.0)
        return reply

    def make_plain_call(self, request: Request, key: bytes) -> Call | None:
        """Return a call that waits only for its turn at a server; its answer holds its place. None if the
        request may wait for more, or be sent in several forms."""
        unclear = request.other_form or (bool(request.prose) and not self.form_support.settled)
        if unclear or not self._makes_plain_calls:
            return None
        return Call(request=request, key=key, keep=True, tries=1, began=asyncio.get_running_loop().time())

    @property
    def _makes_plain_calls(self) -> bool:
        return self._budget is None and self._no_pictures is None and self.servers.known

    @property
    def makes_unseen_calls(self) -> bool:
        """True if a plain call needs no look at its request, so a worker can make the request
        (`call.UNSEEN`)."""
        return not self._meters_tokens and self._makes_plain_calls

    def estimate_tokens(self, request: Request) -> int:
        """Return an estimate of a call's tokens, prompt and answers; 0 without a limit on tokens per
        minute."""
        if not self._meters_tokens:
            return 0
        answer = round(self._completion * request.choices)
        return self.charges.estimate(request) + answer

    async def _attempt_when_admitted(self, call: Call) -> Reply:
        request, servers = call.request, self.servers
        tokens = self.estimate_tokens(request) if self._meters_tokens else 0
        clock = asyncio.get_running_loop().time
        came = clock()
        if not (known := servers.known):
            await servers.learn()
        if (ticket := self.admission.admit_at_once(tokens, servers.lanes)) is None:
            ticket = await self.admission.admit(
                tokens, servers.list_marks(request), servers.lanes, servers.find_near_lanes()
            )
        started = clock()
        call.queued += started - came
        try:
            if not (known or servers.known):
                await servers.learn_of(ticket.lane)  # it may have been down when the call began to wait
            if self._budget is not None and sum(self.charges.estimate_at_most(request)) > call.most[0]:
                raise EstimateTooLowError
            if self._ledger is not None and not self._closed:
                call.held = await self._ledger.hold(request.address, call.key, *call.most)
                started = clock()
            self.begin_attempt(call)
            if not (request.prose or request.other_form) or self.form_support.is_sent_as_is(request):
                reply = await servers.complete(ticket.lane, request)
            else:
                reply = await self.form_support.complete(
                    request, functools.partial(servers.complete, ticket.lane)
                )
            servers.check_model(ticket.lane, reply)
        except CallError as failure:
            self.end_failed(call, ticket, failure, clock() - started)
            raise
        except BaseException:
            self.end_unanswered(call, ticket)
            raise
        self.end_answered(call, ticket, reply, clock() - started)
        return reply

    # The steps of an attempt. `cluster.units` calls them for attempts without a task.

    def begin_attempt(self, call: Call) -> None:
        """Record that an admitted call is sent now. Raises AdmissionClosed."""
        if self._closed:
            raise AdmissionClosed
        call.sent = True
        self._in_flight += 1
        self.begun += call.tries == 1

    def end_answered(
        self, call: Call, ticket: Ticket, reply: Reply, latency: float, now: float | None = None
    ) -> None:
        """Record the reply to an attempt. `latency`: its seconds. `now`: the loop's time, if the caller has
        read it."""
        call.latency = latency
        self._in_flight -= 1
        used = self._note_answer(reply)
        self.admission.settle(ticket, tokens=used, verdict=LoadVerdict.OK, keep=call.keep, now=now)

    def end_failed(self, call: Call, ticket: Ticket, failure: CallError, seconds: float) -> None:
        """Record the failure of an attempt. Raises ProviderError if the service refuses for too long."""
        self.last_failure = failure
        verdict, refused_for = self.policy.classify_failure(failure)
        if failure.kind is FailureKind.TIMEOUT:
            self._note_timeout(call, ticket, seconds)
            if len(self.servers.lanes) > 1 and ticket.lane.is_silent_since(ticket.started):
                refused_for = 0.0  # a frozen server counts as refusing, so its calls move to other servers
        if refused_for is not None and self.servers.has_others(ticket.lane):
            failure.retry_after = None
        self._in_flight -= call.sent
        used = None if call.sent else 0
        self.admission.settle(ticket, tokens=used, verdict=verdict, retry_after=refused_for)
        if refused_for is not None:
            self._excuse(call, failure, ticket.lane)

    def end_unanswered(self, call: Call, ticket: Ticket) -> None:
        """Return the ticket of an attempt that was not made, or ended by another exception than CallError."""
        self._in_flight -= call.sent
        self.admission.settle(ticket, tokens=None if call.sent else 0, verdict=LoadVerdict.OTHER)

    def _note_answer(self, reply: Reply) -> int | None:
        """Count an answer; return the tokens that it used, None if the service does not say."""
        self.answers += 1
        self.begun, self.last_failure = 0, None
        if reply.usage is None:
            return None
        mean = reply.usage.completion_tokens / (1 + len(reply.others))
        self._completion += 0.05 * (mean - self._completion)
        return reply.usage.prompt_tokens + reply.usage.completion_tokens

    def _note_timeout(self, call: Call, ticket: Ticket, seconds: float) -> None:
        """Count a timeout. If more calls were in flight than the server has slots, neither the attempt nor
        its time counts."""
        self.timeouts += 1
        if ticket.running > (ticket.lane.window.slots or ticket.running):
            call.turned_away += 1
            call.queued += seconds

    def _excuse(self, call: Call, failure: CallError | None, lane: Lane) -> None:
        """Do not count an attempt that failed because the server is closed or unreachable."""
        unsent = failure is not None and failure.unsent
        others = self.servers.has_others(lane)
        if self.admission.find_circuit_state(lane) == "closed":
            # The request was not sent to a service that answered before: the prompt is not the cause.
            call.turned_away += unsent and (others or self.admission.answered)
            return
        call.failed_connections += lane.unreachable and not unsent
        # If no other call waits, this prompt may be the cause.
        call.turned_away += unsent or (
            (others or self.admission.waiting > 0) and call.failed_connections <= _FREE_CONNECTION_FAILURES
        )
        if not lane.unreachable:
            self._heed((failure.retry_after if failure is not None else None) or 0.0)

    def _heed(self, asked: float) -> None:
        """Raise ProviderError if the service has refused for longer than `give_up_after`, or for _LONG_ASK
        seconds while it asks for a longer wait (`asked`, in seconds)."""
        patience, refused_for = self.policy.give_up_after, self.admission.refused_for
        limit = patience if asked <= patience else min(patience, _LONG_ASK)
        if self.admission.circuit != "open" or refused_for <= limit:
            return
        said = self.last_failure.message.rstrip(" .") if self.last_failure is not None else "no"
        how = (
            f"and asks to come back in {asked:.0f} s" if asked > patience else f"for {refused_for:.0f} s now"
        )
        raise ProviderError(
            f"The service keeps refusing ({said}) {how}; limits.give_up_after is {patience:g} s. "
            "Run the same command again when the service answers; the run resumes where it stopped."
        )
