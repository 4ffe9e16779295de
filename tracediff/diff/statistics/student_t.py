"""Student's t for one number at a time, from the standard library: scipy.special takes as long to import as all else
takes that a comparison of a few runs computes. Tests check it against scipy, which computes hundreds at once (`many`).
"""

from __future__ import annotations

import math
from statistics import NormalDist

CONVERGED = 1e-16
"""Relative change below the precision of a float, which ends the continued fraction."""
MOST_TERMS = 100_000
"""Far more than any degrees of freedom need: their number grows with the square root."""


def quantile_t(probability: float, df: float) -> float:
    """Quantile of Student's t, for probabilities from 0.5 up; ``df`` may be infinite."""
    t = NormalDist().inv_cdf(probability)
    if math.isinf(df):
        return t
    # The tail is convex: from the normal quantile, which is smaller, Newton's steps rise until rounding ends them.
    while True:
        density = math.exp(-_log_beta(df) - (df + 1) / 2 * math.log1p(t * t / df)) / math.sqrt(df)
        after = t + (two_sided_p(t, df) / 2 - (1 - probability)) / density
        if after <= t:
            return t
        t = after


def two_sided_p(t: float, df: float) -> float:
    """P(|T| ≥ |t|) for Student's t: the incomplete beta function of df/2 and 1/2 at df / (df + t²)."""
    if math.isinf(df):
        return math.erfc(abs(t) / math.sqrt(2))
    if not t:
        return 1.0
    tail, rest = df / (df + t * t), t * t / (df + t * t)
    front = math.exp(-_log_beta(df) + df / 2 * math.log(tail)) * math.sqrt(rest)
    if tail < (df / 2 + 1) / (df / 2 + 2.5):  # where the fraction of this tail converges fast
        return front / (df / 2) * _fraction(df / 2, 0.5, tail)
    return 1 - front * 2 * _fraction(0.5, df / 2, rest)


def _log_beta(df: float) -> float:
    """log B(df/2, 1/2)."""
    return math.lgamma(df / 2) + math.lgamma(0.5) - math.lgamma((df + 1) / 2)


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function (DLMF 8.17.22) by Lentz's method."""
    upper, lower = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    value = lower
    for m in range(1, MOST_TERMS):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            upper, lower = 1 + term / upper, 1 / (1 + term * lower)
            value *= upper * lower
        if abs(upper * lower - 1) < CONVERGED:
            break
    return value
