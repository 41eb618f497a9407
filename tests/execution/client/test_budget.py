"""The budget: never above its caps, exact, fair, and clear about the reason for a stop."""

from __future__ import annotations

import asyncio
import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgen.core.errors import StoppedError
from edgen.execution.client.budget import Budget, BudgetExhausted, Spending
from tests.clock import run_virtual

pytestmark = pytest.mark.unit


async def test_without_caps_it_only_counts() -> None:
    budget = Budget(None, None)
    reservation = await budget.reserve(10**12, 1e6)
    assert (budget.reserved, budget.spent) == (Spending(10**12, 1e6), Spending(0, 0.0))
    budget.settle(reservation, 30, 0.5)
    assert (budget.reserved, budget.spent) == (Spending(0, 0.0), Spending(30, 0.5))


async def test_up_to_the_cap_and_not_beyond() -> None:
    budget = Budget(100, None)
    for _ in range(4):
        budget.settle(await budget.reserve(25, 0), 25, 0)
    assert budget.spent == Spending(100, 0.0)
    with pytest.raises(BudgetExhausted):
        await budget.reserve(1, 0)


async def test_a_tenth_ten_times_is_one_dollar() -> None:
    budget = Budget(None, 1.0)
    for _ in range(10):
        budget.settle(await budget.reserve(0, 0.1), 0, 0.1)
    assert budget.spent.cost == 1.0


@given(st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 5000)), max_size=50), st.randoms())
def test_sums_are_exact_and_know_no_order(calls: list[tuple[int, int]], rng: random.Random) -> None:
    # 0.15 and 0.60 dollars per million tokens
    costs = [(0.15 * prompt + 0.6 * completion) / 1e6 for prompt, completion in calls]
    exact = sum(Fraction(15 * p + 60 * c, 100 * 10**6) for p, c in calls)

    def spent() -> float:
        budget = Budget(None, None)
        for cost in costs:
            budget.restore(0, cost)
        return budget.spent.cost

    first = spent()
    assert first == float(exact)
    rng.shuffle(costs)
    assert spent() == first


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        (
            Budget(1000, None),
            (
                "the token budget is used up: 900 of 1,000 tokens are spent and the next call may take 200; "
                "raise limits.max_tokens and start again to resume."
            ),
        ),
        (
            Budget(None, 2.0),
            (
                "the budget is used up: $1.98 of $2 are spent and the next call may cost $0.030001; "
                "raise limits.max_cost and start again to resume."
            ),
        ),
        (
            Budget(None, 2e-8),  # not $0
            (
                "the budget is used up: $1.98 of $0.00000002 are spent and the next call may cost $0.030001; "
                "raise limits.max_cost and start again to resume."
            ),
        ),
    ],
)
async def test_it_says_what_was_spent_and_what_to_do(budget: Budget, words: str) -> None:
    budget.restore(900, 1.98)
    with pytest.raises(StoppedError) as caught:
        await budget.reserve(200, 0.030001)
    assert str(caught.value) == words
    assert caught.value.exit_code == 4


async def test_waits_for_calls_that_may_give_back_enough() -> None:
    budget = Budget(100, None)
    first = await budget.reserve(80, 0)
    waiting = asyncio.create_task(budget.reserve(50, 0))
    await asyncio.sleep(0)
    assert not waiting.done()
    budget.settle(first, 40, 0)
    budget.settle(await waiting, 50, 0)
    assert budget.spent.tokens == 90


async def test_raises_as_soon_as_waiting_cannot_help() -> None:
    budget = Budget(100, None)
    first = await budget.reserve(80, 0)
    too_much, fits = (asyncio.create_task(budget.reserve(tokens, 0)) for tokens in (50, 30))
    await asyncio.sleep(0)
    budget.settle(first, 70, 0)
    with pytest.raises(BudgetExhausted):
        await too_much
    assert (await fits).amount.tokens == 30
    with pytest.raises(BudgetExhausted):  # no returned amount can make room for it
        await budget.reserve(31, 0)


