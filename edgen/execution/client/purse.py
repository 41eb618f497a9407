"""One ledger's share of a budget that many runs use: a lease from its book, enlarged when needed."""

from __future__ import annotations

import time
from collections.abc import Callable

from edgen.store.budget_book import ZERO, BudgetBook, Used

_AGAIN = 1.0  # seconds before asking an exhausted book again


class Purse:
    """The lease of `owner`. All amounts are the owner's totals so far, spent and reserved together. At the
    end of a day its lease is settled with running calls at their maximum, and the next day's begins."""

    def __init__(self, book: BudgetBook, owner: str, clock: Callable[[], float] = time.time) -> None:
        self.book = book
        self._owner, self._clock = owner, clock
        self._day: str | None = None  # of the lease, None without one
        self._base = self._granted = self._dip = ZERO
        self._refused_until = 0.0  # the book is not asked again before this

    def settle_before(self, total: Used) -> None:
        """Settle the lease that an earlier start left open; `total` is the owner's present total."""
        self.book.end(self._owner, total)

    def covers(self, total: Used, more: Used) -> bool:
        """Return whether a call with the maximum use `more` is covered; the lease is enlarged if possible."""
        now = self._clock()
        if (today := self.book.day(now)) != self._day:
            self.close(total)
            self._day, self._base, self._granted, self._dip = today, total, ZERO, ZERO
            self._refused_until = 0.0
        # A reservation from before the lease that is released belongs to the earlier day.
        lower = Used(*map(min, self._base, total))
        self._dip, self._base = self._dip.plus(self._base.minus(lower)), lower
        need = total.plus(more).minus(self._base.plus(self._granted)).positive
        if need == ZERO:
            return True
        if now < self._refused_until:
            return False
        if (granted := self.book.lease(self._owner, today, need, self._base)) is None:
            self._refused_until = now + _AGAIN
            return False
        self._granted = self._granted.plus(granted)
        return True

    def may_cover(self, total: Used, more: Used) -> bool:
        """Return whether a call may be covered once the owner's total is `total` or less."""
        return self._granted.plus(self._base).covers(total.plus(more)) or self.covers(total, more)

    def close(self, total: Used) -> None:
        """Settle the lease, and return its rest."""
        if self._day is not None:
            self.book.end(self._owner, total.plus(self._dip))
            self._day = None

    def describe(self, more: Used) -> str:
        """Explain why a call with this maximum use is not covered."""
        now = self._clock()
        day = self.book.day(now)
        for one in self.book.stands(day):
            wanted = more.pico if one.money else more.tokens
            if wanted > one.left:
                break
        month = len(one.period) < len(day)
        return (
            f"the shared budget is used up until {self.book.describe_next(day, month=month)}: {one.amount(one.used)} of "
            f"{one.amount(one.most)} ({one.cap}, {self.book.file}) are spent or held by runs, and the next call may take "
            f"{one.amount(wanted)}. Start the same command again then, "
            "or raise the cap."
        )
