"""One backend with what governs calls to it: its key prefix, admission, price.

A call goes: budget reserved, admitted, noted as being out where there is a budget, one attempt, settled;
retries go through all of it again. An answer's place is taken until whoever asked has stored it.

A service that is away (connections refused or broken, a gateway without a server) is no fault of a call's: what
its circuit keeps away uses up no attempt, and how long to wait for it is the watchdog's business.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import msgspec

from edgen.config import BackendConfig, CallSettings, Limits, backend_name
from edgen.core.errors import CallError, FailureKind, ProviderError
from edgen.core.values import Reply, Request
from edgen.execution.client.admission import Admission
from edgen.execution.client.budget import Budget
from edgen.execution.client.charge import cost_of, floored, to_picodollars
from edgen.execution.client.retry import Excused, RetryPolicy, call_with_retries
from edgen.execution.client.window import Verdict
from edgen.prompting.token_bound import (
    prompt_token_bound,
    prompt_token_estimate,
    prompt_token_floor,
    text_token_bound,
    text_token_floor,
)
from edgen.providers import Backend, provider_of
from edgen.store.ledger import OutstandingCalls

REFUSALS = frozenset({FailureKind.RATE_LIMIT, FailureKind.OVERLOADED})
CONGESTION = REFUSALS | {FailureKind.TIMEOUT}
# A service that answered unreadably, too late, or to a connection that broke, may charge for it all the same.
MAYBE_CHARGED = frozenset(
    {FailureKind.BAD_RESPONSE, FailureKind.BAD_OUTPUT, FailureKind.TIMEOUT, FailureKind.CONNECTION}
)
_NO_GATEWAY = 502  # the status of a gateway whose server is away
# Seconds of nothing but refusals after which a wait is believed that is longer than give_up_after.
_LONG_ASK = 30.0
# Attempts of one call that reached a service which is away, and use up none. What breaks more often may be broken by
# this very prompt, and where only such prompts are left, none of them is ever answered.
_KNOCKS = 2
_ASSUMED_COMPLETION = 700  # tokens, until the first answers tell better

_encode = msgspec.msgpack.Encoder().encode
Service = tuple[Any, Any]  # type and address of what is called


def make_clients(
    settings: CallSettings,
    backends: Mapping[str, Backend],
    roles: Iterable[str],
    budget: Budget | None = None,
    out: OutstandingCalls | None = None,
    beside: Iterable[ModelClient] = (),
    admissions: dict[Service, Admission] | None = None,
) -> dict[str, ModelClient]:
    """The client of each role. `backends` are by their names in the job; roles that one backend answers
    share its client, and clients of one service share its admission. `out`: where calls under a budget are
    noted while they are out; None: nowhere. `beside`: clients that there are already, shared in the same way.
    `admissions`: those that there are, by service; new ones are added."""
    limits = settings.limits
    made = {client.name: client for client in beside}
    if admissions is None:
        admissions = {}
    admissions |= {_service(client.backend): client.admission for client in made.values()}
    for role in roles:
        name = backend_name(settings, role)
        if name not in made:
            admission = admissions.setdefault(_service(backends[name]), Admission(limits))
            config = settings.backends[name]
            made[name] = ModelClient(name, config, backends[name], admission, limits, budget, out)
    return {role: made[backend_name(settings, role)] for role in roles}


def _service(backend: Backend) -> Service:
    """What tells the service apart that a backend calls."""
    return backend.identity["type"], backend.identity.get("base_url")


class Answer(msgspec.Struct, frozen=True):
    """A reply with how it was got: seconds that its attempt took, network attempts, what it is charged
    at in tokens (as counted, or the most it can have been) and in US dollars. `held`: the id under which it is
    noted as being out, to be struck out when it is stored."""

    reply: Reply
    latency: float
    tries: int
    charged_tokens: int
    cost_usd: float | None
    held: int | None = None


class _EstimateTooLow(Exception):  # noqa: N818 - it says what happened, and is no fault
    """While a call waited for its turn it was seen that calls can take more than was set aside for it."""


class _Call(Excused, kw_only=True):
    """One call on its way: attempts so far, those that reached a service which is away (`knocks`), the seconds that
    the last one took; of the attempt that is under way the most it can take, its id in the ledger, and whether it
    was sent. `keep`: its answer's place is taken until it is stored."""

    request: Request
    key: bytes
    most: tuple[int, float] = (0, 0.0)
    held: int | None = None
    tries: int = 0
    knocks: int = 0
    latency: float = 0.0
    sent: bool = False
    keep: bool