async def test_a_large_one_is_not_overtaken() -> None:
    budget = Budget(100, None)
    first, second = await budget.reserve(50, 0), await budget.reserve(40, 0)
    order: list[int] = []

    async def reserve(tokens: int) -> None:
        reservation = await budget.reserve(tokens, 0)
        order.append(tokens)
        budget.settle(reservation, 0, 0)

    tasks = [asyncio.create_task(reserve(tokens)) for tokens in (90, 5)]
    await asyncio.sleep(0)
    budget.settle(first, 0, 0)
    await asyncio.sleep(0)
    assert order == []
    budget.settle(second, 0, 0)
    await asyncio.gather(*tasks)
    assert order == [90, 5]


async def test_a_reservation_is_settled_once() -> None:
    budget = Budget(100, None)
    reservation = await budget.reserve(80, 0)
    budget.settle(reservation, 0, 0)
    with pytest.raises(RuntimeError, match="once"):
        budget.settle(reservation, 0, 0)
    assert budget.reserved.tokens == 0


@pytest.mark.parametrize("seed", range(40))
def test_never_above_its_caps_whoever_is_cancelled(seed: int) -> None:
    rng = random.Random(seed)

    async def main() -> None:
        budget = Budget(rng.choice([None, 20_000, 60_000]), rng.choice([None, 0.5, 2.0]))
        budget.restore(*((5000, 0.2) if rng.random() < 0.5 else (0, 0.0)))
        highest = Spending(0, 0.0)

        async def call() -> None:
            nonlocal highest
            tokens, cost = rng.randint(1, 2000), rng.random() / 10
            reservation = await budget.reserve(tokens, cost)
            total = Spending(
                budget.spent.tokens + budget.reserved.tokens, budget.spent.cost + budget.reserved.cost
            )
            highest = Spending(max(highest.tokens, total.tokens), max(highest.cost, total.cost))
            share = 0.0
            try:
                await asyncio.sleep(rng.choice([0, 0.1, 1]))
                share = rng.random()
            finally:
                budget.settle(reservation, int(tokens * share), cost * share)

        tasks = [asyncio.create_task(call()) for _ in range(150)]
        while not all(task.done() for task in tasks):
            await asyncio.sleep(rng.choice([0, 0.01, 0.1]))
            if rng.random() < 0.5:
                rng.choice(tasks).cancel()
        errors = {type(t.exception()) for t in tasks if not t.cancelled()} - {type(None)}
        assert errors <= {BudgetExhausted}
        assert budget.reserved == Spending(0, 0.0)
        if budget._run.max_tokens is not None:
            assert highest.tokens <= budget._run.max_tokens
        if budget._run.max_pico is not None:
            assert highest.cost <= budget._run.max_pico / 1e12 + 1e-9
        if not errors:  # an amount that is certainly left is granted
            await budget.reserve(0, 0.0)

    run_virtual(main())


async def test_who_does_not_wait_has_room_for_what_fits_or_none() -> None:
    budget = Budget(100, None)
    first = await budget.reserve(60, 0)
    assert budget.has_room(40, 0)
    assert not budget.has_room(41, 0)
    waiting = asyncio.create_task(budget.reserve(70, 0))
    await asyncio.sleep(0)
    assert not budget.has_room(1, 0), "somebody waits already"
    budget.settle(first, 10, 0)
    budget.settle(await waiting, 0, 0)
    assert budget.has_room(90, 0)


async def test_what_is_under_way_already_is_set_aside_whatever_is_left() -> None:
    budget = Budget(100, None)
    taken = budget.take(100, 0)
    assert budget.take(50, 0, taken) is taken
    assert budget.reserved.tokens == 150
    assert not budget.has_room(1, 0)
    budget.settle(taken, 20, 0)
    assert budget.spent.tokens == 20
    assert "may take 81" in str(budget.make_exhausted_error(81, 0))


async def test_what_is_told_is_what_was_spent_in_the_end_and_that_the_service_counted_more() -> None:
    budget = Budget(1000, None)
    first, second = await budget.reserve(400, 0), await budget.reserve(400, 0)
    budget.settle(first, 700, 0)
    with pytest.raises(BudgetExhausted) as caught:
        await budget.reserve(400, 0)
    budget.settle(second, 900, 0)
    assert "1,600 of 1,000 tokens are spent" in str(caught.value)
    assert str(caught.value).endswith("The service counted more tokens than calls were expected to take.")
