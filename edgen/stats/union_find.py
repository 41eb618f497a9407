"""Union-find over linked ids."""

from __future__ import annotations

from collections.abc import Iterable


def find_roots(size: int, links: Iterable[tuple[int, int]]) -> list[int]:
    """Return for each of `size` ids the representative of its linked group (disjoint sets with path
    halving)."""
    parent = list(range(size))

    def find_root(one: int) -> int:
        while parent[one] != one:
            parent[one] = one = parent[parent[one]]
        return one

    for a, b in links:
        parent[find_root(a)] = find_root(b)
    return [find_root(one) for one in range(size)]
