"""The kernel account of both sides: every GPU event in exactly one group, closing with residual 0."""

from __future__ import annotations

from dataclasses import dataclass

from tracediff.aggregate.averages import KernelAverage
from tracediff.diff.groups import Matched, WorkTime


@dataclass(frozen=True)
class Outside:
    """GPU events of the whole set that belong to no used step: plain counts and ns."""

    control_count: int
    control_ns: int
    test_count: int
    test_ns: int


@dataclass(frozen=True)
class GpuTime(WorkTime):
    """GPU time per step on both sides; numerators over scale except in `spilled` and `outside`.

    Attributes:
        busy_control, busy_test: union per GPU, summed over GPUs.
        spilled: events whose launch is not in the file. outside: events launched outside every step.
    """

    busy_control: int = 0
    busy_test: int = 0
    spilled: Outside = Outside(0, 0, 0, 0)
    outside: Outside = Outside(0, 0, 0, 0)


def compare_gpu_time(matched: Matched, control: KernelAverage, test: KernelAverage, scale: int) -> GpuTime:
    """The kernel account made of what was matched, on one ``scale`` (a multiple of both denominators)."""
    c, t = scale // control.denominator, scale // test.denominator
    outside = Outside(*control.spilled, *test.spilled), Outside(*control.outside, *test.outside)
    return GpuTime(matched.groups, *matched.unattributed, c * control.busy, t * test.busy, *outside)
