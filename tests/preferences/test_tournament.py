"""The pairs of candidates that a tournament compares."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgen.preferences.tournament import draw_matches

GOLDEN = [(0, 3), (1, 4), (2, 4), (0, 5), (1, 5)]
numbers = st.lists(st.integers(0, 400), max_size=17, unique=True)
seeds = st.integers(0, 2**31)


@given(numbers, st.integers(0, 200), seeds, st.integers(0, 10**6))
def test_as_many_as_wanted_each_once_and_in_their_order(
    candidates: list[int], wanted: int, seed: int, scenario: int
) -> None:
    chosen = draw_matches(candidates, wanted, seed, scenario)
    possible = set(itertools.combinations(candidates, 2))
    assert len(chosen) == len(set(chosen)) == min(wanted, len(possible))
    assert set(chosen) <= possible
    assert chosen == sorted(chosen, key=lambda pair: (candidates.index(pair[1]), candidates.index(pair[0])))


@given(numbers, st.integers(0, 150), seeds)
def test_everybody_has_the_same_number_of_matches_but_for_one(
    candidates: list[int], wanted: int, seed: int
) -> None:
    played = Counter(name for pair in draw_matches(candidates, wanted, seed, 3) for name in pair)
    each = [played[name] for name in candidates]
    assert max(each, default=0) - min(each, default=0) <= 1


@pytest.mark.parametrize("count", range(1, 25))
def test_every_number_wanted_is_even_linked_and_adds_one_to_the_last(count: int) -> None:
    before: set[tuple[int, int]] = set()
    played = [0] * count
    group = list(range(count))
    for wanted in range(1, count * (count - 1) // 2 + 1):
        chosen = set(draw_matches(range(count), wanted, 7, 0))
        ((a, b),) = chosen - before
        assert before < chosen
        before = chosen
        played[a] += 1
        played[b] += 1
        group = [group[a] if g == group[b] else g for g in group]
        assert max(played) - min(played) <= 1
        assert wanted < count - 1 or len(set(group)) == 1
    assert before == set(itertools.combinations(range(count), 2))


@given(numbers.filter(lambda n: len(n) > 1), st.integers(0, 40), seeds)
def test_from_k_minus_1_matches_on_everybody_is_linked(candidates: list[int], more: int, seed: int) -> None:
    links: dict[int, set[int]] = {name: set() for name in candidates}
    for a, b in draw_matches(candidates, len(candidates) - 1 + more, seed, 0):
        links[a].add(b)
        links[b].add(a)
    seen, todo = set(), [candidates[0]]
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += links[name]
    assert seen == set(candidates)


@given(numbers, st.integers(0, 60), seeds)
def test_wanting_more_adds_and_takes_nothing_away(candidates: list[int], wanted: int, seed: int) -> None:
    assert set(draw_matches(candidates, wanted, seed, 1)) <= set(
        draw_matches(candidates, wanted + 1, seed, 1)
    )


@given(st.permutations(range(9)), seeds)
def test_the_order_in_which_candidates_come_is_of_no_consequence(order: list[int], seed: int) -> None:
    assert {*map(frozenset, draw_matches(order, 12, seed, 5))} == {
        *map(frozenset, draw_matches(range(9), 12, seed, 5))
    }


def test_two_matches_a_candidate_where_no_number_is_wanted() -> None:
    assert [len(draw_matches(range(k), None, 7, 0)) for k in (0, 1, 2, 3, 5, 6, 20)] == [
        0,
        0,
        1,
        3,
        10,
        12,
        40,
    ]
    assert draw_matches([4, 4, 2], None, 7, 0) == [(4, 2)]


def test_seed_and_scenario_count() -> None:
    # a change here makes a judge compare other pairs of an old run
    assert draw_matches(range(6), 5, 7, 0) == GOLDEN
    assert len({tuple(draw_matches(range(6), 5, 7, scenario)) for scenario in range(50)}) > 30
    assert len({tuple(draw_matches(range(6), 5, seed, 0)) for seed in range(50)}) > 30
