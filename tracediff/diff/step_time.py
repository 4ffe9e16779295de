"""The step account of both sides: state by state, closing with residual 0."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import KW_ONLY, dataclass
from statistics import median

import numpy as np

from tracediff.aggregate.averages import StepAverage
from tracediff.diff.statistics.many import compare_many


@dataclass(frozen=True)
class State:
    """One state's time per step on both sides; numerators in 1/scale ns.

    Attributes:
        time_change: faster, slower, same, unclear or untested. p_value, q_value: None where untested.
        interval: 95 % interval of the relative change, None where untested.
    """

    name: str
    control: int
    test: int
    _: KW_ONLY
    time_change: str = "untested"
    p_value: float | None = None
    q_value: float | None = None
    interval: tuple[float, float] | None = None

    @property
    def delta(self) -> int:
        """test − control."""
        return self.test - self.control


@dataclass(frozen=True)
class StepTime:
    """Mean period per step and its states on both sides; numerators in 1/scale ns.

    Attributes:
        control, test: the periods.
        states: all states of either side, in order of precedence.
        foreign_control, foreign_test: part of the GPU states held only by events launched in no used step.
        draining: of control and test, per run: how long the GPU ran earlier work before the first used steps; in no
            period.
    """

    control: int
    test: int
    states: tuple[State, ...]
    foreign_control: int
    foreign_test: int
    draining: tuple[int, int]

    @property
    def delta(self) -> int:
        """test − control."""
        return self.test - self.control

    def within(self, names: Collection[str]) -> tuple[int, int]:
        """Time in the states called ``names`` on both sides."""
        those = [s for s in self.states if s.name in names]
        return sum(s.control for s in those), sum(s.test for s in those)

    @property
    def residual(self) -> int:
        """What the states leave unexplained of the change: 0."""
        return self.delta - sum(s.delta for s in self.states)


def compare_step_time(control: StepAverage, test: StepAverage, scale: int, noise_floor: float) -> StepTime:
    """Both step accounts on one ``scale`` (a multiple of both denominators)."""
    c, t = scale // control.denominator, scale // test.denominator
    names = list(dict.fromkeys([*control.states, *test.states]))
    samples = [np.array([_medians(side, n) for n in names]) for side in (control, test)]
    tested = compare_many(samples[0], samples[1], noise_floor)
    states = []
    for k, name in enumerate(names):
        word, p, q, _ = tested.line(k)
        states.append(
            State(
                name,
                c * control.states.get(name, 0),
                t * test.states.get(name, 0),
                time_change=word,
                p_value=p,
                q_value=q,
                interval=tested.interval(k),
            )
        )
    draining = c * control.draining, t * test.draining
    return StepTime(c * control.period, t * test.period, tuple(states), c * control.foreign, t * test.foreign, draining)


def _medians(average: StepAverage, state: str) -> list[float]:
    """One value per run, in µs: the median over its steps of the time in ``state``."""
    return [
        median(step.states.get(state, 0) for step in steps) / 1000 if steps else 0.0 for steps in average.runs.values()
    ]
