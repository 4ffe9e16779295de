"""How much of the step's change the findings account for together, and what holds the rest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tracediff.diff.findings import kinds
from tracediff.diff.findings.finding import Coverage, Finding
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
MOST_OF_IT = 0.5
"""Part of the rest that one state or family holds to be named."""
GPU_WORK = "GPU work"
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
    states = _changes_of_states(comparison, typical=any(f.kind is kinds.OUTLIER_STEP for f in findings))
    held = {name: us for name, us in states.items() if any(name in f.covers for f in findings)}
    on_gpu = bool(comparison.gpu_time.groups)
    work = _work_of(comparison, findings, held)
    found, outside = (_on_gpu if on_gpu else _on_the_host)(comparison, states, held, work)
    found += sum(held.values()) + sum(f.weight_us for f in findings if not f.covers)  # outliers, calls in no state
    step = comparison.step_time
    changed = comparison.us(step.delta)
    if not findings or max(abs(found), abs(changed)) < LEAST * comparison.us(max(step.control, step.test)):
        return None
    whole = Coverage(found, changed)
    rest = whole.rest_us
    largest = max(outside, key=lambda name: (name != GPU_WORK, outside[name] * rest, name), default="")
    for name in () if whole.is_close else (largest, GPU_WORK):
        if (us := outside.get(name, 0.0)) * rest >= MOST_OF_IT * rest**2:
            return replace(whole, largest=name, largest_us=us)
    return whole


def _changes_of_states(comparison: Comparison, typical: bool) -> dict[str, float]:
    """The change of each state in µs; of ``typical`` steps where the others are a finding of their own."""
    if typical:
        control, test = comparison.typical.control, comparison.typical.test
        return {name: test.get(name, 0.0) - control.get(name, 0.0) for name in {**control, **test}}
    return {state.name: comparison.us(state.delta) for state in comparison.step_time.states}


@dataclass(frozen=True)
class _Work:
    """The changes of work in µs. Attributes: stated: those that findings state, each group once. rest: of each group
    what no finding states; without groups whose state findings hold.
    """

    stated: float
    rest: dict[int, float]


def _work_of(comparison: Comparison, findings: Sequence[Finding], held: Collection[str]) -> _Work:
    groups = comparison.work.groups
    rest = {i: comparison.us(g.delta) for i, g in enumerate(groups) if _busy_state(g) not in held}
    stated = 0.0
    for finding in findings:
        if any(isinstance(key, str) for key in finding.covers):
            continue
        whole = sum(abs(comparison.us(groups[i].delta)) for i in finding.covers if isinstance(i, int))
        new = [i for i in finding.covers if isinstance(i, int) and rest.get(i)]
        stated += finding.delta_us * sum(abs(rest[i]) for i in new) / whole if whole else 0.0
        rest |= dict.fromkeys(new, 0.0)
    return _Work(stated, rest)


def _on_the_host(
    comparison: Comparison, states: dict[str, float], held: Collection[str], work: _Work
) -> tuple[float, dict[str, float]]:
    """(the change of the work that findings state; by name what of the changes of states is in no finding)."""
    outside = {name: us for name, us in states.items() if name not in held}
    for i, group in enumerate(comparison.work.groups):
        for sign, members in zip((-1, 1), group.sides, strict=True):
            for member in members if not work.rest.get(i) else ():
                name = f"op:{member.family}"
                outside[name] = outside.get(name, 0.0) - sign * comparison.us(member.ns)
    return work.stated, {state_label(name, has_gpu=False): us for name, us in outside.items()}


def _on_gpu(
    comparison: Comparison, states: dict[str, float], held: Collection[str], work: _Work
) -> tuple[float, dict[str, float]]:
    """Where a GPU works: its work is in the step as the states in which it is busy. Idle time that became less because
    there is more work, or more because there is less, is part of the work's change.
    """
    free = [name for name in states if name not in held]
    outside = {state_label(name, has_gpu=True): states[name] for name in free if name not in BUSY_STATES}
    idle = sum(outside.values())
    busy = sum(states[name] for name in free if name in BUSY_STATES)
    whole = work.stated + sum(work.rest.values())
    part = busy / whole if whole and 0 < busy / whole <= MOST_BUSY else 1.0  # kernels overlap
    families: dict[str, float] = defaultdict(float)
    for i, us in work.rest.items():
        families[f"family {comparison.work.groups[i].family}"] += part * us
    outside |= families
    outside[GPU_WORK] = sum(families.values())
    found = part * work.stated
    if idle * found < 0:
        found += max(idle, -found) if idle < 0 else min(idle, -found)
    return found, outside


def _busy_state(group: Group) -> str:
    """The state of the time in which nothing but this work runs."""
    if all(m.category in (MEMCPY, MEMSET) for side in group.sides for m in side):
        return "gpu_copy"
    return "gpu_comm" if group.family == COMMUNICATION else "gpu_compute"
