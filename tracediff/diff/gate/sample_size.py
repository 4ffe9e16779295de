"""How many runs a side would decide, given how much runs were seen to differ."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable

from tracediff.diff.statistics.runs import LEVEL, POWER, quantile_t
from tracediff.diff.verdict import Verdict

MOST_RUNS = 1000

Interval = tuple[float, float]
"""The ends of a 95 % interval of a relative change."""


def spread_of_step(verdict: Verdict) -> float | None:
    """Standard deviation of the logarithm of a run's median that the verdict's smallest detectable effect stands for;
    None where it has none.
    """
    if verdict.min_detectable_us is None or verdict.median_control_us <= 0:
        return None
    n, m = verdict.n_control, verdict.n_test
    df = {"paired": n - 1.0, "prediction": max(n, m) - 1.0, "assumed": math.inf}.get(verdict.method, n + m - 2.0)
    detectable = math.log1p(verdict.min_detectable_us / verdict.median_control_us)
    return detectable / (_detects(df) * math.sqrt(1 / n + 1 / m))


def spread_of_interval(interval: Interval, n: int, m: int) -> float:
    """Standard deviation of the logarithm of a run that ``interval`` stands for."""
    return reach(interval) / (quantile_t(1 - LEVEL / 2, n + m - 2) * math.sqrt(1 / n + 1 / m))


def middle(interval: Interval) -> float:
    """Logarithm of the ratio in the middle of ``interval``."""
    return (math.log1p(interval[0]) + math.log1p(interval[1])) / 2


def reach(interval: Interval) -> float:
    """How far ``interval`` reaches to either side of its middle, in logarithms."""
    return (math.log1p(interval[1]) - math.log1p(interval[0])) / 2


def runs_to_detect(spread: float, effect: float) -> int | None:
    """Runs a side that find a change of the logarithm of ``effect`` in 80 % of cases; None for more than MOST_RUNS."""
    return _least_runs(lambda n: _detects(2 * n - 2) * spread * math.sqrt(2 / n) <= effect)


def runs_to_part(spread: float, distance: float) -> int | None:
    """Runs a side whose interval reaches less than ``distance`` to either side; None for more than MOST_RUNS."""
    return _least_runs(lambda n: quantile_t(1 - LEVEL / 2, 2 * n - 2) * spread * math.sqrt(2 / n) < distance)


def _detects(df: float) -> float:
    """Standard errors that an effect must be large to be found in 80 % of cases."""
    return quantile_t(1 - LEVEL / 2, df) + quantile_t(POWER, df)


def _least_runs(enough: Callable[[int], bool]) -> int | None:
    runs = range(2, MOST_RUNS + 1)
    found = bisect_left(runs, True, key=enough)
    return runs[found] if found < len(runs) else None
