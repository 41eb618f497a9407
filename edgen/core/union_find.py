"""Union-find over linked ids."""

from __future__ import annotations

from collections.abc import Iterable


def roots(size: int, links: Iterable[tuple[int, int]]) -> list[int]:
    """Return for each of `size` ids the representative of its linked group (disjoint sets with path
    halving)."""
    parent = list(range(size))

    def root(one: int) -> int:
        while parent[one] != one:
            parent[one] = one = parent[parent[one]]
        return one

    for a, b in links:
        parent[root(a)] = root(b)
    return [root(one) for one in range(size)]
