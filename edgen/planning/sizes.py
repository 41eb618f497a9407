"""Sample sizes of a balanced design, and frequencies of each value among the first N scenarios of any design.

Every cell of the space has k conversations only after k passes over all cells. Combinations that span many
cells, such as a pair of values with all values of other dimensions, reach k much earlier, but by chance:
within a pass the order of cells is pseudo-random (`sampling`). `compute_needed_conversations` returns the
number from which this is almost certain.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from edgen.core.space_layouts import find_layout
from edgen.space import Space
from edgen.space.sampling import Design, Sampler

_SURE = 0.95  # minimum share of all seeds


def count_values(space: Space, design: Design, conversations: int) -> dict[str, Counter[str]]:
    """Count each value of each dimension in the first `conversations` scenarios of a design, with seed 0."""
    counts = {dimension.name: Counter(dict.fromkeys(dimension.values, 0)) for dimension in space.dimensions}
    scenario = Sampler(space, 0, design).scenario
    for index in range(conversations):
        for name, value in scenario(index).values.items():
            counts[name][value] += 1
    return counts


def list_strata(space: Space) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield (dimensions to group by, number of combinations): all dimensions, then the groups of the space's
    layout, or each dimension. `space` must have no conditions."""
    layout = find_layout(space.names)
    chosen = (layout and layout.strata) or tuple((name,) for name in space.names)
    for names in (space.names, *chosen):
        yield names, math.prod(len(space[name].entries) for name in names)


def compute_needed_conversations(strata: int, cells: int, k: int) -> int:
    """Return the number of conversations from which each of `strata` equal strata has at least `k`, for at
    least 19 of 20 seeds; for all seeds if a stratum is a cell, or whole passes are needed.

    A stratum's part of an incomplete pass is hypergeometric, with no more spread than the binomial computed
    here (sampling with replacement; Hoeffding 1963); the probability that any stratum falls short is at most
    the sum of theirs (Boole's inequality). So the number errs on the large side.
    """
    each = cells // strata  # conversations of a stratum in a pass
    passes = (k - 1) // each
    rest = k - passes * each
    if each == 1:
        return k * cells
    low, high = rest * strata, cells
    while low < high:
        middle = (low + high) // 2
        if strata * _compute_chance_of_fewer(middle, strata, rest) <= 1 - _SURE:
            high = middle
        else:
            low = middle + 1
    return passes * cells + high


def _compute_chance_of_fewer(draws: int, strata: int, k: int) -> float:
    """Return the probability that fewer than `k` of the draws are in a given one of `strata` equal strata."""
    if strata == 1:
        return 0.0 if draws >= k else 1.0
    odds = math.log(1 / (strata - 1))
    term = draws * math.log1p(-1 / strata)
    chance = 0.0
    for hits in range(k):
        chance += math.exp(term)
        term += math.log((draws - hits) / (hits + 1)) + odds if draws > hits else -math.inf
    return chance
