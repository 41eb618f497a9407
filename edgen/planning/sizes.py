"""How many conversations a balanced design needs, so that whatever is compared has enough of them.

Every cell of the space has k conversations after k passes over all cells, and not before. What spans many
cells, such as a pair of preferences with all topics and reactions, has k much earlier, but by chance: within
a pass the order of the cells is pseudo-random (`sampling`). `needed` says from when on that is all but sure.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from edgen.space import Space
from edgen.space.education import DIMENSIONS

_SURE = 0.95  # of all seeds, at least

# What people compare by in Education Dialogue, besides its cells: by which dimensions conversations are sorted.
_STRATA = (("student_preference", "teacher_preference"), ("student_reaction", "teacher_reaction"), ("topic",))


def strata(space: Space) -> Iterator[tuple[tuple[str, ...], int]]:
    """The dimensions that people sort by, and how many different combinations of their values there are: all, then
    those of Education Dialogue, or each by itself. `space` rules nothing out."""
    chosen = _STRATA if {*DIMENSIONS} <= {*space.names} else tuple((name,) for name in space.names)
    for names in (space.names, *chosen):
        yield names, math.prod(len(space[name].entries) for name in names)


def conversations_needed(strata: int, cells: int, k: int) -> int:
    """The number of conversations from which on each of so many equal strata has `k` or more, in 19 of 20
    seeds at least; for certain where a stratum is a cell, or where whole passes are needed.

    What a stratum has of a pass begun is hypergeometric, and no more spread than the binomial that is
    computed here (sampling with replacement; Hoeffding 1963); that one of many falls short is no likelier
    than the sum of their chances (Boole's inequality). So the number is rather too large than too small.
    """
    each = cells // strata  # conversations of a stratum in a pass
    passes = (k - 1) // each
    rest = k - passes * each
    if each == 1:
        return k * cells
    low, high = rest * strata, cells
    while low < high:
        middle = (low + high) // 2
        if strata * _fewer(middle, strata, rest) <= 1 - _SURE:
            high = middle
        else:
            low = middle + 1
    return passes * cells + high


def _fewer(draws: int, strata: int, k: int) -> float:
    """The chance that fewer than `k` of the draws fall to one of so many equal strata."""
    if strata == 1:
        return 0.0 if draws >= k else 1.0
    odds = math.log(1 / (strata - 1))
    term = draws * math.log1p(-1 / strata)
    chance = 0.0
    for hits in range(k):
        chance += math.exp(term)
        term += math.log((draws - hits) / (hits + 1)) + odds if draws > hits else -math.inf
    return chance
