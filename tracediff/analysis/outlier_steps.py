"""Used steps far from the others of their run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from tracediff.aggregate.averages import UsedStep

LEAST_STEPS = 4
"""Fewer steps of a run have no outliers."""
OUTLIER_SD, OUTLIER_PART = 5.0, 0.1
"""Robust standard deviations, and fraction of the median, that an outlier is away from its run's median."""


@dataclass(frozen=True)
class Outlier:
    """A used step far from the others of its run. Attributes: run: its name. median_ns: of the run's periods."""

    run: str
    step: UsedStep
    median_ns: float


def outliers(runs: Mapping[str, list[UsedStep]]) -> list[Outlier]:
    """The steps of ``runs`` that are outliers, in their order."""
    return [found for run, steps in runs.items() for found in _outliers(run, steps)]


def _outliers(run: str, steps: list[UsedStep]) -> list[Outlier]:
    if len(steps) < LEAST_STEPS:
        return []
    middle = median(step.period_ns for step in steps)
    spread = 1.4826 * median(abs(step.period_ns - middle) for step in steps)
    least = max(OUTLIER_SD * spread, OUTLIER_PART * middle)
    return [Outlier(run, step, middle) for step in steps if abs(step.period_ns - middle) > least]
