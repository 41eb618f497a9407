"""How much a run may use in all: tokens and US dollars, set aside before a call, settled after it.

What is spent and what is set aside never exceed a cap together. Money is counted in whole
picodollars (1e-12 dollars), so that sums are exact however many calls there are and in whatever
order they end.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from edgen.config import Limits
from edgen.core.errors import StoppedError

_PICO = 10**12


class BudgetExhausted(StoppedError):  # noqa: N818 - it says what happened, and is no fault
    """What is left of the budget does not cover another call. `sentence`, or what makes it when it is told: calls
    that are still in flight then have been counted, too."""

    def __init__(self, sentence: str | Callable[[], str]) -> None:
        super().__init__(sentence)
        self._sentence = sentence

    def __str__(self) -> str:
        return self._sentence if isinstance(self._sentence, str) else self._sentence()


@dataclass(frozen=True, slots=True)
class Spending:
    """`cost` is in US dollars."""

    tokens: int
    cost: float


@dataclass(frozen=True, slots=True)
class _Amount:
    tokens: int
    pico: int  # dollars * 1e12

    def __add__(self, other: _Amount) -> _Amount:
        return _Amount(self.tokens + other.tokens, self.pico + other.pico)

    def __sub__(self, other: _Amount) -> _Amount:
        return _Amount(self.tokens - other.tokens, self.pico - other.pico)


@dataclass(slots=True)
class Reservation:
    """What one call may use at most. Handed back with `Budget.settle`."""

    amount: _Amount
    settled: bool = False


class Budget:
    """The budget of one run. `max_tokens` and `max_cost` (US dollars) are its caps; None is no cap."""

    def __init__(self, max_tokens: int | None, max_cost: float | None) -> None:
        self._max_tokens = max_tokens
        self._max_pico = None if max_cost is None else _pico(max_cost)
        self._spent = _Amount(0, 0)
        self._reserved = _Amount(0, 0)
        self._beyond = False  # whether a call used more than was set aside for it
        self._waiters: deque[tuple[_Amount, asyncio.Future[Reservation]]] = deque()

    @property
    def spent(self) -> Spending:
        """What settled calls used."""
        return Spending(self._spent.tokens, self._spent.pico / _PICO)

    @property
    def reserved(self) -> Spending:
        """What calls under way may use at most."""
        return Spending(self._reserved.tokens, self._reserved.pico / _PICO)

    def restore(self, tokens: int, cost: float) -> None:
        """Count what earlier starts of the same run used."""
        self._spent += _Amount(tokens, _pico(cost))

    async def reserve(self, tokens: int, cost: float) -> Reservation:
        """Set aside the most that a call can use, in tokens and US dollars.

        Waits, first come first served, while calls under way may yet give back enough. Raises
        BudgetExhausted when even the whole of what they hold would not do.
        """
        amount = _Amount(tokens, _pico(cost))
        if self.has_room(tokens, cost):
            return self._set_aside(amount)
        if not self._fits(self._spent + amount):
            raise self._exhausted(amount)
        waiter: asyncio.Future[Reservation] = asyncio.get_running_loop().create_future()
        self._waiters.append((amount, waiter))
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self.settle(waiter.result(), 0, 0.0)
            else:
                self._serve_ready()  # the next in line may fit where this one did not
            raise

    def take(self, tokens: int, cost: float, onto: Reservation | None = None) -> Reservation:
        """Set aside whether or not it fits: what is under way already. `onto`: a reservation that becomes larger."""
        more = self._set_aside(_Amount(tokens, _pico(cost)))
        if onto is None:
            return more
        onto.amount += more.amount
        return onto

    def has_room(self, tokens: int, cost: float) -> bool:
        """Whether that much fits now, and nobody waits."""
        return not self._waiters and self._fits(self._spent + self._reserved + _Amount(tokens, _pico(cost)))

    def exhausted(self, tokens: int, cost: float) -> BudgetExhausted:
        """Why a call that can use that much is not made: the reason to stop with."""
        return self._exhausted(_Amount(tokens, _pico(cost)))

    def settle(self, reservation: Reservation, tokens: int, cost: float) -> None:
        """Replace a reservation by what was used: tokens and US dollars, zero if nothing was."""
        if reservation.settled:
            raise RuntimeError("a reservation is settled once")
        reservation.settled = True
        used, most = _Amount(tokens, _pico(cost)), reservation.amount
        self._beyond |= used.tokens > most.tokens or used.pico > most.pico
        self._reserved -= most
        self._spent += used
        self._serve_ready()

    def _serve_ready(self) -> None:
        """Serve, in order, all who wait and fit now; send away those who never will."""
        while self._waiters:
            amount, waiter = self._waiters[0]
            if not waiter.done():
                if self._fits(self._spent + self._reserved + amount):
                    waiter.set_result(self._set_aside(amount))
                elif not self._fits(self._spent + amount):
                    waiter.set_exception(self._exhausted(amount))
                else:
                    return
            self._waiters.popleft()

    def _set_aside(self, amount: _Amount) -> Reservation:
        self._reserved += amount
        return Reservation(amount)

    def _fits(self, total: _Amount) -> bool:
        return (self._max_tokens is None or total.tokens <= self._max_tokens) and (
            self._max_pico is None or total.pico <= self._max_pico
        )

    def _exhausted(self, amount: _Amount) -> BudgetExhausted:
        return BudgetExhausted(lambda: self._sentence(amount))

    def _sentence(self, amount: _Amount) -> str:
        beyond = " The service counted more tokens than calls were expected to take." if self._beyond else ""
        if self._max_tokens is not None and self._spent.tokens + amount.tokens > self._max_tokens:
            return (
                f"the token budget is used up: {self._spent.tokens:,} of {self._max_tokens:,} tokens are "
                f"spent and the next call may take {amount.tokens:,}; raise limits.max_tokens and start "
                f"again to go on.{beyond}"
            )
        return (
            f"the budget is used up: {_dollars(self._spent.pico)} of {_dollars(self._max_pico or 0)} are "
            f"spent and the next call may cost {_dollars(amount.pico)}; raise limits.max_cost and start "
            f"again to go on.{beyond}"
        )


def _pico(dollars: float) -> int:
    return round(dollars * _PICO)


def _dollars(pico: int) -> str:
    digits = 6 if pico >= 1_000_000 else 12
    return "$" + f"{pico / _PICO:,.{digits}f}".rstrip("0").rstrip(".")


def budget_of(limits: Limits) -> Budget | None:
    """The budget that the limits set; None where they set none."""
    if limits.max_tokens is None and limits.max_cost is None:
        return None
    return Budget(limits.max_tokens, limits.max_cost)
