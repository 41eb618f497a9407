"""What hangs together by links."""

from __future__ import annotations

from collections.abc import Iterable


def roots(size: int, links: Iterable[tuple[int, int]]) -> list[int]:
    """For each of `size` things the number of one that stands for all that links lead to from one another (disjoint
    sets, with paths halved)."""
    parent = list(range(size))

    def root(one: int) -> int:
        while parent[one] != one:
            parent[one] = one = parent[parent[one]]
        return one

    for a, b in links:
        parent[root(a)] = root(b)
    return [root(one) for one in range(size)]
