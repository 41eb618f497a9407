"""Rows and seconds that `design: pairwise` needs, against the best known number of rows.

python -m bench.covering

Best known: orthogonal arrays are optimal (3^4, 5^6, and 4^6 of strength 3). 3^13, 10^20 and the mixed one are
the smallest that any tool published at https://www.pairwise.org/efficiency.html. The other bounds have not
been looked up again in Colbourn's tables (https://www.public.asu.edu/~ccolbou/src/tabby/): check them before
quoting.
"""

from __future__ import annotations

import time

from edgen.space import Dimension, Entry, Space
from edgen.space.cells import AllowedCells
from edgen.space.covering import build_covering_array

CASES: list[tuple[str, int, list[int], int]] = [
    ("3^4", 2, [3] * 4, 9),
    ("3^13", 2, [3] * 13, 15),
    ("4^20", 2, [4] * 20, 28),
    ("5^6", 2, [5] * 6, 25),
    ("10^10", 2, [10] * 10, 117),
    ("10^20", 2, [10] * 20, 162),
    ("2^64", 2, [2] * 64, 10),
    ("4^15 3^17 2^29", 2, [4] * 15 + [3] * 17 + [2] * 29, 29),
    ("2^10", 3, [2] * 10, 12),
    ("3^6", 3, [3] * 6, 33),
    ("3^10", 3, [3] * 10, 45),
    ("4^6", 3, [4] * 6, 64),
]


def main() -> None:
    """Print one row per case."""
    print(f"{'dimensions':16}{'strength':>9}{'rows':>7}{'best known':>12}{'ratio':>7}{'CPU s':>7}")
    for name, strength, sizes, best in CASES:
        dimensions = [
            Dimension(f"d{i}", tuple(Entry(str(j)) for j in range(size))) for i, size in enumerate(sizes)
        ]
        cells = AllowedCells(Space(name=name, dimensions=tuple(dimensions), roles=()))
        started = time.process_time()
        rows = len(build_covering_array(cells, strength, bytes(32)))
        spent = time.process_time() - started
        print(f"{name:16}{strength:>9}{rows:>7}{best:>12}{rows / best:>7.2f}{spent:>7.2f}")


if __name__ == "__main__":
    main()
