"""Both designs: guarantees for every scenario, and for many together."""

from __future__ import annotations

import math
import random
import tracemalloc
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgen.core import resources
from edgen.core.values import Scenario
from edgen.space import Dimension, Entry, Space, load_space, parse_space
from edgen.space.permutation import ROUNDS, Permutation, mix
from edgen.space.sampling import Sampler
from tests.dose import dose
from tests.scenarios import DIMENSIONS, LISTS, ROLES

Design = Literal["balanced", "random"]
DESIGNS: tuple[Design, ...] = ("balanced", "random")


def space_of(*sizes: int, weights: Sequence[float] | None = None) -> Space:
    """Return a space with lists of these sizes; `weights` are the topics'."""
    lists = [tuple(Entry(f"{name}{i}") for i in range(n)) for name, n in zip("abcde", sizes, strict=True)]
    if weights is not None:
        lists[0] = tuple(Entry(f"a{i}", weight) for i, weight in enumerate(weights))
    dimensions = (Dimension(name, entries) for name, entries in zip(DIMENSIONS, lists, strict=True))
    return Space(name="made", dimensions=tuple(dimensions), roles=ROLES)


def cell(scenario: Scenario) -> tuple[str, ...]:
    return tuple(scenario.values.values())


def chi_square(counts: Counter[str], expected: dict[str, float]) -> float:
    """Return by how many standard deviations the chi-square statistic exceeds its mean."""
    freedom = len(expected) - 1
    statistic = sum((counts[key] - mean) ** 2 / mean for key, mean in expected.items())
    return (statistic - freedom) / math.sqrt(2 * freedom)


def education_dialogue() -> Space:
    return load_space(resources.find("preference_space", "education_dialogue"))


# Every promise of both designs.


@pytest.mark.parametrize("design", DESIGNS)
def test_a_scenario_depends_on_its_index_and_not_on_what_was_asked_before(design: Design) -> None:
    space = space_of(5, 2, 3, 1, 2)
    in_order = [Sampler(space, 3, design).scenario(i) for i in range(200)]
    indices = list(range(200))
    random.Random(0).shuffle(indices)
    sampler = Sampler(space, 3, design)
    shuffled = {i: sampler.scenario(i) for i in indices}
    assert [shuffled[i] for i in range(200)] == in_order
    assert [scenario.index for scenario in in_order] == list(range(200))
    assert Sampler(space, 3, design).scenario(137) == in_order[137]


@pytest.mark.parametrize("design", DESIGNS)
def test_a_scenario_depends_on_the_content_of_the_space_and_not_on_its_words_about_it(design: Design) -> None:
    def drawn(text: str) -> list[tuple[str, ...]]:
        sampler = Sampler(parse_space(text, "mine.yaml"), 3, design)
        return [cell(sampler.scenario(i)) for i in range(20)]

    lists = "".join(f"{name}: [a, b, c, d]\n" for name in LISTS.values())
    plain = drawn(f"name: x\n{lists}")
    assert drawn(f"# words\nname: y\ndescription: d\nsource: s\n{lists}") == plain
    assert drawn(f"name: x\n{lists.replace('topics: [a, b', 'topics: [b, a')}") != plain
    assert drawn(f"name: x\n{lists.replace('topics: [a', 'topics: [{value: a, level: x}')}") != plain


def test_seeds_and_designs_draw_apart() -> None:
    space = space_of(10, 10, 10, 10, 10)
    drawn = [
        tuple(cell(Sampler(space, seed, d).scenario(i)) for i in range(5))
        for seed in (0, 1, 2, 2**63 - 1)
        for d in DESIGNS
    ]
    assert len(set(drawn)) == len(drawn)


@pytest.mark.parametrize("design", DESIGNS)
def test_any_index_from_zero_is_drawn_and_none_below(design: Design) -> None:
    sampler = Sampler(space_of(3, 2, 2, 2, 2), 0, design)
    assert sampler.scenario(10**40).index == 10**40
    with pytest.raises(ValueError, match="-1 is below"):
        sampler.scenario(-1)


@pytest.mark.parametrize("design", DESIGNS)
def test_subject_and_level_come_with_the_topic(design: Design) -> None:
    space = space_of(2, 1, 1, 1, 1)
    said = {"subject": "Physics", "level": "secondary"}
    space = space.replace_entries("topic", (Entry("Tides", 1, said), Entry("Rhyme", 1)))
    sampler = Sampler(space, 0, design)
    found = {
        (s["topic"], s.field("topic", "subject"), s.field("topic", "level"))
        for s in map(sampler.scenario, range(50))
    }
    assert found == {("Tides", "Physics", "secondary"), ("Rhyme", None, None)}


