"""From what some scenarios used to what others will: sums with an interval, and shares with one."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from edgen.cost.usage import Used, add_up

LEVEL = 0.95  # of intervals: so often they hold what comes, as far as what was is like it
_Z = 1.959963984540054  # the normal quantile for LEVEL


class Range(NamedTuple):
    """What a job uses: at the low end, as expected, at the high end."""

    low: Used
    expected: Used
    high: Used

    def plus(self, other: Range) -> Range:
        return Range(*(mine.plus(theirs) for mine, theirs in zip(self, other, strict=True)))

    def widened(self, factor: float) -> Range:
        return Range(self.low.times(1 / factor), self.expected, self.high.times(factor))

    def parted(self, calls: float) -> tuple[Range, Range]:
        """What so many of the calls use, and what the others do, each call taken to use alike."""
        shares = [min(calls / level.calls, 1.0) if level.calls else 0.0 for level in self]
        pairs = list(zip(self, shares, strict=True))
        return Range(*(level.times(p) for level, p in pairs)), Range(
            *(level.times(1 - p) for level, p in pairs)
        )

    def less(self, there: Used) -> Range:
        """Without what is there already, and never below nothing."""
        return Range(
            *(
                Used(*(max(whole - had, 0.0) for whole, had in zip(level, there, strict=True)))
                for level in self
            )
        )


def scale(levels: tuple[Used, Used, Used], scenarios: float) -> Range:
    """So many scenarios that are assumed to be low, as expected, or high all together."""
    return Range(*(level.times(scenarios) for level in levels))


def predict(seen: Sequence[Used], scenarios: float) -> Range:
    """The sums over so many scenarios that are still to come, from those that were seen (one at least).

    The interval for the sum of n future draws from m seen ones: n times their mean, give or take
    t(m - 1) s sqrt(n + n²/m) (Hahn and Meeker, "Statistical Intervals", 1991). What never happened may: one
    more scenario with one more call than the mean counts towards s, as if it had been seen, in the spirit of
    Agresti and Coull's interval for shares (1998); else a hundred scenarios without a second ask would rule
    the second ask out.
    """
    n, m = scenarios, len(seen)
    mean = add_up(seen).times(1 / m)
    one_more = mean.plus(mean.times(1 / mean.calls)) if mean.calls else mean
    half = []
    for k in range(len(mean)):
        values = [used[k] for used in seen]
        spread = statistics.stdev([*values, one_more[k]])
        half.append(t_quantile(m) * spread * math.sqrt(n + n * n / m))
    expected = mean.times(n)
    fewest = min(used.calls for used in seen) * n
    low = Used(*(max(whole - h, 0.0) for whole, h in zip(expected, half, strict=True)))
    high = Used(*(whole + h for whole, h in zip(expected, half, strict=True)))
    return Range(low._replace(calls=max(low.calls, fewest)), expected, high)


def share(part: int, whole: int) -> tuple[float, float, float]:
    """(low, as seen, high) of a share: Wilson's interval (1927)."""
    seen = part / whole
    centre = (seen + _Z**2 / (2 * whole)) / (1 + _Z**2 / whole)
    half = _Z / (1 + _Z**2 / whole) * math.sqrt(seen * (1 - seen) / whole + _Z**2 / (4 * whole**2))
    return max(centre - half, 0.0), seen, min(centre + half, 1.0)


def t_quantile(freedom: int) -> float:
    """Student's t for LEVEL, two-sided: exact for one and two degrees of freedom, else within 0.5 % by the
    expansion 26.7.5 of Abramowitz and Stegun (1964)."""
    if freedom <= 1:
        return math.tan(math.pi * LEVEL / 2)
    if freedom == 2:
        return LEVEL * math.sqrt(2 / (1 - LEVEL**2))
    z, v = _Z, float(freedom)
    return (
        z
        + (z**3 + z) / (4 * v)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * v**3)
    )
