"""How much of the step's change the findings account for together, and what holds the rest."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from tracediff.diff.findings import kinds
from tracediff.diff.findings.finding import Coverage
from tracediff.diff.findings.host import HOST_STATES
from tracediff.diff.findings.kernels import weight
from tracediff.diff.reach import BUSY_STATES, reach
from tracediff.profile.step_states import state_label

if TYPE_CHECKING:
    from tracediff.diff.comparison import Comparison

LEAST = 0.01
"""Fraction of the step below which neither the findings nor the change have anything to account for."""
CLOSE = 0.05
"""Part of the change, and of what was found, that may be in no finding without a word."""
MOST_OF_IT = 0.5
"""Part of the rest that one state or family holds to be named."""


def coverage(comparison: Comparison) -> Coverage | None:
    """What the findings of ``comparison`` account for; None if they have no time, or it and the change are small."""
    findings = [f for f in comparison.findings if f.weight_us]
    covers = frozenset[int | str]().union(*(f.covers for f in findings))
    step, groups = comparison.step_time, comparison.work.groups
    by_outliers = any(f.kind is kinds.OUTLIER_STEP for f in findings)
    states = _changes_of_states(comparison, typical=by_outliers)
    found = sum(us for name, us in states.items() if name in covers)
    found += weight(comparison, sum(groups[i].delta for i in covers if isinstance(i, int)))
    found += sum(f.weight_us for f in findings if not f.covers)  # outlier steps, and calls that are no state
    if comparison.gpu_time.groups and not covers.isdisjoint(HOST_STATES):
        # idle time that there is only because GPU work became less, or more, without the step
        found += (1 - reach(comparison)) * sum(states.get(name, 0.0) for name in BUSY_STATES)
    changed = comparison.us(step.delta)
    if not findings or max(abs(found), abs(changed)) < LEAST * comparison.us(max(step.control, step.test)):
        return None
    rest = changed - found
    if abs(rest) <= CLOSE * max(abs(found), abs(changed)):
        return Coverage(found, changed)
    outside = _outside(comparison, states, covers)
    holding = [(abs(us), name) for name, us in outside.items() if us * rest >= MOST_OF_IT * rest**2]
    _, largest = max(holding, default=(0.0, ""))
    return Coverage(found, changed, largest, outside.get(largest, 0.0))


def _changes_of_states(comparison: Comparison, typical: bool) -> dict[str, float]:
    """The change of each state in µs; of ``typical`` steps where the others are a finding of their own."""
    if typical:
        control, test = comparison.typical.control, comparison.typical.test
        return {name: test.get(name, 0.0) - control.get(name, 0.0) for name in {**control, **test}}
    return {state.name: comparison.us(state.delta) for state in comparison.step_time.states}


def _outside(comparison: Comparison, states: dict[str, float], covers: frozenset[int | str]) -> dict[str, float]:
    """The states and the families of GPU work in words → the change of their part that is not in ``covers``, in µs."""
    has_gpu = bool(comparison.gpu_time.groups)
    outside: dict[str, float] = defaultdict(float)
    inside: dict[str, float] = defaultdict(float)
    for i, group in enumerate(comparison.work.groups):
        if has_gpu and i not in covers:
            outside[f"{group.family} on the GPU"] += weight(comparison, group.delta)
        elif not has_gpu and i in covers:
            for sign, members in zip((-1, 1), group.sides, strict=True):
                for member in members:
                    inside[f"op:{member.family}"] += sign * comparison.us(member.ns)
    for name, us in states.items():
        if name not in covers and not (has_gpu and name in BUSY_STATES):
            outside[state_label(name, has_gpu)] += us - inside[name]
    return outside
