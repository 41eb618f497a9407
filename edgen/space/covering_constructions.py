"""Covering arrays in closed form, for dimensions of similar size.

Over a field of q elements: an orthogonal array of q**t rows and q + 1 columns (q + 2 for t = 3 and even q;
Bush, "Orthogonal arrays of index unity", Annals of Mathematical Statistics 23, 1952). For t = 2: its product
with itself, of q**2 + m(q**2 - q) rows and more than (q + 1) q**m columns (Stevens and Mendelsohn, "New
recursive methods for transversal covers", Journal of Combinatorial Designs 7, 1999). For two values and t =
2: the optimum (Katona 1973; Kleitman and Spencer 1973). For two values and t = 3: Paley's matrix of order 12.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations, product

Partial = tuple[int | None, ...]  # None: any place
_PRIME_POWERS = (2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25)  # the sizes of fields
_MOST_ROWS = 20_000
# x**m in lower powers, by the size of the field: digits of an irreducible polynomial, lowest first.
_REDUCED = {4: (1, 1), 8: (1, 1, 0), 9: (2, 0), 16: (1, 1, 0, 0), 25: (3, 0)}


def construct_rows(sizes: Sequence[int], strength: int) -> list[Partial]:
    """Return rows that cover every combination of any `strength` dimensions; empty if no construction is
    small enough."""
    largest, columns = max(sizes), len(sizes)
    rows: list[tuple[int, ...]] = []
    if largest == 2:
        rows = _build_binary(columns) if strength == 2 else _build_paley(columns)
    if not rows:
        rows = _build_over_field(largest, columns, strength)
    return [
        tuple(place if place < size else None for place, size in zip(row, sizes, strict=False))
        for row in rows
    ]


def list_affine_maps(q: int) -> list[list[int]]:
    """Return the maps x -> ax + b of a field of q elements, a not 0; empty if the field is not supported."""
    if q not in _PRIME_POWERS:
        return []
    add, times = _build_field(q)
    return [[add[times[a][x]][b] for x in range(q)] for a in range(1, q) for b in range(q)]


def _build_over_field(largest: int, columns: int, strength: int) -> list[tuple[int, ...]]:
    for q in _PRIME_POWERS:
        if q < largest:
            continue
        rows = _build_orthogonal(q, strength)
        if columns <= len(rows[0]):
            return [row[:columns] for row in rows]
        if strength == 2 and columns <= (q + 1) * q**3 and q**2 <= 2 * largest**2:
            return _build_product(q, rows, columns)
        if q**strength > _MOST_ROWS or q > 2 * largest + 2:
            break
    return []


def _build_orthogonal(q: int, strength: int) -> list[tuple[int, ...]]:
    """Return a row for each polynomial of degree below `strength`: its values, then the coefficients that
    serve as further columns."""
    add, times = _build_field(q)
    rows = []
    for coefficients in product(range(q), repeat=strength):
        values = []
        for x in range(q):
            value = 0
            for coefficient in reversed(coefficients):
                value = add[times[value][x]][coefficient]
            values.append(value)
        more = [coefficients[-1]]
        if strength == 3 and q % 2 == 0:
            more.append(coefficients[1])
        rows.append((*values, *more))
    return rows


def _build_product(q: int, rows: list[tuple[int, ...]], columns: int) -> list[tuple[int, ...]]:
    """Return the columns in q copies, distinguished by the non-constant rows of the orthogonal array, and a
    column of these rows' slopes, 0 elsewhere."""
    apart = [(row[:q], row[q]) for row in rows if row[q]]
    found = rows
    while len(found[0]) < columns:
        wide = [(*[value for value in row for _ in range(q)], 0) for row in found]
        found = [*wide, *[(*(values * len(found[0])), slope) for values, slope in apart]]
    return [row[:columns] for row in found]


def _build_binary(columns: int) -> list[tuple[int, ...]]:
    """Return the optimal array of two values and strength 2: a row of zeros above columns that are different
    sets of the same size, any two of which intersect."""
    count = next(n for n in range(4, 64) if math.comb(n - 1, math.ceil(n / 2)) >= columns)
    chosen = combinations(range(count - 1), math.ceil(count / 2))
    sets = [frozenset(one) for _, one in zip(range(columns), chosen, strict=False)]
    return [(0,) * columns, *[tuple([int(row in one) for one in sets]) for row in range(count - 1)]]


def _build_paley(columns: int) -> list[tuple[int, ...]]:
    """Return twelve rows that cover all triples of up to eleven columns."""
    if columns > 11 or columns < 5:
        return []
    squares = {x * x % 11 for x in range(1, 11)}
    rows = [tuple([int((column - row) % 11 in squares) for column in range(11)]) for row in range(11)]
    return [row[:columns] for row in [*rows, (1,) * 11]]


def _build_field(q: int) -> tuple[list[list[int]], list[list[int]]]:
    """Return the sums and products of a field of q elements, as tables."""
    p = next(prime for prime in _PRIME_POWERS if q % prime == 0)
    if p == q:
        return (
            [[(x + y) % q for y in range(q)] for x in range(q)],
            [[x * y % q for y in range(q)] for x in range(q)],
        )
    reduced = _REDUCED[q]
    degree = len(reduced)

    def list_digits(number: int) -> list[int]:
        return [number // p**power % p for power in range(degree)]

    def read_number(digits_: Sequence[int]) -> int:
        return sum(digit % p * p**power for power, digit in enumerate(digits_))

    def multiply(x: int, y: int) -> int:
        long = [0] * (2 * degree - 1)
        for i, one in enumerate(list_digits(x)):
            for j, other in enumerate(list_digits(y)):
                long[i + j] += one * other
        for power in range(2 * degree - 2, degree - 1, -1):
            for i, digit in enumerate(reduced):
                long[power - degree + i] += long[power] * digit
        return read_number(long[:degree])

    add = [
        [read_number([a + b for a, b in zip(list_digits(x), list_digits(y), strict=True)]) for y in range(q)]
        for x in range(q)
    ]
    return add, [[multiply(x, y) for y in range(q)] for x in range(q)]
