"""Quantiles and Wilson's interval for a share, in plain Python, so that cost estimates do not need numpy."""

from __future__ import annotations

import math

Z95 = 1.959963984540054
# Student's t at 97.5%, for 1 to 10 degrees of freedom.
_T95 = (12.706205, 4.302653, 3.182446, 2.776445, 2.570582, 2.446912, 2.364624, 2.306004, 2.262157, 2.228139)


def t95(freedom: int) -> float:
    """Return the 97.5% point of Student's t with `freedom` degrees of freedom, at least 1, to 5 digits.

    Above ten by Cornish and Fisher's expansion (Abramowitz and Stegun 1964, 26.7.5).
    """
    if freedom <= len(_T95):
        return _T95[freedom - 1]
    z, n = Z95, float(freedom)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / n + second / n**2 + third / n**3


def wilson(share: float, size: float, quantile: float) -> tuple[float, float]:
    """Return Wilson's interval (1927, JASA 22) for a share of `size` observations, within 0 and 1."""
    z2 = quantile * quantile / size
    centre = (share + z2 / 2) / (1 + z2)
    half = math.sqrt(max(share * (1 - share) / size + z2 / (4 * size), 0.0)) * quantile / (1 + z2)
    # rounding may move an end past a share of 0 or 1
    return min(max(centre - half, 0.0), share), max(min(centre + half, 1.0), share)
