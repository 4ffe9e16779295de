"""The change of states of the step: whether it explains the step's change, and whether it is significant."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracediff.formatting import change, part, rose, signed_time
from tracediff.profile.step_states import state_label

if TYPE_CHECKING:
    from tracediff.diff.comparison import Comparison

PART_OF_CHANGE = 0.1
"""Smallest change of a state that explains the step's change, as a fraction of it."""
WHOLE = 0.03
"""Difference from the step's change, as a fraction of it, within which a state is the whole of it."""
LEAST_CHANGE = 0.01
"""Smallest change of a state that is explained, as a fraction of the step."""
TESTED_RUNS = 3
"""Runs per side from which changes are tested."""


@dataclass(frozen=True)
class StateChange:
    """The change of some states together, in µs per step.

    Attributes:
        typical_us: its part that typical steps have. step_us: the change of the step.
        offset: the other state that offsets most of it, in words; None if none does.
    """

    control_us: float
    test_us: float
    typical_us: float
    step_us: float
    offset: str | None = None

    @property
    def delta_us(self) -> float:
        """test − control."""
        return self.test_us - self.control_us

    @property
    def rose(self) -> str:
        """``rose: 223.0 → 270.0 ms per step``."""
        verb = rose(self.control_us, self.test_us)
        return f"{verb}: {change(self.control_us, self.test_us)} per step"

    @property
    def share(self) -> str:
        """How much of the step's change it is."""
        step = f"change of the step ({signed_time(self.step_us)})"
        if self.delta_us * self.step_us < 0:
            partly = "partly offsets" if abs(self.delta_us) <= abs(self.step_us) else "is more than offset in"
            return f"This {partly} the {step}."
        if abs(self.delta_us - self.step_us) < WHOLE * abs(self.step_us):
            return f"This is the whole {step}."
        if abs(self.delta_us) > abs(self.step_us):
            return f"This exceeds the whole {step}; {self.offset} offsets part of it."
        return f"This is {part(abs(self.delta_us), abs(self.step_us))} of the {step}."


def state_change(comparison: Comparison, states: tuple[str, ...]) -> StateChange | None:
    """The change of ``states``; None if it is small beside the step or its change, or tested and not significant."""
    step, us = comparison.step_time, comparison.us
    control, test = step.within(states)
    typical = comparison.typical.within(states)
    found = StateChange(us(control), us(test), typical[1] - typical[0], us(step.delta), _offset(comparison, states))
    longest = us(max(step.control, step.test))
    if abs(found.delta_us) < max(LEAST_CHANGE * longest, PART_OF_CHANGE * abs(found.step_us)):
        return None
    return found if significant(comparison, states, found.delta_us) else None


def _offset(comparison: Comparison, states: tuple[str, ...]) -> str | None:
    """``GPU compute (−36.1 ms)``, if it changed most against ``states``."""
    step, (control, test) = comparison.step_time, comparison.step_time.within(states)
    against = [s for s in step.states if s.name not in states and s.delta * (test - control) < 0]
    largest = max(against, key=lambda s: abs(s.delta), default=None)
    has_gpu = comparison.control.has_gpu or comparison.test.has_gpu
    if largest is None:
        return None
    return f"{state_label(largest.name, has_gpu)} ({signed_time(comparison.us(largest.delta))})"


def significant(comparison: Comparison, states: tuple[str, ...], delta_us: float) -> bool:
    """Whether the change of ``states`` passes its test, if there are runs enough for one."""
    return passes(comparison, (s.time_change for s in comparison.step_time.states if s.name in states), delta_us)


def passes(comparison: Comparison, time_changes: Iterable[str], delta: float) -> bool:
    """Whether one of the tests with the results ``time_changes`` agrees with ``delta``, if there are runs enough."""
    return not tested(comparison) or ("slower" if delta > 0 else "faster") in time_changes


def tested(comparison: Comparison) -> bool:
    """Whether both sides have runs enough for tests."""
    return min(comparison.control.runs, comparison.test.runs) >= TESTED_RUNS
