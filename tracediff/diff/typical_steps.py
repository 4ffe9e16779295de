"""The step account without outlier steps: what a typical step takes on both sides."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from statistics import median

from tracediff.aggregate.averages import UsedStep

Runs = dict[str, list[UsedStep]]
"""Run → its used steps."""
LEAST_STEPS = 4
"""Fewer steps of a run have no outliers."""
OUTLIER_SD, OUTLIER_PART = 5.0, 0.1
"""Robust standard deviations, and fraction of the median, that an outlier is away from its run's median."""


@dataclass(frozen=True)
class Outlier:
    """A used step far from the others of its run.

    Attributes:
        side: 0 control, 1 test. run: its name. median_ns: of the run's periods.
    """

    side: int
    run: str
    step: UsedStep
    median_ns: float

    @property
    def excess(self) -> float:
        """By how many ns it is longer than the median."""
        return self.step.period_ns - self.median_ns


@dataclass(frozen=True)
class TypicalSteps:
    """Times per step in µs, means over runs of means over their steps that are no outliers.

    Attributes:
        control, test: state → time. outliers: the steps left out.
    """

    control: dict[str, float]
    test: dict[str, float]
    outliers: tuple[Outlier, ...]

    def within(self, states: Collection[str]) -> tuple[float, float]:
        """Time in ``states`` on both sides."""
        control, test = (sum(side.get(state, 0.0) for state in states) for side in (self.control, self.test))
        return control, test

    @property
    def delta(self) -> float:
        """test − control of the step."""
        return sum(self.test.values()) - sum(self.control.values())


def typical_steps(control: Runs, test: Runs) -> TypicalSteps:
    """Both sides without their outliers. Steps of one number that are outliers by about as much on both sides are part
    of the program, and stay.
    """
    found = [outliers(runs, side) for side, runs in enumerate((control, test))]
    excess = [{o.step.number: o.excess for o in side} for side in found]
    recurring = {n for n in excess[0].keys() & excess[1].keys() if 0.5 < excess[1][n] / excess[0][n] < 2}
    odd = tuple(o for side in found for o in side if o.step.number not in recurring)
    sides = [_mean(runs, {id(o.step) for o in odd if o.side == side}) for side, runs in enumerate((control, test))]
    return TypicalSteps(sides[0], sides[1], odd)


def outliers(runs: Runs, side: int = 0) -> list[Outlier]:
    """The steps of ``runs`` that are outliers, in their order."""
    return [found for run, steps in runs.items() for found in _outliers(side, run, steps)]


def _outliers(side: int, run: str, steps: list[UsedStep]) -> list[Outlier]:
    if len(steps) < LEAST_STEPS:
        return []
    middle = median(step.period_ns for step in steps)
    spread = 1.4826 * median(abs(step.period_ns - middle) for step in steps)
    least = max(OUTLIER_SD * spread, OUTLIER_PART * middle)
    return [Outlier(side, run, step, middle) for step in steps if abs(step.period_ns - middle) > least]


def _mean(runs: Runs, left_out: set[int]) -> dict[str, float]:
    """State → µs per step; the mean over the runs that have steps left."""
    kept = [[step for step in steps if id(step) not in left_out] for steps in runs.values()]
    kept = [steps for steps in kept if steps]
    sums: dict[str, float] = {}
    for steps in kept:
        for step in steps:
            for state, ns in step.states.items():
                sums[state] = sums.get(state, 0.0) + ns / (1000 * len(steps) * len(kept))
    return sums
