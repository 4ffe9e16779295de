"""Hundreds of small numbers at once: which operators, families or states changed.

A t whose variance is moderated by those of all others (limma's empirical Bayes, Smyth 2004) with a prior of at most
MOST_PRIOR degrees of freedom, and
Benjamini–Hochberg over all that were tested. A free prior is fooled by what runs have in common: it flags something in
22–44 % of comparisons of
equal runs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracediff.diff.statistics.runs import LEAST_SD, LEVEL

Floats = NDArray[np.float64]
MOST_PRIOR = 2.0
LEAST_RUNS = 3
LEAST_US = 10.0
"""Time per step below which nothing is tested: the profiler's own resolution and cost are of that size."""
NOISE_FLOOR = 0.01
SAME_BAND = 0.05


@dataclass(frozen=True, kw_only=True)
class Tested:
    """What testing says of many numbers, k of them.

    Attributes:
        effect: float64[k] logarithm of test / control; NaN where a side has a run without it.
        p, q: float64[k] p and its Benjamini–Hochberg adjustment; NaN where untested.
        verdict: k words: faster, slower, same, unclear, untested.
        common: logarithm of the factor that all tested have in common (their median), 0 where none was tested.
        reach: float64[k] half width of the 95 % interval of the effect; NaN where untested.
    """

    effect: Floats
    p: Floats
    q: Floats
    verdict: tuple[str, ...]
    common: float
    reach: Floats

    def line(self, k: int) -> tuple[str, float | None, float | None, float | None]:
        """(verdict, p, q, change relative to the common factor) of number k, None where untested."""
        if self.verdict[k] == "untested":
            return "untested", None, None, None
        return self.verdict[k], float(self.p[k]), float(self.q[k]), float(np.expm1(self.effect[k] - self.common))

    def interval(self, k: int) -> tuple[float, float] | None:
        """95 % interval of the relative change of number k, None where untested."""
        if self.verdict[k] == "untested":
            return None
        return float(np.expm1(self.effect[k] - self.reach[k])), float(np.expm1(self.effect[k] + self.reach[k]))


def compare_many(control: Floats, test: Floats, noise_floor: float = NOISE_FLOOR) -> Tested:
    """Test k numbers given one value per run on both sides.

    Args:
        control, test: float64[k, runs] µs per step, each run's median over its steps.
        noise_floor: relative changes up to this are never flagged.
    """
    k = len(control)
    present = (control > 0).all(axis=1) & (test > 0).all(axis=1) if k else np.zeros(0, bool)
    effect, p, q, reach = (np.full(k, np.nan) for _ in range(4))
    logs = [np.log(side[present]) for side in (control, test)]
    effect[present] = logs[1].mean(axis=1) - logs[0].mean(axis=1)
    large = np.maximum(control.mean(axis=1), test.mean(axis=1)) >= LEAST_US if k else present
    enough = min(control.shape[1], test.shape[1]) >= LEAST_RUNS
    tested = present & large & enough
    if tested.any():
        p[tested], reach[tested] = _moderated(np.log(control[tested]), np.log(test[tested]))
        q[tested] = _adjusted(p[tested])
    columns = zip(effect.tolist(), q.tolist(), reach.tolist(), tested.tolist(), strict=True)
    words = tuple(_word(e, x, r, noise_floor) if t else "untested" for e, x, r, t in columns)
    return Tested(
        effect=effect,
        p=p,
        q=q,
        verdict=words,
        common=float(np.median(effect[tested])) if tested.any() else 0.0,
        reach=reach,
    )


def _moderated(control: Floats, test: Floats) -> tuple[Floats, Floats]:
    """(two-sided p, half width of the 95 % interval) of each row of logarithms."""
    from scipy.special import stdtr, stdtrit

    n, m = control.shape[1], test.shape[1]
    df = n + m - 2
    squares = ((control - control.mean(axis=1, keepdims=True)) ** 2).sum(axis=1) + (
        (test - test.mean(axis=1, keepdims=True)) ** 2
    ).sum(axis=1)
    variance = np.maximum(squares / df, LEAST_SD**2)
    prior, prior_df = _prior(variance, df)
    moderated = (prior_df * prior + df * variance) / (prior_df + df)
    error = np.sqrt(moderated * (1 / n + 1 / m))
    t = (test.mean(axis=1) - control.mean(axis=1)) / error
    return np.minimum(1.0, 2 * stdtr(prior_df + df, -np.abs(t))), stdtrit(prior_df + df, 1 - LEVEL / 2) * error


def _prior(variance: Floats, df: int) -> tuple[float, float]:
    """(prior variance, its degrees of freedom) by the moments of log variances (Smyth 2004, section 6.2), the latter at
    most MOST_PRIOR.
    """
    from scipy.special import digamma, polygamma

    if len(variance) < 3:
        return float(np.median(variance)), 0.0
    e = np.log(variance) - digamma(df / 2) + np.log(df / 2)
    excess = float(e.var(ddof=1) - polygamma(1, df / 2))
    prior_df = min(MOST_PRIOR, 2 * _inverse_trigamma(excess)) if excess > 0 else MOST_PRIOR
    return float(np.exp(e.mean() + digamma(prior_df / 2) - np.log(prior_df / 2))) if prior_df > 0 else 1.0, prior_df


def _inverse_trigamma(x: float) -> float:
    """y with trigamma(y) = x, by Newton's method on 1 / trigamma, which is nearly straight."""
    from scipy.special import polygamma

    y = 0.5 + 1 / x
    for _ in range(50):
        tri = float(polygamma(1, y))
        step = tri * (1 - tri / x) / float(polygamma(2, y))
        y += step
        if abs(step) < 1e-10 * y:
            break
    return y


def _adjusted(p: Floats) -> Floats:
    """Benjamini and Hochberg's q, as scipy.stats.false_discovery_control, which takes seconds to import."""
    order = np.argsort(p)
    ascending = p[order] * (len(p) / np.arange(1, len(p) + 1))
    q = np.empty_like(p)
    q[order] = np.minimum(np.minimum.accumulate(ascending[::-1])[::-1], 1.0)
    return q


def _word(effect: float, q: float, reach: float, floor: float) -> str:
    """faster or slower where that is no accident and no trifle; same where the whole interval is a trifle; else
    unclear.
    """
    if q <= LEVEL and abs(effect) > np.log1p(floor):
        return "slower" if effect > 0 else "faster"
    return "same" if abs(effect) + reach < np.log1p(SAME_BAND) else "unclear"
