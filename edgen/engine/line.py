"""One backend with what governs calls to it: its key prefix, admission, price.

A call goes: budget reserved, admitted, one attempt, settled; retries go through all of it again.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from edgen.backends import Backend
from edgen.config import BackendConfig, Job, Limits, backend_name
from edgen.errors import CallError, FailureKind, ProviderError
from edgen.limits import Admission, Budget, Verdict, prompt_token_bound, prompt_token_estimate
from edgen.model import Reply, Request
from edgen.retry import RetryPolicy, call_with_retries

CONGESTION = frozenset({FailureKind.RATE_LIMIT, FailureKind.OVERLOADED, FailureKind.TIMEOUT})
# A service that answered unreadably, or too late, may charge for it all the same.
_MAYBE_PAID = frozenset({FailureKind.BAD_RESPONSE, FailureKind.TIMEOUT})
_ASSUMED_COMPLETION = 700  # tokens, until the first answers tell better
_PATIENCE = 3  # refusals with Retry-After, and no answer between them, that make the whole line wait

_encode = msgspec.msgpack.Encoder().encode


def budget_of(limits: Limits) -> Budget | None:
    """The budget that the limits set; None where they set none."""
    if limits.max_tokens is None and limits.max_cost is None:
        return None
    return Budget(limits.max_tokens, limits.max_cost)


def lines(
    job: Job, backends: Mapping[str, Backend], budget: Budget | None, roles: Iterable[str]
) -> dict[str, Line]:
    """The line of each role. `backends` are by their names in the job; roles that one backend answers
    share its line, and lines to one service share its admission."""
    rng = random.Random()  # noqa: S311 - jitter of waits; nothing that is stored depends on it
    limits = job.limits
    admissions: dict[Any, Admission] = {}
    made: dict[str, Line] = {}
    for role in roles:
        name = backend_name(job, role)
        if name not in made:
            identity = backends[name].identity
            service = (identity["type"], identity.get("base_url"))
            if service not in admissions:
                admissions[service] = Admission(
                    in_flight=limits.in_flight,
                    requests_per_minute=limits.requests_per_minute,
                    tokens_per_minute=limits.tokens_per_minute,
                )
            made[name] = Line(job.backends[name], backends[name], limits, budget, rng, admissions[service])
    return {role: made[backend_name(job, role)] for role in roles}


class Answer(msgspec.Struct, frozen=True):
    """A reply with how it was got: seconds that its attempt took, network attempts, what it is charged
    at in tokens (as counted, or the most it can have been) and in US dollars."""

    reply: Reply
    latency: float
    tries: int
    charged_tokens: int
    cost_usd: float | None


class _Call(msgspec.Struct):
    """One call on its way: attempts so far, seconds spent waiting for a turn, seconds it then took."""

    request: Request
    tries: int = 0
    queued: float = 0.0
    latency: float = 0.0
    sent: bool = False


class Line:
    """A backend behind its limits: one for each role that the protocol asks."""

    def __init__(
        self,
        config: BackendConfig,
        backend: Backend,
        limits: Limits,
        budget: Budget | None,
        rng: random.Random,
        admission: Admission,
    ) -> None:
        self.backend = backend
        self.kind = str(config.__struct_config__.tag)
        self.admission = admission
        self._price = config.price
        self._max_tokens = config.max_tokens
        self._meters_tokens = limits.tokens_per_minute is not None
        self._budget = budget
        self._policy = RetryPolicy(attempts=limits.attempts, give_up_after=limits.give_up_after)
        self._rng = rng
        self._give_up_after = limits.give_up_after
        self._refused_in_a_row = 0
        self._refused_since = 0.0
        # Charged to the budget for calls that left no answer: the service may have worked on them.
        self.lost_tokens = 0
        self.lost_usd = 0.0
        self._prefix = hashlib.sha256(msgspec.json.encode(dict(backend.identity), order="deterministic"))
        self._completion = float(config.max_tokens or _ASSUMED_COMPLETION)  # running mean, tokens

    def key(self, request: Request) -> bytes:
        """The ledger's key of a request: sha256 over all that shapes its answer."""
        digest = self._prefix.copy()
        digest.update(_encode((request.address, request.messages, request.seed, request.max_tokens_scale)))
        return digest.digest()

    async def ask(
        self, request: Request, on_retry: Callable[[CallError, float], None], on_attempt: Callable[[], None]
    ) -> Answer:
        """The answer, after as many attempts as the policy allows.

        Raises CallError when they are used up, AdmissionClosed when the run stops admitting,
        BudgetExhausted when the budget cannot take another call.
        """
        call = _Call(request)

        async def attempt() -> Reply:
            call.tries += 1
            on_attempt()
            return await self._attempt(call)

        reply = await call_with_retries(
            attempt, self._policy, on_retry=on_retry, rng=self._rng, queued=lambda: call.queued
        )
        used = self._used(reply, request)
        cost = None if self._price is None else self.price_of(*used)
        return Answer(reply, call.latency, call.tries, sum(used), cost)

    async def _attempt(self, call: _Call) -> Reply:
        if self._budget is None:
            return await self._admitted(call)
        most = self._most(call.request)
        reservation = await self._budget.reserve(sum(most), self.price_of(*most))
        used = (0, 0)
        try:
            reply = await self._admitted(call)
            used = self._used(reply, call.request)
            return reply
        except CallError as failure:
            used = most if failure.kind in _MAYBE_PAID else used
            raise
        except asyncio.CancelledError:
            used = most if call.sent else used
            raise
        finally:
            self._budget.settle(reservation, sum(used), self.price_of(*used))
            if used is most:
                self.lost_tokens += sum(most)
                self.lost_usd += self.price_of(*most)

    def _most(self, request: Request) -> tuple[int, int]:
        """The most prompt and completion tokens that a request can take."""
        room = (self._max_tokens or 0) * request.max_tokens_scale
        return prompt_token_bound(request.messages), room

    def _used(self, reply: Reply, request: Request) -> tuple[int, int]:
        """Prompt and completion tokens of an answer; a service that does not count is taken at its worst."""
        usage = reply.usage
        return (usage.prompt_tokens, usage.completion_tokens) if usage is not None else self._most(request)

    async def _admitted(self, call: _Call) -> Reply:
        tokens = 0
        if self._meters_tokens:
            tokens = prompt_token_estimate(call.request.messages) + round(self._completion)
        clock = asyncio.get_running_loop().time
        came = clock()
        ticket = await self.admission.admit(tokens)
        started = clock()
        call.queued += started - came
        verdict, used = Verdict.OTHER, None
        call.sent = True
        try:
            reply = await self.backend.complete(call.request)
            verdict = Verdict.OK
            self._refused_in_a_row = 0
            if reply.usage is not None:
                used = reply.usage.prompt_tokens + reply.usage.completion_tokens
                self._completion += 0.05 * (reply.usage.completion_tokens - self._completion)
            call.latency = clock() - started
            return reply
        except CallError as failure:
            if failure.kind in CONGESTION:
                verdict = Verdict.CONGESTED
                self._hold_back(failure)
            raise
        finally:
            self.admission.settle(ticket, tokens=used, verdict=verdict)

    def _hold_back(self, failure: CallError) -> None:
        """Where the server keeps asking for patience, everybody waits, not just the call it told.

        Raises ProviderError where it asks for more patience than `give_up_after` has.
        """
        if not failure.retry_after:
            return
        now = asyncio.get_running_loop().time()
        if self._refused_in_a_row == 0:
            self._refused_since = now
        self._refused_in_a_row += 1
        if self._refused_in_a_row < _PATIENCE:
            return
        if max(failure.retry_after, now - self._refused_since) > self._give_up_after:
            raise ProviderError(
                f"The service only refuses ({failure.message.rstrip(' .')}) and asks to come back in "
                f"{failure.retry_after:.0f} s; limits.give_up_after is {self._give_up_after:.0f} s. "
                "Start the same command again when it answers: it goes on where it stopped."
            )
        self.admission.pause(failure.retry_after)

    def price_of(self, prompt_tokens: int, completion_tokens: int) -> float:
        """US dollars, by the price that the job gives; 0 without one."""
        if self._price is None:
            return 0.0
        return (self._price.prompt * prompt_tokens + self._price.completion * completion_tokens) / 1e6
