"""Budgets: tokens and US dollars, reserved before a call and settled after it.

A call must fit two limits: the caps of its run, and the lease from a budget that many runs share.

Spent and reserved amounts together never exceed a cap. Money is counted in whole picodollars (1e-12 dollars),
so that sums are exact and order-independent.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from edgen.core.errors import EdgenError, StoppedError
from edgen.execution.client.budget_lease import BudgetLease
from edgen.store.budget_book import BudgetUse

_PICO = 10**12


class BudgetExhausted(StoppedError):  # noqa: N818 - it says what happened, and is no fault
    """The rest of the budget does not cover another call. `sentence` may be a function that builds it when
    printed, after calls in flight have been counted."""

    reason = "budget"

    def __init__(self, sentence: str | Callable[[], str]) -> None:
        super().__init__(sentence)
        self._sentence = sentence

    def __str__(self) -> str:
        return self._sentence if isinstance(self._sentence, str) else self._sentence()


@dataclass(frozen=True, slots=True)
class Spending:
    """Amounts used; `cost` is in US dollars."""

    tokens: int
    cost: float


@dataclass(slots=True)
class Reservation:
    """The maximum use of one call. Return it with `Budget.settle`. `day`: the day of the lease that covers
    it; None without a lease."""

    amount: BudgetUse
    day: str | None = None
    settled: bool = False


class _Run:
    """State shared by the budgets of concurrent sessions of a run: caps, spent and reserved amounts, waiting
    calls."""

    def __init__(self, max_tokens: int | None, max_pico: int | None) -> None:
        self.max_tokens, self.max_pico = max_tokens, max_pico
        self.spent = self.reserved = BudgetUse(0, 0)
        self.beyond = False  # whether a call used more than its reservation
        self.waiters: deque[tuple[Budget, BudgetUse, asyncio.Future[Reservation]]] = deque()


class Budget:
    """The budget of one session. Its limits are the caps of its run, `max_tokens` and `max_cost` (US dollars;
    None: no cap), and its `lease`, a lease from a budget that many runs share (None: no lease)."""

    def __init__(
        self, max_tokens: int | None, max_cost: float | None, *, lease: BudgetLease | None = None
    ) -> None:
        self._run = _Run(max_tokens, None if max_cost is None else _count_pico(max_cost))
        self._purse = lease
        self._own = BudgetUse(0, 0)  # totals of the lease's ledger: spent and reserved
        self._own_reserved = BudgetUse(0, 0)

    def make_concurrent(self, lease: BudgetLease | None, total: tuple[int, float]) -> Budget:
        """Return the budget of a concurrent session under the same caps. `total`: the tokens and US dollars
        in that session's ledger so far, except amounts that `take` will reserve."""
        budget = Budget(None, None, lease=lease)
        budget._run = self._run
        budget._own = BudgetUse(total[0], _count_pico(total[1]))
        return budget

    @property
    def spent(self) -> Spending:
        """The use of settled calls."""
        return Spending(self._run.spent.tokens, self._run.spent.pico / _PICO)

    @property
    def reserved(self) -> Spending:
        """The maximum use of running calls."""
        return Spending(self._run.reserved.tokens, self._run.reserved.pico / _PICO)

    def restore(self, tokens: int, cost: float) -> None:
        """Count the use of earlier starts of the same run."""
        self._run.spent += BudgetUse(tokens, _count_pico(cost))

    def charge(self, tokens: int, cost: float) -> None:
        """Count use without its own reservation, such as a batch's answers."""
        self.restore(tokens, cost)
        self._own += BudgetUse(tokens, _count_pico(cost))

    async def reserve(self, tokens: int, cost: float) -> Reservation:
        """Reserve the maximum use of a call, in tokens and US dollars.

        Waits, first come first served, while running calls may release enough. Raises BudgetExhausted if even
        all their reservations would not suffice.
        """
        amount = BudgetUse(tokens, _count_pico(cost))
        if self.has_room(tokens, cost):
            return self._set_aside(amount)
        if not self._may_fit(amount):
            raise self._make_exhausted_error(amount)
        waiter: asyncio.Future[Reservation] = asyncio.get_running_loop().create_future()
        self._run.waiters.append((self, amount, waiter))
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self.settle(waiter.result(), 0, 0.0)
            else:
                self._serve_ready()  # the next in line may fit even if this one did not
            raise

    def take(self, tokens: int, cost: float, reservation: Reservation | None = None) -> Reservation:
        """Reserve an amount for work already under way, even beyond the caps. `reservation`: a reservation to
        enlarge."""
        more = self._set_aside(BudgetUse(tokens, _count_pico(cost)))
        if reservation is None:
            return more
        reservation.amount += more.amount
        return reservation

    def has_room(self, tokens: int, cost: float) -> bool:
        """Return whether the amount fits now and no call waits."""
        return not self._run.waiters and self._fits(BudgetUse(tokens, _count_pico(cost)))

    def make_exhausted_error(self, tokens: int, cost: float) -> BudgetExhausted:
        """Return the error that stops the run if a call of this size does not fit."""
        return self._make_exhausted_error(BudgetUse(tokens, _count_pico(cost)))

    def settle(self, reservation: Reservation, tokens: int, cost: float) -> None:
        """Replace a reservation by the actual use: tokens and US dollars, zero if unused."""
        if reservation.settled:
            raise RuntimeError("a reservation is settled once")
        reservation.settled = True
        used, most = BudgetUse(tokens, _count_pico(cost)), reservation.amount
        run = self._run
        run.beyond |= used.tokens > most.tokens or used.pico > most.pico
        run.reserved -= most
        run.spent += used
        self._own += used - most
        self._own_reserved -= most
        if self._purse is not None:
            self._purse.release(reservation.day, most - used)
        self._serve_ready()

    def close(self) -> None:
        """Return the rest of the lease. Remaining reservations count as spent."""
        if self._purse is not None:
            self._purse.close(self._own)

    def _serve_ready(self) -> None:
        """Serve, in order, all waiting calls that fit now; reject those that never will."""
        waiters = self._run.waiters
        while waiters:
            budget, amount, waiter = waiters[0]
            if not waiter.done():
                try:
                    if budget._fits(amount):
                        waiter.set_result(budget._set_aside(amount))
                    elif not budget._may_fit(amount):
                        waiter.set_exception(budget._make_exhausted_error(amount))
                    else:
                        return
                except EdgenError as problem:  # the book of the shared budget cannot be used
                    waiter.set_exception(problem)
            waiters.popleft()

    def _set_aside(self, amount: BudgetUse) -> Reservation:
        self._run.reserved += amount
        self._own += amount
        self._own_reserved += amount
        return Reservation(amount, None if self._purse is None else self._purse.day)

    def _fits(self, amount: BudgetUse) -> bool:
        """Return whether a call fits now: the run's caps first, then the lease, which may be enlarged."""
        run = self._run
        return self._is_within_caps(run.spent + run.reserved + amount) and (
            self._purse is None or self._purse.covers(self._own, amount, self._own_reserved)
        )

    def _may_fit(self, amount: BudgetUse) -> bool:
        """Return whether a call may fit once all running calls have released their reservations."""
        back = self._own - self._own_reserved
        return self._is_within_caps(self._run.spent + amount) and (
            self._purse is None or self._purse.may_cover(back, amount)
        )

    def _is_within_caps(self, total: BudgetUse) -> bool:
        run = self._run
        return (run.max_tokens is None or total.tokens <= run.max_tokens) and (
            run.max_pico is None or total.pico <= run.max_pico
        )

    def _make_exhausted_error(self, amount: BudgetUse) -> BudgetExhausted:
        if self._is_within_caps(self._run.spent + amount) and self._purse is not None:
            return BudgetExhausted(self._purse.describe(amount))
        return BudgetExhausted(lambda: self._describe_amount(amount))

    def _describe_amount(self, amount: BudgetUse) -> str:
        run = self._run
        beyond = " The service counted more tokens than calls were expected to take." if run.beyond else ""
        if run.max_tokens is not None and run.spent.tokens + amount.tokens > run.max_tokens:
            return (
                f"the token budget is used up: {run.spent.tokens:,} of {run.max_tokens:,} tokens are "
                f"spent and the next call may take {amount.tokens:,}; raise limits.max_tokens and start "
                f"again to resume.{beyond}"
            )
        return (
            f"the budget is used up: {_format_dollars(run.spent.pico)} of {_format_dollars(run.max_pico or 0)} are "
            f"spent and the next call may cost {_format_dollars(amount.pico)}; raise limits.max_cost and start "
            f"again to resume.{beyond}"
        )


def _count_pico(dollars: float) -> int:
    return round(dollars * _PICO)


def _format_dollars(pico: int) -> str:
    digits = 6 if pico >= 1_000_000 else 12
    return "$" + f"{pico / _PICO:,.{digits}f}".rstrip("0").rstrip(".")
