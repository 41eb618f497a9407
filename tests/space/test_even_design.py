"""The design `even`: every value equally often, or by its weight, in every prefix.

Pairs are no worse than with random draws.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from itertools import combinations, product

import msgspec
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from edgen.core import resources
from edgen.core.errors import SpaceError
from edgen.space import Dimension, Entry, Space, load_space
from edgen.space.sampling import Design, Passes, Sampler, _Copies, find_whole_numbers
from tests.dose import dose
from tests.space.spaces import allowed_cells, conditional_spaces, plain_space

pytestmark = pytest.mark.unit

RELAXED = settings(
    max_examples=dose(10, 40),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
WEIGHTS = (
    (2, 1, 1),
    (3, 1),
    (5, 3, 2),
    (10, *[1] * 10),
    (0.7, 0.3),
    (1, 1, 0),
    (3.7, 1.1, 0.2, 9),
    (1, 1e-9),
)


def weighted_space(*dimensions: Sequence[float]) -> Space:
    return msgspec.structs.replace(
        plain_space(),
        dimensions=tuple(
            Dimension(
                f"d{place}", tuple(Entry(f"{place}.{at}", float(weight)) for at, weight in enumerate(one))
            )
            for place, one in enumerate(dimensions)
        ),
    )


def values_of(space: Space, seed: int, conversations: int, design: Design = "even") -> list[tuple[str, ...]]:
    scenario = Sampler(space, seed, design).scenario
    return [tuple(scenario(index).values.values()) for index in range(conversations)]


def furthest_from_share(space: Space, rows: Sequence[tuple[str, ...]]) -> float:
    """Return the largest difference of a value's count from its share by weight, over all prefixes."""
    furthest = 0.0
    for place, dimension in enumerate(space.dimensions):
        total = sum(entry.weight for entry in dimension.entries)
        shares = {entry.value: entry.weight / total for entry in dimension.entries}
        counts = Counter(dict.fromkeys(shares, 0))
        for many, row in enumerate(rows, 1):
            counts[row[place]] += 1
            furthest = max(furthest, *[abs(counts[value] - many * share) for value, share in shares.items()])
    return furthest


def unevenness(space: Space, rows: Sequence[tuple[str, ...]]) -> float:
    """Return the mean over the pairs of dimensions of Pearson's chi squared per pair of values."""
    found = []
    for one, other in combinations(range(len(space.dimensions)), 2):
        counts = Counter((row[one], row[other]) for row in rows)
        entries = space.dimensions[one].entries, space.dimensions[other].entries
        totals = [sum(entry.weight for entry in side) for side in entries]
        terms = []
        for left, right in product(*entries):
            share = len(rows) * left.weight * right.weight / totals[0] / totals[1]
            if share:
                terms.append((counts[left.value, right.value] - share) ** 2 / share)
        found.append(statistics.mean(terms))
    return statistics.mean(found)


@RELAXED
@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(0, 2**64))
def test_in_every_prefix_each_value_occurs_equally_often_within_one(sizes: list[int], seed: int) -> None:
    space = plain_space(*sizes)
    assert furthest_from_share(space, values_of(space, seed, 100)) < 1


@RELAXED
@given(st.lists(st.floats(0.01, 1000), min_size=1, max_size=12), st.integers(0, 2**64))
def test_weights_are_kept_within_one_in_every_prefix(weights: list[float], seed: int) -> None:
    # A pass rounds shares to 1 in 4,000 slots, which shifts less than half a value in 200 draws.
    space = weighted_space(weights)
    assert furthest_from_share(space, values_of(space, seed, 200)) < 1.5


@pytest.mark.parametrize(
    "weights", [(4871, 3312, 127, 41923), (48211, 2999, 1), (1, 1e-9), (1, 1 / 3, 2**0.5)]
)
def test_weights_in_any_ratio_are_kept_however_many_are_drawn(weights: Sequence[float]) -> None:
    """Rounded to 1 in 4,000, every pass would add to the difference."""
    space = weighted_space(weights)
    assert furthest_from_share(space, values_of(space, 3, 20_000)) < 2


