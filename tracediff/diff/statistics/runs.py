"""One number per run on both sides: the effect, its interval, and the chance of one as large by accident. Student's t
is computed with the standard library: scipy.special takes as long to import as all else.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate
from operator import sub
from statistics import NormalDist, fmean, median, stdev

from tracediff import bounds, thresholds
from tracediff.structs import FrozenStruct, Pair


@lru_cache(maxsize=256)  # the sides of an interval, and rows of as many runs, ask for the same
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
    for m in range(1, 100_000):  # far more than any degrees of freedom need: their square root
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            upper, lower = 1 + term / upper, 1 / (1 + term * lower)
            value *= upper * lower
        if abs(upper * lower - 1) < 1e-16:  # below the precision of a float
            break
    return value


class Estimate(FrozenStruct):
    """The effect of test against control as a logarithm of their ratio.

    Attributes:
        effect: best estimate. interval: 95 %; None where there is no test.
        p: two-sided; None without a test.
        detectable: the effect that this many runs of this spread find in 80 % of cases; None without a test.
        method: what was done, for the reader: ``none``, ``prediction``, ``t``, ``ranks``, ``paired``, ``assumed``.
    """

    effect: float
    interval: tuple[float, float] | None = None
    p: float | None = None
    detectable: float | None = None
    method: str = "none"

    def result(self, band: float) -> str:
        """faster, slower, same (within ``band``), inconclusive, or untested with too few runs."""
        if self.interval is None:
            return "untested"
        (low, high), edge = self.interval, math.log1p(band)
        if -edge < low and high < edge:
            return "same"
        if low > 0 or high < 0:
            return "slower" if self.effect > 0 else "faster"
        return "inconclusive"


def interval_us(base_us: float, interval: tuple[float, float] | None) -> tuple[float, float] | None:
    """An ``interval`` of logarithms of a ratio as changes in µs of ``base_us``."""
    return interval and (base_us * math.expm1(interval[0]), base_us * math.expm1(interval[1]))


Runs = Pair[Sequence[float]]
"""A logarithm for each run of control and of test."""


def estimate(
    control: Sequence[float], test: Sequence[float], *, paired: bool = False, assumed_cv: float | None = None
) -> Estimate:
    """Compare two samples of one logarithm per run by the procedure that their sizes allow.

    Args:
        paired: run k of both sides was taken together, and there are at least five.
        assumed_cv: take this as the spread of runs (0.02 for 2 %) instead of one that is measured.
    """
    runs = Pair(control, test)
    n, m = runs.map(len)
    if assumed_cv is not None:
        return _assumed(runs, assumed_cv)
    if paired and n == m and n >= thresholds.RANKED_RUNS:
        return _paired(runs)
    if min(n, m) == 1 and max(n, m) >= thresholds.PREDICTING_RUNS:
        return _prediction(runs)
    if min(n, m) < 2:
        return Estimate(runs.map(median).delta if n and m else 0.0)
    if min(n, m) >= thresholds.RANKED_RUNS and n * m <= thresholds.RANKED_PAIRS and _spread_alike(runs):
        return _ranks(runs)
    return _wider_t(runs)


def _sd(values: Sequence[float]) -> float:
    return max(stdev(values), thresholds.LEAST_SPREAD)


def _spread_alike(runs: Runs) -> bool:
    spreads = runs.map(_sd)
    return max(spreads) <= thresholds.ALIKE_SPREADS * min(spreads)


def _interval(effect: float, error: float, df: float, method: str) -> Estimate:
    half = reach(df) * error
    return Estimate(
        effect,
        interval=(effect - half, effect + half),
        p=two_sided_p(effect / error, df),
        detectable=detectable(df) * error,
        method=method,
    )


def reach(df: float) -> float:
    """Half the width of an interval, in standard errors."""
    return quantile_t(1 - thresholds.SIGNIFICANCE / 2, df)


def detectable(df: float) -> float:
    """The effect that is detected with the power that is asked for, in standard errors."""
    return reach(df) + quantile_t(thresholds.POWER, df)


def runs_to_detect(spread: float, effect: float) -> int | None:
    """Runs per side that detect a change of the logarithm by ``effect`` in 80 % of cases; None if too many."""
    return _least_runs(lambda n: detectable(2 * n - 2) * spread * math.sqrt(2 / n) <= effect)


def runs_to_separate(spread: float, distance: float) -> int | None:
    """Runs per side whose interval has a half width below ``distance``; None if too many."""
    return _least_runs(lambda n: reach(2 * n - 2) * spread * math.sqrt(2 / n) < distance)


def _least_runs(enough: Callable[[int], bool]) -> int | None:
    runs = range(2, bounds.RECOMMENDED_RUNS + 1)
    position = bisect_left(runs, True, key=enough)
    return runs[position] if position < len(runs) else None


def _prediction(runs: Runs) -> Estimate:
    """One run against n ≥ 3: would the n + 1st run of their kind lie there? Assumes that the single run's kind spreads
    as they do.
    """
    many = max(runs, key=len)
    return _interval(runs.map(fmean).delta, _sd(many) * math.sqrt(1 + 1 / len(many)), len(many) - 1, "prediction")


def _wider_t(runs: Runs) -> Estimate:
    """The wider of Welch's and Student's interval, and the larger p: each alone is too sure at two to four runs."""
    n, m = runs.map(len)
    va, vb = runs.map(lambda values: _sd(values) ** 2)
    effect = runs.map(fmean).delta
    welch = math.sqrt(va / n + vb / m)
    df = welch**4 / ((va / n) ** 2 / (n - 1) + (vb / m) ** 2 / (m - 1))
    student = math.sqrt(((n - 1) * va + (m - 1) * vb) / (n + m - 2) * (1 / n + 1 / m))
    both = (welch, df), (student, n + m - 2)
    half = max(reach(df) * error for error, df in both)
    return Estimate(
        effect,
        interval=(effect - half, effect + half),
        p=max(two_sided_p(effect / error, df) for error, df in both),
        detectable=max(detectable(df) * error for error, df in both),
        method="t",
    )


def _paired(runs: Runs) -> Estimate:
    differences = [t - c for c, t in zip(*runs, strict=True)]
    return _interval(fmean(differences), _sd(differences) / math.sqrt(len(differences)), len(differences) - 1, "paired")


def _assumed(runs: Runs, cv: float) -> Estimate:
    """A normal interval with a spread that the user vouches for."""
    n, m = runs.map(len)
    error = max(math.log1p(cv), thresholds.LEAST_SPREAD) * math.sqrt(1 / n + 1 / m)
    return _interval(runs.map(median).delta, error, math.inf, "assumed")


def _ranks(runs: Runs) -> Estimate:
    """Hodges–Lehmann's estimate with its exact interval, and the exact Mann–Whitney test; an interval is never narrower
    than the least spread allows.
    """
    n, m = runs.map(len)
    differences = sorted(t - c for c in runs.control for t in runs.test)
    effect = median(differences)
    k = max(_critical(n, m), 1)
    least_error = thresholds.LEAST_SPREAD * math.sqrt(1 / n + 1 / m)
    floor = reach(n + m - 2) * least_error
    return Estimate(
        effect,
        interval=(min(differences[k - 1], effect - floor), max(differences[-k], effect + floor)),
        p=max(_mann_whitney(runs), two_sided_p(effect / least_error, n + m - 2)),
        detectable=_wider_t(runs).detectable,
        method="ranks",
    )


def _mann_whitney(runs: Runs) -> float:
    """Exact two-sided p; values that tie count half, which the exact distribution takes conservatively."""
    n, m = runs.map(len)
    u = sum((t > c) + 0.5 * (t == c) for c in runs.control for t in runs.test)
    counts = _u_counts(n, m)
    lower = math.floor(min(u, n * m - u) + 0.5)
    return min(1.0, 2 * sum(counts[: lower + 1]) / sum(counts))


def _critical(n: int, m: int) -> int:
    """How many values of U have P(U ≤ u) ≤ 2.5 %: the k of the k-th smallest and largest pairwise difference."""
    reached = [*accumulate(_u_counts(n, m))]
    return bisect_right(reached, thresholds.SIGNIFICANCE / 2 * reached[-1])


@lru_cache(maxsize=128)
def _u_counts(n: int, m: int) -> tuple[int, ...]:
    """How many of the orders of n and m values give each U = 0 … nm: the coefficients of Gauss' binomial, which is the
    product of (1 − x^(m + i)) / (1 − x^i).
    """
    n, m = min(n, m), max(n, m)
    counts = [1] + [0] * (n * m)
    for i in range(1, n + 1):
        counts[m + i :] = map(sub, counts[m + i :], counts)
        for k in range(i):
            counts[k::i] = accumulate(counts[k::i])
    return tuple(counts)


def within_runs(control: Sequence[float], test: Sequence[float]) -> tuple[float, float] | None:
    """Interval of the effect within one run per side, from the steps' logarithms: a t on the medians of five batches.

    It says nothing of other runs. None below five steps per side.
    """
    n = thresholds.BATCHES
    if min(len(control), len(test)) < n:
        return None
    batches: Runs = Pair(control, test).map(
        lambda values: [median(values[i * len(values) // n : (i + 1) * len(values) // n]) for i in range(n)]
    )
    return _wider_t(batches).interval