@pytest.mark.parametrize("design", DESIGNS)
def test_memory_does_not_grow_with_the_product_or_with_draws(design: Design) -> None:
    sampler = Sampler(space_of(100, 100, 100, 100, 10), 0, design)
    sampler.scenario(0)
    tracemalloc.start()
    try:
        for i in range(2_000):
            sampler.scenario(i * 999_983)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20_000, f"{peak} bytes"


GOLDEN = {
    ("balanced", 0, 0): (
        "Abraham Lincoln",
        "creative expression/story telling/gamification",
        "and might tell it to the teacher",
        "interactive learning/class discussions/inquiry-based learning",
        "and blames the student otherwise",
    ),
    ("balanced", 7, 137): (
        "World War 1",
        "direct instruction/lecture-based learning",
        "and gets disengaged otherwise",
        "experiential learning/hands-on activities",
        "and blames the student otherwise",
    ),
    ("balanced", 7, 37440): (
        "Cells",
        "creative expression/story telling/gamification",
        "and gets rude otherwise",
        "direct instruction/lecture-based learning",
        "and might insist on teaching this way",
    ),
    ("random", 0, 0): (
        "Metaphor",
        "hands-on activities/real-world applications",
        "and gets frustrated otherwise",
        "experiential learning/hands-on activities",
        "and blames the student otherwise",
    ),
    ("random", 7, 137): (
        "The Russian Revolution",
        "interactive learning/class discussions/asking questions",
        "and gets rude otherwise",
        "experiential learning/hands-on activities",
        "but might adapt to the student",
    ),
    ("random", 7, 1000000): (
        "Hercules",
        "direct instruction/lecture-based learning",
        "and gets anxious otherwise",
        "experiential learning/hands-on activities",
        "and gets frustrated otherwise",
    ),
}


@pytest.mark.parametrize(("design", "seed", "index"), GOLDEN)
def test_scenarios_of_education_dialogue_are_those_of_every_run_before(
    design: Design, seed: int, index: int
) -> None:
    assert cell(Sampler(education_dialogue(), seed, design).scenario(index)) == GOLDEN[design, seed, index]


# Balanced.


SIZES = [
    (1, 1, 1, 1, 1),
    (2, 1, 1, 1, 1),
    (1, 3, 1, 1, 1),
    (5, 1, 1, 1, 1),
    (1, 1, 7, 1, 1),
    (1, 1, 1, 2, 2),
    (3, 2, 1, 1, 1),
    (13, 1, 1, 1, 1),
    (2, 2, 2, 2, 2),
    (17, 1, 1, 1, 3),
    (5, 3, 2, 2, 2),
    (101, 1, 1, 1, 1),
]


@pytest.mark.parametrize("seed", [0, 1, 99])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_balanced_visits_every_cell_equally_often_in_every_prefix(sizes: tuple[int, ...], seed: int) -> None:
    space = space_of(*sizes)
    sampler = Sampler(space, seed, "balanced")
    counts: Counter[tuple[str, ...]] = Counter()
    for i in range(3 * space.product):
        counts[cell(sampler.scenario(i))] += 1
        passes = i // space.product
        # Never a cell twice in one pass: with all i + 1 draws counted, none lags by more than one.
        assert counts.most_common(1)[0][1] == passes + 1
        if (i + 1) % space.product == 0:
            assert set(counts.values()) == {passes + 1}
            assert len(counts) == space.product


def test_balanced_takes_every_pass_in_another_order() -> None:
    space = space_of(5, 2, 2, 2, 1)
    sampler = Sampler(space, 0, "balanced")
    passes = {tuple(cell(sampler.scenario(40 * n + i)) for i in range(40)) for n in range(20)}
    assert len(passes) == 20


def test_balanced_repeats_nothing_in_a_product_of_a_hundred_million_cells() -> None:
    space = space_of(100, 100, 100, 10, 10)
    assert space.product == 10**8
    sampler = Sampler(space, 0, "balanced")
    # Two stretches far apart: one pass, so no cell twice. Random draws would repeat eighteen, give or take
    # four.
    indices = [*range(30_000), *range(10**8 - 30_000, 10**8)]
    assert len({cell(sampler.scenario(i)) for i in indices}) == 60_000


def test_balanced_looks_shuffled() -> None:
    """Marginals of a prefix are uniform, and neighbours are independent."""
    space = space_of(20, 4, 6, 4, 5)
    sampler = Sampler(space, 1, "balanced")
    drawn = [cell(sampler.scenario(i)) for i in range(3_000)]
    for values, dimension in zip(zip(*drawn, strict=True), space.dimensions, strict=True):
        entries = dimension.entries
        expected = {entry.value: len(drawn) / len(entries) for entry in entries}
        assert chi_square(Counter(values), expected) < 4
    pairs = Counter(f"{here[0]}{there[0]}" for here, there in pairwise(drawn))
    assert chi_square(pairs, {f"a{i}a{j}": 2_999 / 400 for i in range(20) for j in range(20)}) < 4


