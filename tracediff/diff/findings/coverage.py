"""How much of the step's change the findings account for together, and what holds the rest."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from tracediff.diff.findings import kinds
from tracediff.diff.findings.finding import Coverage
from tracediff.diff.findings.same_work import DIFFERENT_WORK
from tracediff.diff.groups import Group
from tracediff.diff.reach import BUSY_STATES
from tracediff.profile.kernels.families import COMMUNICATION
from tracediff.profile.step_states import state_label
from tracediff.runtimes import MEMCPY, MEMSET

if TYPE_CHECKING:
    from tracediff.diff.comparison import Comparison

LEAST = 0.01
"""Fraction of the step below which neither the findings nor the change have anything to account for."""
CLOSE = 0.05
"""Part of the change, and of what was found, that may be in no finding without a word."""
MOST_OF_IT = 0.5
"""Part of the rest that one state or family holds to be named."""
OTHER_WORK = "other work on the GPU"
"""What the families of GPU work are called together."""
MOST_BUSY = 1.5
"""Ratio of the changes of busy and of GPU time above which they have nothing to do with each other."""


def coverage(comparison: Comparison) -> Coverage | None:
    """What the findings of ``comparison`` account for; None if they have no time, if it and the change are small, and
    if the sides do different work, of which the findings are no account.
    """
    if any(f.kind in DIFFERENT_WORK for f in comparison.findings):
        return None
    findings = [f for f in comparison.findings if f.weight_us]
    covers = frozenset[int | str]().union(*(f.covers for f in findings))
    states = _changes_of_states(comparison, typical=any(f.kind is kinds.OUTLIER_STEP for f in findings))
    inside, outside = _divided(comparison, states, covers)
    found = sum(inside.values()) + sum(f.weight_us for f in findings if not f.covers)  # outliers, and calls in no state
    step = comparison.step_time
    changed = comparison.us(step.delta)
    if not findings or max(abs(found), abs(changed)) < LEAST * comparison.us(max(step.control, step.test)):
        return None
    rest = changed - found
    if abs(rest) <= CLOSE * max(abs(found), abs(changed)):
        return Coverage(found, changed)
    largest = max(outside, key=lambda name: (name != OTHER_WORK, outside[name] * rest, name), default="")
    for name in (largest, OTHER_WORK):
        if (us := outside.get(name, 0.0)) * rest >= MOST_OF_IT * rest**2:
            return Coverage(found, changed, name, us)
    return Coverage(found, changed)


def _changes_of_states(comparison: Comparison, typical: bool) -> dict[str, float]:
    """The change of each state in µs; of ``typical`` steps where the others are a finding of their own."""
    if typical:
        control, test = comparison.typical.control, comparison.typical.test
        return {name: test.get(name, 0.0) - control.get(name, 0.0) for name in {**control, **test}}
    return {state.name: comparison.us(state.delta) for state in comparison.step_time.states}


def _divided(
    comparison: Comparison, states: dict[str, float], covers: frozenset[int | str]
) -> tuple[dict[str, float], dict[str, float]]:
    """(what findings cover of the changes of ``states`` and of work, and what they do not), by name, in µs."""
    if comparison.gpu_time.groups:
        return _divided_on_gpu(comparison, states, covers)
    inside: dict[str, float] = {name: us for name, us in states.items() if name in covers}
    outside = {name: us for name, us in states.items() if name not in covers}
    for i, group in enumerate(comparison.work.groups):
        for sign, members in zip((-1, 1), group.sides, strict=True):
            for member in members if i in covers else ():
                us = sign * comparison.us(member.ns)
                inside[f"op:{member.family}"] = inside.get(f"op:{member.family}", 0.0) + us
                outside[f"op:{member.family}"] = outside.get(f"op:{member.family}", 0.0) - us
    return inside, {state_label(name, has_gpu=False): us for name, us in outside.items()}


def _divided_on_gpu(
    comparison: Comparison, states: dict[str, float], covers: frozenset[int | str]
) -> tuple[dict[str, float], dict[str, float]]:
    """Where a GPU works: its work is in the step as the states in which it is busy. Idle time that became less because
    there is more work, or more because there is less, is part of the work's change.
    """
    inside = {name: us for name, us in states.items() if name in covers}
    outside = {
        state_label(name, has_gpu=True): us
        for name, us in states.items()
        if name not in covers and name not in BUSY_STATES
    }
    idle = sum(outside.values())
    work: dict[str, float] = defaultdict(float)
    covered = 0.0
    for i, group in enumerate(comparison.work.groups):
        if _busy_state(group) not in covers:
            us = comparison.us(group.delta)
            covered += us if i in covers else 0.0
            work[f"{group.family} on the GPU"] += us if i not in covers else 0.0
    busy = sum(us for name, us in states.items() if name in BUSY_STATES and name not in covers)
    whole = covered + sum(work.values())
    part = busy / whole if whole and 0 < busy / whole <= MOST_BUSY else 1.0  # kernels overlap
    inside["work"] = part * covered
    if idle * inside["work"] < 0:
        inside["idle"] = max(idle, -inside["work"]) if idle < 0 else min(idle, -inside["work"])
    outside |= {name: part * us for name, us in work.items()}
    return inside, outside | {OTHER_WORK: part * sum(work.values())}


def _busy_state(group: Group) -> str:
    """The state of the time in which nothing but this work runs."""
    if all(m.category in (MEMCPY, MEMSET) for side in group.sides for m in side):
        return "gpu_copy"
    return "gpu_comm" if group.family == COMMUNICATION else "gpu_compute"