@given(st.lists(st.floats(0.001, 1000), min_size=1, max_size=9), st.integers(0, 400))
@RELAXED
def test_the_copies_of_all_passes_are_within_one_of_the_shares(weights: list[float], number: int) -> None:
    copies = _Copies(weights)
    here, before = copies.of_pass(number)
    copies.of_pass(number // 2)
    assert _Copies(weights).of_pass(number) == copies.of_pass(number) == (here, before)
    assert sum(here) == copies.slots
    assert min(here) >= 0
    for weight, many in zip(weights, before, strict=True):
        assert abs(many - number * copies.slots * weight / sum(weights)) < 1 + number / 100


@pytest.mark.parametrize("weights", WEIGHTS)
def test_weights_that_are_ratios_of_whole_numbers_are_exact(weights: Sequence[float]) -> None:
    space = weighted_space(weights, weights[::-1], (1, 1, 1))
    assert furthest_from_share(space, values_of(space, 5, 1500)) < 1


def test_an_entry_of_weight_zero_never_occurs() -> None:
    assert {row[0] for row in values_of(weighted_space((1, 0, 2)), 0, 300)} == {"0.0", "0.2"}


@pytest.mark.long
@pytest.mark.parametrize("name", ["education_dialogue", "broad", "course_advising", "math_misconceptions"])
@pytest.mark.parametrize("conversations", [20, 200])
def test_pairs_of_values_are_at_least_as_even_as_random_draws(name: str, conversations: int) -> None:
    space = load_space(resources.find("preference_space", name))
    small = [one for one in space.dimensions if len(one.entries) < 100]
    space = msgspec.structs.replace(space, dimensions=tuple(small))
    even, random = (
        statistics.mean(
            unevenness(space, values_of(space, seed, conversations, design)) for seed in range(dose(6, 50))
        )
        for design in ("even", "random")
    )
    assert even < random


@pytest.mark.long
@pytest.mark.parametrize("weights", WEIGHTS[:5])
def test_equal_weights_in_two_dimensions_do_not_tie_their_values_together(weights: Sequence[float]) -> None:
    """The order within a pass must be as random as the windows allow, or pairs would always be uneven."""
    space = weighted_space(weights, weights)
    even, random = (
        statistics.mean(
            unevenness(space, values_of(space, seed, 1000, design)) for seed in range(dose(6, 50))
        )
        for design in ("even", "random")
    )
    assert even < 1.1 * random


@RELAXED
@given(conditional_spaces(), st.integers(0, 2**32))
def test_conditions_and_exclusions_are_kept(space: Space, seed: int) -> None:
    allowed = allowed_cells(space)
    assume(allowed)
    sampler = Sampler(space, seed, "even")
    places = [{entry.value: at for at, entry in enumerate(one.entries)} for one in space.dimensions]
    for index in range(60):
        values = sampler.scenario(index).values.values()
        assert tuple(where[value] for where, value in zip(places, values, strict=True)) in allowed


def test_values_that_a_condition_allows_occur_equally_often_with_it() -> None:
    topics = tuple(Entry(name) for name in ("adding", "comparing", "ordering"))
    mistakes = (
        Entry("any 1"),
        Entry("any 2"),
        Entry("late", when={"topic": ("comparing", "ordering")}),
    )
    space = msgspec.structs.replace(
        plain_space(), dimensions=(Dimension("mistake", mistakes), Dimension("topic", topics))
    )
    for seed in range(5):
        rows = values_of(space, seed, 90)
        for many in range(1, 91):
            topics_so_far = Counter(topic for _, topic in rows[:many])
            assert max(topics_so_far.values()) - min(topics_so_far[one.value] for one in topics) <= 1
            later = Counter(mistake for mistake, topic in rows[:many] if topic != "adding")
            assert max([*later.values(), 0]) - min(later[one.value] for one in mistakes) <= 1


def test_exclusions_leave_each_value_near_its_share() -> None:
    space = msgspec.structs.replace(plain_space(3, 3), exclude=({"d0": ("0.0",), "d1": ("1.0",)},))
    for place in (0, 1):
        counts = Counter(row[place] for row in values_of(space, 1, 300))
        assert all(abs(count - 100) <= 3 for count in counts.values())


def test_no_allowed_combination_vanishes() -> None:
    space = msgspec.structs.replace(plain_space(2, 2), exclude=({"d0": ("0.0",), "d1": ("1.0",)},))
    counts = Counter(values_of(space, 1, 400))
    assert set(counts) == {("0.0", "1.1"), ("0.1", "1.0"), ("0.1", "1.1")}
    assert counts["0.1", "1.1"] >= 20


def test_scenarios_do_not_depend_on_what_was_drawn_before() -> None:
    space = load_space(resources.find("preference_space", "language_learning"))
    forward = [Sampler(space, 3, "even").scenario(index) for index in range(dose(4, 12))]
    sampler = Sampler(space, 3, "even")
    assert [sampler.scenario(index) for index in reversed(range(dose(4, 12)))][::-1] == forward
    assert sampler.scenario(10**12) == Sampler(space, 3, "even").scenario(10**12)


def test_another_seed_gives_another_order() -> None:
    space = plain_space(6, 6, 6)
    assert values_of(space, 1, 30) != values_of(space, 2, 30)


def test_golden_draws() -> None:
    """Scenarios of published runs: a change of these numbers changes the data of every user."""
    space = load_space(resources.find("preference_space", "education_dialogue"))
    topics = [Sampler(space, 7, "even").scenario(index).values["topic"] for index in (0, 137, 10**9)]
    assert topics == ["Capitalism", "Marie Curie", "Photosynthesis"]
    weighted = values_of(weighted_space((5, 3, 2)), 7, 20)
    assert "".join(row[0][-1] for row in weighted) == "02101010201002102010"


def test_conditions_that_leave_weightless_values_alone_are_an_error() -> None:
    entries = (Entry("a", 0.0, when={"d0": ("0.0",)}), Entry("b", when={"d0": ("0.1",)}))
    space = plain_space(2)
    space = msgspec.structs.replace(space, dimensions=(*space.dimensions, Dimension("d1", entries)))
    with pytest.raises(SpaceError, match="leave no value"):
        values_of(space, 0, 4)


@pytest.mark.parametrize(
    ("weights", "expected"),
    [([1, 1, 1], [1, 1, 1]), ([2, 4], [1, 2]), ([0.1, 0.2, 0.7], [1, 2, 7]), ([1 / 3, 1 / 6], [2, 1])],
)
def test_copies_are_the_smallest_whole_numbers(weights: list[float], expected: list[int]) -> None:
    assert find_whole_numbers(weights) == expected


def test_a_pass_of_thousands_of_values_is_made_in_a_moment() -> None:
    passes = Passes([1.0] * 5_000, None, "name", b"key")
    assert sorted(passes.draw(index)[0] for index in range(5_000)) == list(range(5_000))