@pytest.mark.parametrize("size", [2, 3, 5, 7, 12, 40])
def test_every_point_is_equally_likely_to_come_first_and_second(size: int) -> None:
    """The points are uniform over keys.

    With four rounds instead of six, this fails for the smallest sizes.
    """
    rng = random.Random(size)
    permutations = [Permutation(size, keys(rng)) for _ in range(3_000)]
    for place in (0, 1):
        counts = Counter(str(permutation(place)) for permutation in permutations)
        assert chi_square(counts, {str(point): 3_000 / size for point in range(size)}) < 5


def keys(rng: random.Random) -> list[int]:
    return [rng.getrandbits(64) for _ in range(ROUNDS)]


def undone(permutation: Permutation, point: int) -> int:
    """Return the point that `permutation` maps to this one: its rounds and its walk, backwards."""
    while True:
        left, right = divmod(point, permutation.b)
        for key, next_key in reversed(permutation.rounds):
            right = (right - mix(left + next_key)) % permutation.b
            left = (left - mix(right + key)) % permutation.a
        point = left * permutation.b + right
        if point < permutation.size:
            return point


@settings(max_examples=dose(12, 120), deadline=None)
@given(size=st.integers(1, 10**25), seed=st.integers(0, 2**32), data=st.data())
def test_a_permutation_of_any_size_can_be_undone(size: int, seed: int, data: st.DataObject) -> None:
    permutation = Permutation(size, keys(random.Random(seed)))
    point = data.draw(st.integers(0, size - 1))
    assert 0 <= permutation(point) < size
    assert undone(permutation, permutation(point)) == point
    assert permutation(undone(permutation, point)) == point


@settings(max_examples=dose(10, 50), deadline=None)
@given(size=st.integers(1, 600), seed=st.integers(0, 2**32))
def test_a_permutation_takes_the_range_to_itself(size: int, seed: int) -> None:
    permutation = Permutation(size, keys(random.Random(seed)))
    assert sorted(map(permutation, range(size))) == list(range(size))
    excess = permutation.a * permutation.b - size
    assert 0 <= excess < permutation.a, "cycle walking must stay rare"


# Random.


def topics(sampler: Sampler, indices: Iterable[int]) -> Counter[str]:
    return Counter(sampler.scenario(i)["topic"] for i in indices)


def test_random_follows_the_weights() -> None:
    weights = (1, 0.5, 10, 3.25, 0, 7)
    counts = topics(Sampler(space_of(6, 1, 1, 1, 1, weights=weights), 5, "random"), range(20_000))
    assert counts["a4"] == 0, "weight 0 is never drawn"
    share = 20_000 / sum(weights)
    assert chi_square(counts, {f"a{i}": weight * share for i, weight in enumerate(weights) if weight}) < 4


def test_random_draws_each_dimension_on_its_own() -> None:
    space = space_of(4, 3, 2, 2, 5)
    sampler = Sampler(space, 2, "random")
    drawn = [cell(sampler.scenario(i)) for i in range(12_000)]
    counts = Counter(" ".join(values) for values in drawn)
    everything = {" ".join(values): 12_000 / 240 for values in _product(space)}
    assert len(everything) == 240
    assert chi_square(counts, everything) < 4


def _product(space: Space) -> list[tuple[str, ...]]:
    sampler = Sampler(space, 0, "balanced")
    return [cell(sampler.scenario(i)) for i in range(space.product)]


@pytest.mark.parametrize("weights", [(5e-324, 5e-324), (1e308, 1e308), (0.0, 1e-300), (1e300, 0.0)])
def test_random_takes_weights_however_small_or_large(weights: tuple[float, ...]) -> None:
    counts = topics(Sampler(space_of(2, 1, 1, 1, 1, weights=weights), 0, "random"), range(400))
    heavy = {f"a{i}" for i, weight in enumerate(weights) if weight}
    assert set(counts) == heavy
    assert all(counts[topic] > 150 for topic in heavy)


def test_weights_are_relative() -> None:
    share = {}
    for scale in (1, 1000):
        sampler = Sampler(space_of(2, 1, 1, 1, 1, weights=(scale, 3 * scale)), 0, "random")
        share[scale] = topics(sampler, range(4_000))["a1"] / 4_000
    assert share[1] == pytest.approx(0.75, abs=0.03)
    assert share[1000] == pytest.approx(0.75, abs=0.03)
