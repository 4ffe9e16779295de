"""Hundreds of small numbers at once: which operators, families or states changed.

A t whose variance is moderated by those of all others (limma's empirical Bayes, Smyth 2004) with a prior of at most
two degrees of freedom, and Benjamini–Hochberg over all that were tested. A free prior is fooled by what runs have in
common: it flags something in 22–44 % of comparisons of equal runs.
"""

import math

import numpy as np

from tracediff import thresholds
from tracediff.arrays import Floats, tuples
from tracediff.structs import FrozenStruct


class Significance(FrozenStruct):
    """What the runs of both sides say of the change of one number.

    Attributes:
        time_change: faster, slower, same, unclear or untested, or overlapping where that is and runs, or the steps of a
            run, take as long on both sides. All else is None where untested.
        p_value, q_value: p and its Benjamini–Hochberg adjustment. relative: change beyond what all numbers that were
            tested with it have in common. interval: 95 % interval of the relative change.
    """

    time_change: str = "untested"
    p_value: float | None = None
    q_value: float | None = None
    relative: float | None = None
    interval: tuple[float, float] | None = None

    @property
    def word(self) -> str:
        """`time_change` for a table: empty where untested."""
        return "" if self.time_change == "untested" else self.time_change


UNTESTED, OVERLAPPING = Significance(), Significance("overlapping")


class Tested(FrozenStruct):
    """What testing says of many numbers.

    Attributes:
        rows: the significance of each.
        common: logarithm of the factor that all tested have in common (their median), 0 where none was tested.
    """

    rows: tuple[Significance, ...]
    common: float


def compare_many(control: Floats, test: Floats, noise_floor: float = thresholds.NOISE_FLOOR) -> Tested:
    """Test k numbers given one value per run on both sides; none is tested where a side has a run without it.

    Args:
        control, test: float64[k, runs] µs per step, each run's median over its steps.
        noise_floor: relative changes up to this are never flagged.
    """
    present = (control > 0).all(axis=1) & (test > 0).all(axis=1)
    large = np.maximum(control.mean(axis=1), test.mean(axis=1)) >= thresholds.TESTED_US
    enough = min(control.shape[1], test.shape[1]) >= thresholds.TESTED_RUNS
    tested = np.flatnonzero(present & large & enough)
    rows = [UNTESTED] * len(control)
    if not len(tested):
        return Tested(tuple(rows), 0.0)
    logs = [np.log(side[tested]) for side in (control, test)]
    effect = logs[1].mean(axis=1) - logs[0].mean(axis=1)
    p, reach = _moderated(*logs)
    q, common = _adjusted(p), float(np.median(effect))
    relative, low, high = (np.expm1(change) for change in (effect - common, effect - reach, effect + reach))
    for k, e, half, one_p, one_q, change, *interval in tuples(tested, effect, reach, p, q, relative, low, high):
        rows[k] = Significance(_word(e, one_q, half, noise_floor), one_p, one_q, change, (interval[0], interval[1]))
    return Tested(tuple(rows), common)


def _moderated(control: Floats, test: Floats) -> tuple[Floats, Floats]:
    """(two-sided p, half width of the 95 % interval) of each row of logarithms."""
    from scipy.special import stdtr, stdtrit

    n, m = control.shape[1], test.shape[1]
    df = n + m - 2
    squares = ((control - control.mean(axis=1, keepdims=True)) ** 2).sum(axis=1) + (
        (test - test.mean(axis=1, keepdims=True)) ** 2
    ).sum(axis=1)
    variance = np.maximum(squares / df, thresholds.LEAST_SPREAD**2)
    prior, prior_df = _prior(variance, df)
    moderated = (prior_df * prior + df * variance) / (prior_df + df)
    error = np.sqrt(moderated * (1 / n + 1 / m))
    t = (test.mean(axis=1) - control.mean(axis=1)) / error
    reach = stdtrit(prior_df + df, 1 - thresholds.SIGNIFICANCE / 2) * error
    return np.minimum(1.0, 2 * stdtr(prior_df + df, -np.abs(t))), reach


def _prior(variance: Floats, df: int) -> tuple[float, float]:
    """(prior variance, its degrees of freedom) by the moments of log variances (Smyth 2004, section 6.2), the latter at
    most PRIOR_FREEDOM.
    """
    from scipy.special import digamma, polygamma

    if len(variance) < 3:
        return float(np.median(variance)), 0.0
    e = np.log(variance) - digamma(df / 2) + np.log(df / 2)
    excess = float(e.var(ddof=1) - polygamma(1, df / 2))
    prior_df = min(thresholds.PRIOR_FREEDOM, 2 * _inverse_trigamma(excess) if excess > 0 else math.inf)
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
    """faster or slower where that is neither chance nor trivial; same where the whole interval is a trifle; else
    unclear.
    """
    if q <= thresholds.SIGNIFICANCE and abs(effect) > math.log1p(floor):
        return "slower" if effect > 0 else "faster"
    return "same" if abs(effect) + reach < math.log1p(thresholds.EQUIVALENCE_BAND) else "unclear"
