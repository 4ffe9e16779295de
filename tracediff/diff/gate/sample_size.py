"""How many runs per side would decide, given the variation between the runs at hand."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable

from tracediff.diff.statistics.runs import LEVEL, POWER
from tracediff.diff.statistics.student_t import quantile_t
from tracediff.diff.verdict import Verdict

MOST_RUNS = 1000

Interval = tuple[float, float]
"""The ends of a 95 % interval of a relative change."""


def spread_of_step(verdict: Verdict) -> float | None:
    """Standard deviation of the logarithm of a run's median, from the verdict's detectable change; None if it has
    none.
    """
    if verdict.min_detectable_us is None or verdict.median_control_us <= 0:
        return None
    n, m = verdict.n_control, verdict.n_test
    df = {"paired": n - 1.0, "prediction": max(n, m) - 1.0, "assumed": math.inf}.get(verdict.method, n + m - 2.0)
    detectable = math.log1p(verdict.min_detectable_us / verdict.median_control_us)
    return detectable / (_detectable(df) * math.sqrt(1 / n + 1 / m))


def spread_of_interval(interval: Interval, n: int, m: int) -> float:
    """Standard deviation of the logarithm of a run, from an ``interval``."""
    return half_width(interval) / (quantile_t(1 - LEVEL / 2, n + m - 2) * math.sqrt(1 / n + 1 / m))


def middle(interval: Interval) -> float:
    """Logarithm of the ratio in the middle of ``interval``."""
    return (math.log1p(interval[0]) + math.log1p(interval[1])) / 2


def half_width(interval: Interval) -> float:
    """Half the width of ``interval``, in logarithms."""
    return (math.log1p(interval[1]) - math.log1p(interval[0])) / 2


def runs_to_detect(spread: float, effect: float) -> int | None:
    """Runs per side that detect a change of the logarithm by ``effect`` in 80 % of cases; None if over MOST_RUNS."""
    return _least_runs(lambda n: _detectable(2 * n - 2) * spread * math.sqrt(2 / n) <= effect)


def runs_to_separate(spread: float, distance: float) -> int | None:
    """Runs per side whose interval has a half width below ``distance``; None if over MOST_RUNS."""
    return _least_runs(lambda n: quantile_t(1 - LEVEL / 2, 2 * n - 2) * spread * math.sqrt(2 / n) < distance)


def _detectable(df: float) -> float:
    """The effect that is detected in 80 % of cases, in standard errors."""
    return quantile_t(1 - LEVEL / 2, df) + quantile_t(POWER, df)


def _least_runs(enough: Callable[[int], bool]) -> int | None:
    runs = range(2, MOST_RUNS + 1)
    found = bisect_left(runs, True, key=enough)
    return runs[found] if found < len(runs) else None