class ModelClient:
    """A backend behind its limits; `name` is its name in the job."""

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
        self.admission = admission
        self.policy = RetryPolicy(attempts=limits.attempts, give_up_after=limits.give_up_after)
        self._price = config.price
        self._max_tokens = config.max_tokens
        # Answers that one request may bring; 1 where each call goes by itself.
        self.most_choices = provider_of(config).most_choices if config.choices == "auto" else 1
        self._meters_tokens = limits.tokens_per_minute is not None
        self._budget = budget
        self._rng = random.Random()  # noqa: S311 - jitter of waits; nothing that is stored depends on it
        self._ledger = out if budget is not None else None
        self._in_flight = 0
        self._backing_off: set[asyncio.Task[Any]] = set()  # whose calls wait to be tried again
        self.answers = 0  # so far
        self.begun = 0  # calls since the last answer, each at its first attempt
        # Prompt and completion tokens: the most that the service counted beyond the bounds.
        self._beyond = (0, 0)
        self.last_failure: CallError | None = None  # since the last answer
        self._prefix = hashlib.sha256(msgspec.json.encode(dict(backend.identity), order="deterministic"))
        self._completion = float(config.max_tokens or _ASSUMED_COMPLETION)  # running mean, tokens

    def key(self, request: Request) -> bytes:
        """The ledger's key of a request: sha256 over all that shapes its answer."""
        digest = self._prefix.copy()
        digest.update(_encode((request.address, request.messages, request.seed, request.max_tokens_scale)))
        if request.schema is not None:
            digest.update(request.schema)
        if request.logprobs is not None:
            digest.update(b"\nlogprobs %d" % request.logprobs)
        return digest.digest()

    @property
    def in_flight(self) -> int:
        """Calls that the backend works on now."""
        return self._in_flight

    @property
    def out(self) -> int:
        """Calls that are in flight, or wait to be tried again."""
        return self._in_flight + len(self._backing_off)

    def close(self) -> None:
        """Begin no attempt any more: those who wait for their turn are sent away, those who wait to try again are
        cancelled."""
        self.admission.close()
        for task in list(self._backing_off):
            task.cancel()

    async def ask(
        self,
        request: Request,
        on_retry: Callable[[CallError], None] = lambda _failure: None,
        key: bytes = b"",
        store: Callable[[Answer], Awaitable[None]] | None = None,
    ) -> Answer:
        """The answer, after as many attempts as the policy allows. `key`: the request's, where calls are noted.
        `store` keeps the answer; until it has, no other call is admitted in its place.

        Raises CallError when they are used up, AdmissionClosed when the run stops admitting,
        BudgetExhausted when the budget cannot take another call.
        """
        call = _Call(request=request, key=key, keep=store is not None)

        def attempt() -> Awaitable[Reply]:
            call.tries += 1
            self._end_wait()
            return self._attempt(call)

        def retrying(failure: CallError, _wait: float) -> None:
            on_retry(failure)
            task = asyncio.current_task()
            assert task is not None, "a call is made in a task"
            self._backing_off.add(task)
            if self.admission.closed:
                task.cancel()

        try:
            reply = await call_with_retries(
                attempt, self.policy, on_retry=retrying, rng=self._rng, excused=call
            )
        finally:
            self._end_wait()
        tokens, cost = self.charge(reply, request)
        answer = Answer(reply, call.latency, call.tries, tokens, cost, call.held)
        if store is not None:
            await store(answer)
            self.admission.stored()  # what could not be stored keeps its place: nothing more is asked then
        return answer

    def _end_wait(self) -> None:
        """The present task's call does not wait any more to be tried again."""
        if self._backing_off and (task := asyncio.current_task()) is not None:
            self._backing_off.discard(task)

    def _attempt(self, call: _Call) -> Awaitable[Reply]:
        call.sent = False
        return self._admitted(call) if self._budget is None else self._budgeted(self._budget, call)

    async def _budgeted(self, budget: Budget, call: _Call) -> Reply:
        """One attempt, with as much set aside as is known to be needed when its turn has come."""
        while True:
            with contextlib.suppress(_EstimateTooLow):
                return await self._within(budget, call)

    async def _within(self, budget: Budget, call: _Call) -> Reply:
        """One attempt, with the most that it can take set aside."""
        most = self.most(call.request)
        call.most, call.held = (sum(most), self.price_of(*most)), None
        reservation = await budget.reserve(*call.most)
        lost = (0, 0.0)
        try:
            reply = await self._admitted(call)
        except BaseException as problem:
            if call.sent and _may_be_charged(problem):
                lost = call.most
            # Struck out before its budget is free: what the ledger holds never comes to more than the caps.
            if self._ledger is not None and call.held is not None:
                self._ledger.strike(call.held, *lost)
            budget.settle(reservation, *lost)
            raise
        self._learn(reply, call.request)
        # Whoever asked stores the reply before anything else runs: what the others hold is queued after it.
        tokens, cost = self.charge(reply, call.request)
        budget.settle(reservation, tokens, cost or 0.0)
        return reply

    def most(self, request: Request) -> tuple[int, int]:
        """The most prompt and completion tokens that a request can take, as far as is known: what the service has
        counted beyond the bounds, it may count again."""
        prompt, room = self._bounds(request)
        return prompt + self._beyond[0], room + self._beyond[1]

    def _bounds(self, request: Request) -> tuple[int, int]:
        prompt = prompt_token_bound(request.messages, request.schema)
        return prompt, (self._max_tokens or 0) * request.max_tokens_scale * request.choices

    def _learn(self, reply: Reply, request: Request) -> None:
        """Heed that a service counts more than the bounds: a hidden prompt, say, or thoughts."""
        if (usage := reply.usage) is not None:
            prompt, room = self._bounds(request)
            more, longer = usage.prompt_tokens - prompt, usage.completion_tokens - room
            self._beyond = (max(self._beyond[0], more), max(self._beyond[1], longer))

    async def _admitted(self, call: _Call) -> Reply:
        tokens = 0
        if self._meters_tokens:
            request = call.request
            answer = round(self._completion * request.choices)
            tokens = prompt_token_estimate(request.messages, request.schema) + answer
        clock = asyncio.get_running_loop().time
        came = clock()
        ticket = await self.admission.admit(tokens)
        started = clock()
        call.queued += started - came
        verdict, used, refused_for = Verdict.OTHER, None, None
        try:
            if self._budget is not None and sum(self.most(call.request)) > call.most[0]:
                used = 0
                raise _EstimateTooLow
            if self._ledger is not None:
                call.held = await self._ledger.hold(call.request.address, call.key, *call.most)
                started = clock()
            call.sent = True
            self._in_flight += 1
            self.begun += call.tries == 1
            reply = await self.backend.complete(call.request)
            verdict = Verdict.OK
            self.answers += 1
            self.begun, self.last_failure = 0, None
            if reply.usage is not None:
                used = reply.usage.prompt_tokens + reply.usage.completion_tokens
                mean = reply.usage.completion_tokens / (1 + len(reply.others))
                self._completion += 0.05 * (mean - self._completion)
            call.latency = clock() - started
            return reply
        except CallError as failure:
            self.last_failure = failure
            verdict, refused_for = self._meaning(failure)
            raise
        finally:
            self._in_flight -= call.sent
            self.admission.settle(
                ticket,
                tokens=used,
                verdict=verdict,
                retry_after=refused_for,
                keep=call.keep and verdict is Verdict.OK,
            )
            if refused_for is not None:
                self._excuse(call, self.last_failure)

    def _meaning(self, failure: CallError) -> tuple[Verdict, float | None]:
        """What a failure says about the service, and the seconds that it asks to wait where it refuses; what asks for
        longer than anybody would wait has not said when to come."""
        if failure.kind is FailureKind.CONNECTION or failure.status == _NO_GATEWAY:
            return Verdict.AWAY, 0.0
        if failure.kind not in CONGESTION:
            return Verdict.OTHER, None
        asked = failure.retry_after
        if asked is not None and asked > self.policy.give_up_after:
            asked = 0.0
        return Verdict.CONGESTED, asked or (0.0 if failure.kind in REFUSALS else None)

    def _excuse(self, call: _Call, failure: CallError | None) -> None:
        """A refused attempt uses up none where it is the service that is closed, or away."""
        unsent = failure is not None and failure.unsent
        if self.admission.circuit == "closed":
            # A service that was there before: nobody has taken the connection, whatever it was to carry.
            call.turned_away += unsent and self.admission.answered
            return
        away = self.admission.away
        call.knocks += away and not unsent
        # Where nobody else waits it may be this prompt that is refused.
        call.turned_away += unsent or (self.admission.waiting > 0 and call.knocks <= _KNOCKS)
        if not away:
            self._heed((failure.retry_after if failure is not None else None) or 0.0)

    def _heed(self, asked: float) -> None:
        """Raise ProviderError where the service wants more patience than `give_up_after` has: it refuses for that long
        already, or for a while, and asks to come back in `asked` seconds, which is longer."""
        patience, refused_for = self.policy.give_up_after, self.admission.refused_for
        limit = patience if asked <= patience else min(patience, _LONG_ASK)
        if self.admission.circuit != "open" or refused_for <= limit:
            return
        said = self.last_failure.message.rstrip(" .") if self.last_failure is not None else "no"
        how = (
            f"and asks to come back in {asked:.0f} s" if asked > patience else f"for {refused_for:.0f} s now"
        )
        raise ProviderError(
            f"The service only refuses ({said}) {how}; limits.give_up_after is {patience:g} s. "
            "Start the same command again when it answers: it goes on where it stopped."
        )

    def charge(self, reply: Reply, request: Request) -> tuple[int, float | None]:
        """What an answer is charged at: tokens, and US dollars if there is a price. A service that does not count is
        taken at its worst; one that counts less than the bytes allow, at the least they can be."""
        usage = reply.usage
        if usage is None:
            prompt, room = self.most(request)
            least = text_token_floor if self._max_tokens else text_token_bound
            used = prompt, max(room, sum(least(one.text) for one in (reply, *reply.others)))
            return sum(used), None if self._price is None else self.price_of(*used)
        usage = floored(usage, reply, prompt_token_floor(request.messages))
        tokens = usage.prompt_tokens + usage.completion_tokens
        return tokens, None if self._price is None else cost_of(self._price, usage)

    def price_of(self, prompt_tokens: int, completion_tokens: int, *, batch: bool = False) -> float:
        """The most that so many tokens can cost, in US dollars to the picodollar, by the price that the job gives; 0
        without one."""
        return (
            0.0
            if self._price is None
            else to_picodollars(self._price.most(prompt_tokens, completion_tokens, batch=batch))
        )


def _may_be_charged(problem: BaseException) -> bool:
    """Whether a call that was sent and got no reply may have been worked on all the same."""
    if isinstance(problem, CallError):
        return problem.kind in MAYBE_CHARGED and not problem.unsent
    return not isinstance(problem, ProviderError)  # else it was refused
