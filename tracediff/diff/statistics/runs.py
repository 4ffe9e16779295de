"""One number per run on both sides: the effect, its interval, and the chance of one as large by accident.

Which procedure holds its error rate at how many runs was simulated and measured: docs/statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from statistics import fmean, median, stdev

from tracediff.diff.statistics.student_t import quantile_t, two_sided_p

LEAST_SD = 0.005
"""Spread of runs below which none is believed: runs of one program differ by half a per cent at least."""
LEVEL = 0.05
POWER = 0.8
BATCHES = 5
MOST_PAIRS = 2_500
"""Pairs of runs up to which their order is counted exactly; with more runs, means are normal, and the t test is exact
enough.
"""
ENOUGH_RUNS = 5
"""Runs per side from which ranks are used, and from which pairs are."""
LEAST_PREDICTED = 3
"""Runs of one side with which a single run of the other is compared."""
MOST_UNLIKE = 2.0
"""Ratio of the spreads of both sides up to which ranks are used."""


@dataclass(frozen=True)
class Estimate:
    """The effect of test against control as a logarithm of their ratio.

    Attributes:
        effect: best estimate. low, high: 95 % interval; None where there is no test.
        p: two-sided; None without a test.
        detectable: the effect that this many runs of this spread find in 80 % of cases; None without a test.
        method: what was done, for the reader: ``none``, ``prediction``, ``t``, ``ranks``, ``paired``, ``assumed``.
    """

    effect: float
    _: KW_ONLY
    low: float | None = None
    high: float | None = None
    p: float | None = None
    detectable: float | None = None
    method: str = "none"


def estimate(
    control: Sequence[float], test: Sequence[float], *, paired: bool = False, assumed_cv: float | None = None
) -> Estimate:
    """Compare two samples of one logarithm per run by the procedure that their sizes allow.

    Args:
        paired: run k of both sides was taken together, and there are at least five.
        assumed_cv: take this as the spread of runs (0.02 for 2 %) instead of one that is measured.
    """
    n, m = len(control), len(test)
    if assumed_cv is not None:
        return _assumed(control, test, assumed_cv)
    if paired and n == m and n >= ENOUGH_RUNS:
        return _paired(control, test)
    if min(n, m) < 2:
        return (
            _prediction(control, test)
            if max(n, m) >= LEAST_PREDICTED and min(n, m) == 1
            else Estimate(median(test) - median(control) if n and m else 0.0)
        )
    if min(n, m) >= ENOUGH_RUNS and n * m <= MOST_PAIRS and _spread_alike(control, test):
        return _ranks(control, test)
    return _wider_t(control, test)


def _sd(values: Sequence[float]) -> float:
    return max(stdev(values), LEAST_SD)


def _spread_alike(a: Sequence[float], b: Sequence[float]) -> bool:
    return max(_sd(a), _sd(b)) <= MOST_UNLIKE * min(_sd(a), _sd(b))


def _interval(effect: float, error: float, df: float, method: str) -> Estimate:
    reach = quantile_t(1 - LEVEL / 2, df) * error
    detectable = (quantile_t(1 - LEVEL / 2, df) + quantile_t(POWER, df)) * error
    return Estimate(
        effect,
        low=effect - reach,
        high=effect + reach,
        p=two_sided_p(effect / error, df),
        detectable=detectable,
        method=method,
    )


def _prediction(control: Sequence[float], test: Sequence[float]) -> Estimate:
    """One run against n ≥ 3: would the n + 1st run of their kind lie there? Assumes that the single run's kind spreads
    as they do.
    """
    many, single = (test, control[0]) if len(control) == 1 else (control, test[0])
    effect = fmean(many) - single if many is test else single - fmean(many)
    return _interval(effect, _sd(many) * math.sqrt(1 + 1 / len(many)), len(many) - 1, "prediction")


def _wider_t(control: Sequence[float], test: Sequence[float]) -> Estimate:
    """The wider of Welch's and Student's interval, and the larger p: each alone is too sure at two to four runs."""
    n, m = len(control), len(test)
    va, vb = _sd(control) ** 2, _sd(test) ** 2
    effect = fmean(test) - fmean(control)
    welch = math.sqrt(va / n + vb / m)
    df = welch**4 / ((va / n) ** 2 / (n - 1) + (vb / m) ** 2 / (m - 1))
    student = math.sqrt(((n - 1) * va + (m - 1) * vb) / (n + m - 2) * (1 / n + 1 / m))
    both = _interval(effect, welch, df, "t"), _interval(effect, student, n + m - 2, "t")
    return Estimate(
        effect,
        low=min(e.low for e in both if e.low is not None),
        high=max(e.high for e in both if e.high is not None),
        p=max(e.p for e in both if e.p is not None),
        detectable=max(e.detectable for e in both if e.detectable is not None),
        method="t",
    )


def _paired(control: Sequence[float], test: Sequence[float]) -> Estimate:
    differences = [t - c for c, t in zip(control, test, strict=True)]
    return _interval(fmean(differences), _sd(differences) / math.sqrt(len(differences)), len(differences) - 1, "paired")


def _assumed(control: Sequence[float], test: Sequence[float], cv: float) -> Estimate:
    """A normal interval with a spread that the user vouches for."""
    error = max(math.log1p(cv), LEAST_SD) * math.sqrt(1 / len(control) + 1 / len(test))
    return _interval(median(test) - median(control), error, math.inf, "assumed")


def _ranks(control: Sequence[float], test: Sequence[float]) -> Estimate:
    """Hodges–Lehmann's estimate with its exact interval, and the exact Mann–Whitney test; an interval is never narrower
    than LEAST_SD allows.
    """
    n, m = len(control), len(test)
    differences = sorted(t - c for c in control for t in test)
    effect = median(differences)
    k = max(_critical(n, m), 1)
    floor = quantile_t(1 - LEVEL / 2, n + m - 2) * LEAST_SD * math.sqrt(1 / n + 1 / m)
    low, high = min(differences[k - 1], effect - floor), max(differences[-k], effect + floor)
    p = max(_mann_whitney(control, test), two_sided_p(effect / (LEAST_SD * math.sqrt(1 / n + 1 / m)), n + m - 2))
    detectable = _wider_t(control, test).detectable
    return Estimate(effect, low=low, high=high, p=p, detectable=detectable, method="ranks")


def _mann_whitney(control: Sequence[float], test: Sequence[float]) -> float:
    """Exact two-sided p; values that tie count half, which the exact distribution takes conservatively."""
    n, m = len(control), len(test)
    u = sum((t > c) + 0.5 * (t == c) for c in control for t in test)
    counts = _u_counts(n, m)
    lower = math.floor(min(u, n * m - u) + 0.5)
    return min(1.0, 2 * sum(counts[: lower + 1]) / sum(counts))


def _critical(n: int, m: int) -> int:
    """How many values of U have P(U ≤ u) ≤ 2.5 %: the k of the k-th smallest and largest pairwise difference."""
    counts = _u_counts(n, m)
    total, reached, k = sum(counts), 0, 0
    for count in counts:
        reached += count
        if reached > LEVEL / 2 * total:
            break
        k += 1
    return k


def _u_counts(n: int, m: int) -> list[int]:
    """How many of the orders of n and m values give each U = 0 … nm: the coefficients of Gauss' binomial."""
    counts = [1] + [0] * (n * m)
    for i in range(1, n + 1):
        for u in range(n * m, m + i - 1, -1):
            counts[u] -= counts[u - m - i]
        for u in range(i, n * m + 1):
            counts[u] += counts[u - i]
    return counts


def within_runs(control: Sequence[float], test: Sequence[float]) -> tuple[float, float] | None:
    """Interval of the effect within one run per side, from the steps' logarithms: a t on the medians of five batches.

    It says nothing of other runs. None below five steps per side.
    """
    if min(len(control), len(test)) < BATCHES:
        return None
    batches = [
        [median(values[i * len(values) // BATCHES : (i + 1) * len(values) // BATCHES]) for i in range(BATCHES)]
        for values in (control, test)
    ]
    found = _wider_t(*batches)
    return (found.low, found.high) if found.low is not None and found.high is not None else None
