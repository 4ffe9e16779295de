"""The kernel account of both sides: every GPU event in exactly one group, closing with residual 0."""

from __future__ import annotations

from dataclasses import dataclass

from tracediff.aggregate.averages import KernelAverage
from tracediff.diff.groups import Matched, WorkTime
from tracediff.profile.kernels.tensor_cores import uses_tensor_cores
from tracediff.runtimes import KERNEL


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

    @property
    def tensor_core_shares(self) -> tuple[float, float] | None:
        """The least fraction of kernel time on tensor cores (MFMA on AMD) by the kernels' names, per side; None if a
        side has no kernels.
        """
        shares = []
        for side in (0, 1):
            kernels = [m for group in self.groups for m in group.sides[side] if m.category == KERNEL]
            total = sum(m.ns for m in kernels)
            if not total:
                return None
            shares.append(sum(m.ns for m in kernels if uses_tensor_cores(m.name)) / total)
        return shares[0], shares[1]


def compare_gpu_time(matched: Matched, control: KernelAverage, test: KernelAverage, scale: int) -> GpuTime:
    """The kernel account made of what was matched, on one ``scale`` (a multiple of both denominators)."""
    c, t = scale // control.denominator, scale // test.denominator
    outside = Outside(*control.spilled, *test.spilled), Outside(*control.outside, *test.outside)
    return GpuTime(matched.groups, *matched.unattributed, c * control.busy, t * test.busy, *outside)
