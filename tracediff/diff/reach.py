"""How much of a change of GPU time reaches the step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracediff.runtimes import CALL_CATEGORIES, may_wait

if TYPE_CHECKING:
    from tracediff.diff.comparison import Comparison

BUSY_STATES = ("gpu_compute", "gpu_comm", "gpu_copy")
HOST_BOUND, GPU_BOUND = 0.5, 0.1
"""Smallest idle fraction of a host-bound step, largest of a GPU-bound one."""


def idle_fractions(comparison: Comparison) -> tuple[float, float] | None:
    """The fraction of the step in which the GPU is idle, per side; None where a side has no GPU events or no time."""
    step = comparison.step_time
    if not (comparison.control.has_gpu and comparison.test.has_gpu and step.control and step.test):
        return None
    busy = step.within(BUSY_STATES)
    return 1 - busy[0] / step.control, 1 - busy[1] / step.test


def reach(comparison: Comparison) -> float:
    """The fraction, 0 to 1, of a change of GPU time by which the step changes, estimated; 1 without a GPU.

    All of it if the GPU is busy for 90 % of the step or more, none if for 50 % or less, in proportion between; but no
    less than the part of the busy time that the host spends in calls that wait for the GPU, since the host goes on
    only when the GPU is done. The mean of both sides.
    """
    idle = idle_fractions(comparison)
    if idle is None:
        return 1.0
    busy = comparison.step_time.within(BUSY_STATES)
    waits = waiting(comparison)
    sides = []
    for k in (0, 1):
        by_idle = (HOST_BOUND - idle[k]) / (HOST_BOUND - GPU_BOUND)
        by_waits = waits[k] / busy[k] if busy[k] else 0.0
        sides.append(min(1.0, max(0.0, by_idle, by_waits)))
    return sum(sides) / 2


def waiting(comparison: Comparison) -> tuple[int, int]:
    """Time per side that the host spends in calls that wait for the GPU; numerators over the comparison's scale."""
    calls = [op for op in comparison.ops if op.category in CALL_CATEGORIES and may_wait(op.raw_name)]
    return sum(op.control_self for op in calls), sum(op.test_self for op in calls)
