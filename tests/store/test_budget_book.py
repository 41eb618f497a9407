"""The book of a shared budget: never above its caps, with kills, parallel processes and clock changes."""

from __future__ import annotations

import multiprocessing
import random
import sqlite3
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from edgen.config.budget_file import BudgetFileError
from edgen.core.errors import EdgenError, RunError
from edgen.core.files import choose_temporary_name
from edgen.execution.client.budget import Budget, Reservation
from edgen.execution.client.budget_lease import BudgetLease
from edgen.store.budget_book import PICO, ZERO, BudgetBook, BudgetUse

MIDNIGHT = datetime(2027, 1, 31, tzinfo=UTC).timestamp()
DAY = 86_400.0


def budget_file(folder: Path, text: str = "{per_day: 1.0, timezone: utc}") -> Path:
    path = folder / "budget.yaml"
    path.write_text(text)
    return path


class Clock:
    def __init__(self, now: float = MIDNIGHT + 3600) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def spend(lease: BudgetLease, total: BudgetUse, cost: int, most: int) -> BudgetUse | None:
    """Return the use of one call's cost under a reservation of `most`; None if it is not covered."""
    return total + BudgetUse(0, cost) if lease.covers(total, BudgetUse(0, most)) else None


def test_a_day_is_never_exceeded_and_the_rest_comes_back(tmp_path: Path) -> None:
    book, clock = BudgetBook(budget_file(tmp_path)), Clock()
    purses, totals = [BudgetLease(book, str(n), clock) for n in range(3)], [ZERO] * 3
    rng, refused = random.Random(5), 0
    while refused < 200:
        n = rng.randrange(3)
        total = spend(purses[n], totals[n], PICO // 1000, PICO // 100)
        if total is None:
            refused += 1
            clock.now += 2
        else:
            totals[n] = total
        assert sum(one.pico for one in totals) <= PICO
        assert book.list_use("2027-01-31")[0].used <= PICO
    for lease, total in zip(purses, totals, strict=True):
        lease.close(total)
    assert book.list_use("2027-01-31")[0].used == sum(one.pico for one in totals)
    # Another start uses the remainder, to the last call that fits.
    last, total = BudgetLease(book, "last", clock), ZERO
    while (more := spend(last, total, PICO // 1000, PICO // 100)) is not None:
        total = more
    last.close(total)
    assert 0.99 * PICO <= book.list_use("2027-01-31")[0].used <= PICO


def test_leases_spare_transactions(tmp_path: Path) -> None:
    book, total, leases = BudgetBook(budget_file(tmp_path, "{per_day: 100}")), ZERO, 0
    lease = BudgetLease(book, "a", Clock())
    take_lease = book.take_lease

    def counted(*arguments: object) -> BudgetUse | None:
        nonlocal leases
        leases += 1
        return take_lease(*arguments)  # type: ignore[arg-type]

    book.take_lease = counted  # type: ignore[method-assign]
    for _ in range(1000):
        spent = spend(lease, total, PICO // 1000, PICO // 100)
        assert spent is not None
        total = spent
    assert leases < 60


def test_a_killed_owners_lease_stays_spent_until_it_starts_again(tmp_path: Path) -> None:
    book, clock = BudgetBook(budget_file(tmp_path)), Clock()
    assert BudgetLease(book, "a", clock).covers(ZERO, BudgetUse(0, PICO // 2))
    held = book.list_use("2027-01-31")[0].used
    assert held >= PICO // 2
    assert not BudgetLease(book, "b", clock).covers(ZERO, BudgetUse(0, PICO))
    again = BudgetLease(book, "a", clock)
    again.settle_before(BudgetUse(0, PICO // 10))
    assert book.list_use("2027-01-31")[0].used == PICO // 10
    again.settle_before(BudgetUse(0, PICO // 10))  # no reservation is open any more
    assert book.list_use("2027-01-31")[0].used == PICO // 10


def test_more_than_was_held_is_counted_too(tmp_path: Path) -> None:
    book, lease = (
        BudgetBook(budget_file(tmp_path)),
        BudgetLease(BudgetBook(budget_file(tmp_path)), "a", Clock()),
    )
    assert lease.covers(ZERO, BudgetUse(0, PICO // 2))
    lease.close(BudgetUse(0, 3 * PICO))
    assert book.list_use("2027-01-31")[0].left == 0


def test_midnight_begins_a_new_day_and_the_month_goes_on(tmp_path: Path) -> None:
    book = BudgetBook(budget_file(tmp_path, "{per_day: 1.0, per_month: 1.5, timezone: utc}"))
    clock = Clock(MIDNIGHT - DAY + 3600)  # the 30th
    lease = BudgetLease(book, "a", clock)
    assert lease.covers(ZERO, BudgetUse(0, PICO))
    total = BudgetUse(0, PICO)
    assert not lease.covers(total, BudgetUse(0, 1))
    clock.now += DAY
    assert lease.covers(total, BudgetUse(0, PICO // 2))
    total = BudgetUse(0, PICO * 3 // 2)
    clock.now += 5
    assert not lease.covers(total, BudgetUse(0, PICO // 4))
    assert "2027-02-01 00:00" in lease.describe(BudgetUse(0, PICO // 4))
    clock.now = MIDNIGHT + DAY + 60  # the first of February
    assert lease.covers(total, BudgetUse(0, PICO))


def test_a_clock_that_is_set_back_brings_nothing_new(tmp_path: Path) -> None:
    book, clock = BudgetBook(budget_file(tmp_path)), Clock()
    lease = BudgetLease(book, "a", clock)
    assert lease.covers(ZERO, BudgetUse(0, PICO))
    total = BudgetUse(0, PICO)
    clock.now -= 3 * DAY
    assert not lease.covers(total, BudgetUse(0, PICO // 2))
    other = BudgetLease(book, "b", clock)
    assert not other.covers(ZERO, BudgetUse(0, PICO // 2))
    assert f"by a clock that was ahead: move {book.path} away" in other.describe(BudgetUse(0, PICO // 2))


class Clocked:
    """A ledger that spends by a budget over time: its spending, and the reservations of its calls."""

    def __init__(self, path: Path, name: str, clock: Clock) -> None:
        self.path, self.name, self.clock = path, name, clock
        self.spent: list[tuple[str, int]] = []  # each call's day, and its cost
        self.running: list[tuple[Reservation, str]] = []
        self.start()

    def start(self) -> None:
        """Start again, as after a kill: running calls are charged at their maximum."""
        self.spent += [(day, reservation.amount.pico) for reservation, day in self.running]
        self.running = []
        total = BudgetUse(0, sum(cost for _, cost in self.spent))
        lease = BudgetLease(BudgetBook(self.path), self.name, self.clock)
        lease.settle_before(total)
        self.budget = Budget(None, None).make_concurrent(lease, (0, total.pico / PICO))

    def begin(self, most: float) -> None:
        """Reserve for a call, if the budget allows it."""
        if self.budget.has_room(0, most):
            day = BudgetBook(self.path).find_day(self.clock.now)
            self.running.append((self.budget.take(0, most), day))

    def finish(self, share: float) -> None:
        """End the oldest call, at a share of its maximum."""
        if self.running:
            reservation, day = self.running.pop(0)
            cost = round(reservation.amount.pico * share)
            self.budget.settle(reservation, 0, cost / PICO)
            self.spent.append((day, cost))


@pytest.mark.parametrize("seed", range(4))
def test_no_day_or_month_is_exceeded_over_midnights_and_kills(tmp_path: Path, seed: int) -> None:
    """A call counts on the day of its reservation, whenever it ends."""
    path = budget_file(tmp_path, "{per_day: 1.0, per_month: 2.5, timezone: utc}")
    rng, clock = random.Random(seed), Clock(MIDNIGHT - 2 * DAY - 60)
    ledgers = [Clocked(path, str(n), clock) for n in range(2)]
    for _ in range(500):
        ledger = rng.choice(ledgers)
        match rng.random():
            case chance if chance < 0.5:
                ledger.begin(rng.choice((0.01, 0.05, 0.2)))
            case chance if chance < 0.85:
                ledger.finish(rng.choice((0.0, 0.1, 1.0)))
            case chance if chance < 0.9:
                ledger.start()
            case chance if chance < 0.93:
                ledger.budget.close()
                ledger.start()
            case _:
                clock.now += DAY / 8
        spent: Counter[str] = Counter()
        for one in ledgers:
            for day, cost in [*one.spent, *((day, held.amount.pico) for held, day in one.running)]:
                spent[day] += cost
                spent[day[:7]] += cost
        assert max((n for period, n in spent.items() if len(period) > 7), default=0) <= PICO
        assert max((n for period, n in spent.items() if len(period) == 7), default=0) <= 2.5 * PICO
    for ledger in ledgers:
        while ledger.running:
            ledger.finish(1.0)
        ledger.budget.close()
    book = BudgetBook(path)
    with sqlite3.connect(book.path) as other:
        assert other.execute("SELECT COUNT(*) FROM leases").fetchone() == (0,)
    clock.now += 40 * DAY
    assert [one.used for one in book.list_use(book.find_day(clock.now))] == [0, 0]


@pytest.mark.parametrize("killed", [False, True])
def test_a_call_that_runs_over_midnight_and_ends_cheaply_makes_no_room_on_the_next_day(
    tmp_path: Path, killed: bool
) -> None:
    path, clock = budget_file(tmp_path), Clock(MIDNIGHT - 60)
    ledger = Clocked(path, "a", clock)
    ledger.begin(0.2)
    clock.now += 120
    over = ledger.running.pop()
    for _ in range(40):
        ledger.begin(0.05)
        ledger.finish(1.0)
    assert sum(cost for day, cost in ledger.spent if day == "2027-01-31") == PICO
    ledger.running.append(over)
    ledger.finish(0.0)
    clock.now += 10
    if killed:
        ledger.start()
    ledger.begin(0.05)
    assert ledger.running == []


def test_sums_are_exact_where_floats_are_not(tmp_path: Path) -> None:
    book = BudgetBook(budget_file(tmp_path, "{per_month: 1_000_000, timezone: utc}"))
    for n in range(3):
        assert book.take_lease(str(n), "2027-01-31", BudgetUse(0, 10**17 + 1), ZERO)
        book.end(str(n), BudgetUse(0, 10**17 + 1))
    assert book.list_use("2027-01-31")[0].used == 3 * 10**17 + 3


def _spend_all(path: Path, name: str, results: object) -> None:
    lease, total = BudgetLease(BudgetBook(path), name), ZERO
    while (more := spend(lease, total, PICO // 500, PICO // 50)) is not None:
        total = more
    lease.close(total)
    results.put(total.pico)  # type: ignore[attr-defined]


def test_several_processes_share_it(tmp_path: Path) -> None:
    path = budget_file(tmp_path)
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = [context.Process(target=_spend_all, args=(path, str(n), results)) for n in range(4)]
    for process in processes:
        process.start()
    spent = sum(results.get(timeout=120) for _ in processes)
    for process in processes:
        process.join()
    assert 0.5 * PICO <= spent <= PICO
    assert BudgetBook(path).list_current_use()[0].used == spent


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", "caps nothing"),
        ("[1]", "is a mapping"),
        ("{per_day: -1}", "per_day"),
        ("{per_week: 3}", "per_week"),
        ("{per_day: 1, timezone: mars}", "timezone"),
    ],
)
def test_files_that_cannot_be_used(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(BudgetFileError, match=said):
        BudgetBook(budget_file(tmp_path, text))
    with pytest.raises(BudgetFileError, match="no such file"):
        BudgetBook(tmp_path / "none.yaml")


def test_two_names_are_one_book(tmp_path: Path) -> None:
    path = budget_file(tmp_path)
    (other := tmp_path / "other.yaml").symlink_to(path)
    assert BudgetBook(other).path == BudgetBook(path).path
    (tmp_path / "hard.yaml").hardlink_to(path)
    with pytest.raises(BudgetFileError, match="second name"):
        BudgetBook(path)


def test_a_damaged_book_is_refused(tmp_path: Path) -> None:
    path = budget_file(tmp_path)
    book = BudgetBook(path)
    lease = BudgetLease(book, "a", Clock())
    assert lease.covers(ZERO, BudgetUse(0, PICO // 2))
    lease.close(BudgetUse(0, PICO // 2))
    whole = book.path.read_bytes()
    with sqlite3.connect(book.path) as other:
        other.execute("UPDATE spent SET pico = 0")
    with pytest.raises(RunError, match="damaged"):
        BudgetBook(path)
    for damaged in (b"", b"no book at all" * 100, whole[: len(whole) // 2]):
        book.path.write_bytes(damaged)
        with pytest.raises(RunError, match="damaged"):
            BudgetBook(path)
    book.path.write_bytes(whole)
    assert BudgetBook(path).list_use("2027-01-31")[0].used == PICO // 2
    book.path.unlink()
    with pytest.raises(EdgenError, match="is gone"):
        book.take_lease("a", "2027-01-31", BudgetUse(0, 1), ZERO)


def test_a_bit_that_flips_never_brings_a_larger_allowance(tmp_path: Path) -> None:
    path = budget_file(tmp_path)
    book = BudgetBook(path)
    lease = BudgetLease(book, "a", Clock())
    assert lease.covers(ZERO, BudgetUse(0, PICO // 2))
    lease.close(BudgetUse(0, PICO // 2))
    whole, rng = book.path.read_bytes(), random.Random(7)
    for _ in range(150):
        data = bytearray(whole)
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        book.path.write_bytes(data)
        try:
            assert BudgetBook(path).list_use("2027-01-31")[0].used >= PICO // 2
        except RunError:
            continue


def test_a_book_that_is_still_being_given_its_name_is_opened(tmp_path: Path) -> None:
    """Another process, or a killed one, has linked it and not yet removed the temporary name."""
    path = budget_file(tmp_path)
    book = BudgetBook(path)
    left = choose_temporary_name(book.path)
    left.hardlink_to(book.path)
    assert BudgetBook(path).list_use("2027-01-31")[0].used == 0
    assert not left.exists()
    (tmp_path / "elsewhere.db").hardlink_to(book.path)
    with pytest.raises(RunError, match="a link or not a file"):
        BudgetBook(path)
