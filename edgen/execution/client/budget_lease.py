"""One ledger's share of a budget that many runs use: a lease from its book, enlarged when needed."""

from __future__ import annotations

import time
from collections.abc import Callable

from edgen.store.budget_book import ZERO, BudgetBook, BudgetUse

_LIMITS = {False: "max_tokens", True: "max_cost"}  # the job's key of a cap: by whether it is in money
_AGAIN = 1.0  # seconds before the next request to an exhausted book


class BudgetLease:
    """The lease of `owner`. All amounts are the owner's totals so far, spent plus reserved. At the end of a
    day, the lease is settled, with running calls at their maximum, and the next day's lease begins. A call
    counts on the day of its reservation."""

    def __init__(self, book: BudgetBook, owner: str, clock: Callable[[], float] = time.time) -> None:
        self.book = book
        self._owner, self._clock = owner, clock
        self.day: str | None = None  # day of the lease; None without a lease
        self._base = self._granted = ZERO  # base: the total when the day began
        self._lowest = ZERO  # `_base` without calls running then: where a start after a kill resumes
        self._refused_until = 0.0  # the book is not asked again before this

    def settle_before(self, total: BudgetUse) -> None:
        """Settle the lease that an earlier start left open; `total` is the owner's present total."""
        self.book.end(self._owner, total)

    def covers(self, total: BudgetUse, more: BudgetUse, running: BudgetUse = ZERO) -> bool:
        """Return whether a call with the maximum use `more` is covered; the lease is enlarged if possible.
        `running`: the maximum of running calls in `total`."""
        if (today := self.book.find_day(self._clock())) != self.day:
            self.close(total)
            self.day, self._base, self._granted = today, total, ZERO
            self._lowest = (total - running).positive
            self._refused_until = 0.0
        return self._enlarge(total, more)

    def release(self, day: str | None, amount: BudgetUse) -> None:
        """Release an unused amount. If it was reserved on an earlier day, it does not enlarge today's
        lease."""
        if day != self.day:
            self._base = self._base - amount.positive

    def _enlarge(self, total: BudgetUse, more: BudgetUse) -> bool:
        """Return whether the lease covers a call, enlarged if needed and possible."""
        need = (total + more - (self._base + self._granted)).positive
        if need == ZERO:
            return True
        now = self._clock()
        if self.day is None or now < self._refused_until:
            return False
        lowest = BudgetUse(*map(min, self._lowest, self._base))
        if (granted := self.book.take_lease(self._owner, self.day, need, lowest)) is None:
            self._refused_until = now + _AGAIN
            return False
        self._granted = self._granted + granted
        return True

    def may_cover(self, total: BudgetUse, more: BudgetUse) -> bool:
        """Return whether a call may be covered once the owner's total is `total` or less."""
        if (self._granted + self._base).covers(total + more):
            return True
        # Nothing was spent up to `total` yet, so the base stays.
        is_today = self.book.find_day(self._clock()) == self.day
        return self._enlarge(total, more) if is_today else self.covers(total, more)

    def close(self, total: BudgetUse) -> None:
        """Settle the lease, and give its unused rest back to the book."""
        if self.day is not None:
            self.book.end(self._owner, total, self._base)
            self.day = None

    def describe(self, more: BudgetUse) -> str:
        """Explain why a call with this maximum use is not covered."""
        now = self._clock()
        day = self.book.find_day(now)
        for one in self.book.list_use(day):
            wanted = more.pico if one.money else more.tokens
            if wanted > one.left:
                break
        if not one.period:
            return (
                f"the budget is used up: {one.format_amount(one.used)} of {one.format_amount(one.most)} are spent or held "
                "by the run's "
                f"parts, and the next call may take {one.format_amount(wanted)}; raise limits.{_LIMITS[one.money]} "
                "and start again to resume."
            )
        month = len(one.period) < len(day)
        ahead = self.book.sum_later_days(day)
        early = ahead.pico if one.money else ahead.tokens
        way_out = (
            f"{one.format_amount(early)} of this are noted for future days, by a clock that was ahead: "
            f"move {self.book.path} away to begin a new book, without what was spent so far."
            if early
            else "Start the same command again then, or raise the cap."
        )
        return (
            f"the shared budget is used up until {self.book.describe_next(day, month=month)}: "
            f"{one.format_amount(one.used)} of "
            f"{one.format_amount(one.most)} ({one.cap}, {self.book.file}) are spent or held by runs, and the next "
            f"call may take {one.format_amount(wanted)}. {way_out}"
        )
