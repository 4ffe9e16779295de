"""The step account of both sides: state by state, closing with residual 0."""

from __future__ import annotations

from dataclasses import dataclass

from tracediff.profile.average import StepAverage


@dataclass(frozen=True)
class State:
    """One state's time per step on both sides; numerators in 1/scale ns."""

    name: str
    control: int
    test: int

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
    """

    control: int
    test: int
    states: tuple[State, ...]
    foreign_control: int
    foreign_test: int

    @property
    def delta(self) -> int:
        """test − control."""
        return self.test - self.control

    @property
    def residual(self) -> int:
        """What the states leave unexplained of the change: 0."""
        return self.delta - sum(s.delta for s in self.states)


def compare_step_time(control: StepAverage, test: StepAverage, scale: int) -> StepTime:
    """Both step accounts on one ``scale`` (a multiple of both denominators)."""
    c, t = scale // control.denominator, scale // test.denominator
    names = list(dict.fromkeys([*control.states, *test.states]))
    states = tuple(State(n, c * control.states.get(n, 0), t * test.states.get(n, 0)) for n in names)
    return StepTime(c * control.period, t * test.period, states, c * control.foreign, t * test.foreign)
