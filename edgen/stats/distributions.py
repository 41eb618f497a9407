"""Summaries of many numbers: quantiles, and the bars of a histogram."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from itertools import accumulate, pairwise

import msgspec
import numpy as np
from numpy.typing import ArrayLike


class Bin(msgspec.Struct, frozen=True):
    """A bar of a histogram: low <= value < high, the last one including its end."""

    low: float
    high: float
    count: int


class Distribution(msgspec.Struct, frozen=True, kw_only=True):
    """A summary of numbers; quantiles are values of the data. All but `n` and `bins` are None if `n` is 0."""

    n: int  # count of numbers
    mean: float | None = None  # arithmetic mean
    sd: float | None = None  # standard deviation
    min: float | None = None  # the least
    p5: float | None = None  # 5th percentile
    p25: float | None = None  # 25th percentile
    median: float | None = None  # 50th percentile
    p75: float | None = None  # 75th percentile
    p95: float | None = None  # 95th percentile
    max: float | None = None  # the greatest
    bins: tuple[Bin, ...] = ()  # bars of a histogram


MOST_BINS = 40
_PERCENT = (5, 25, 50, 75, 95)
_POINTS = ("min", "p5", "p25", "median", "p75", "p95", "max")


def summarize_counts(counts: Mapping[int, int]) -> Distribution:
    """Summarise whole numbers given by their counts. A bar covers one number, or as many as needed for at
    most 40 bars. Quantiles are defined as in `summarize`."""
    values = sorted(value for value, count in counts.items() if count)
    if not values:
        return Distribution(n=0)
    low, high = values[0], values[-1] + 1
    width = _round_width((high - low) / MOST_BINS)
    low -= low % width if width > 1 else 0
    if low + width * MOST_BINS < high:  # rounding down made one bar too many
        width = _round_width((high - low) / MOST_BINS)
        low -= low % width
    bars = [0] * ((values[-1] - low) // width + 1)
    for value in values:
        bars[(value - low) // width] += counts[value]
    n = sum(bars)
    total = sum(value * counts[value] for value in values)
    squares = sum(value * value * counts[value] for value in values)
    upto = list(accumulate(counts[value] for value in values))
    # the smallest value with at least this share at or below it, in integer arithmetic
    quantiles = (values[bisect_left(upto, -(-n * percent // 100))] for percent in _PERCENT)
    points = map(float, (values[0], *quantiles, values[-1]))
    sd = math.sqrt((n * squares - total * total) / (n * (n - 1))) if n > 1 else None
    edges = (float(low + i * width) for i in range(len(bars) + 1))
    bins = tuple(Bin(start, end, count) for (start, end), count in zip(pairwise(edges), bars, strict=True))
    return Distribution(n=n, mean=total / n, sd=sd, bins=bins, **dict(zip(_POINTS, points, strict=True)))


def summarize_shares(values: ArrayLike, bars: int = 20) -> Distribution:
    """Summarise numbers in [0, 1], in `bars` bars of equal width. An edge belongs to the upper bar."""
    data = np.asarray(values, dtype=np.float64)
    if data.size == 0:
        return Distribution(n=0)
    # a computed edge may be slightly too low: 1 - 0.9 is less than 0.1
    at = np.clip(np.floor(data * bars + 1e-9).astype(np.int64), 0, bars - 1)
    counts = np.bincount(at, minlength=bars)
    bins = tuple(Bin(i / bars, (i + 1) / bars, int(n)) for i, n in enumerate(counts))
    return summarize(data, bins)


def summarize(data: np.typing.NDArray[np.float64], bins: tuple[Bin, ...]) -> Distribution:
    """Summarise numbers, at least one, with the bars of their histogram. Quantiles are values of the data:
    the smallest with at least that share at or below it (type 1 of Hyndman and Fan 1996, American
    Statistician 50). The deviation is the sample's, with n - 1."""
    points = map(float, np.percentile(data, (0, *_PERCENT, 100), method="inverted_cdf"))
    sd = float(np.std(data, ddof=1)) if data.size > 1 else None
    named = dict(zip(_POINTS, points, strict=True))
    return Distribution(n=int(data.size), mean=float(np.mean(data)), sd=sd, bins=bins, **named)


def _round_width(width: float) -> int:
    """Return the smallest of 1, 2, 5, 10, 20, 50, … that is at least `width`."""
    if width <= 1:
        return 1
    unit = 10 ** math.floor(math.log10(width))
    return int(next(unit * step for step in (1, 2, 5, 10) if unit * step >= width - 1e-9))
