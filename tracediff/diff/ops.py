"""Operations by name: how often, how long, on both sides, with HTA's five classes on counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from tracediff.profile.average import OpAverage
from tracediff.profile.names import readable, table_name

GPU_CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation")


@dataclass(frozen=True)
class Op:
    """One operation on both sides, per step; counts and times are numerators over scale.

    Attributes:
        name: readable. raw_name: as recorded (its most frequent spelling).
        device: cpu or gpu. category: of the trace. family: kind of work.
        *_total: every occurrence, recursion at each level. *_self: time in no child of the same lane.
    """

    name: str
    raw_name: str
    device: str
    category: str
    family: str
    control_count: int
    test_count: int
    control_total: int
    test_total: int
    control_self: int
    test_self: int

    @property
    def delta(self) -> int:
        """test − control self time on the CPU, where totals hold their children; total on the GPU, where the two are the same."""
        return self.test_self - self.control_self

    @property
    def total_delta(self) -> int:
        """test − control total time."""
        return self.test_total - self.control_total

    @property
    def counts_change(self) -> str:
        """HTA's class: added, deleted, increased, decreased or unchanged."""
        if self.control_count == self.test_count:
            return "unchanged"
        if not self.control_count:
            return "added"
        if not self.test_count:
            return "deleted"
        return "increased" if self.test_count > self.control_count else "decreased"

    @property
    def time_change(self) -> str:
        """faster, slower or same by the total time; a direction, not a test."""
        return "same" if not self.total_delta else "slower" if self.total_delta > 0 else "faster"


def compare_ops(control: OpAverage, test: OpAverage, scale: int, family_of: Callable[[str], str]) -> tuple[Op, ...]:
    """All operations of either side on one ``scale``, largest change of self time first; ``family_of`` tells the family of a name."""
    spellings: dict[tuple[str, str], Counter[str]] = {}
    sums: dict[tuple[str, str], list[int]] = {}
    for offset, average in ((0, control), (1, test)):
        factor = scale // average.denominator
        for (category, raw), values in average.ops.items():
            key = (category, table_name(raw))
            spellings.setdefault(key, Counter())[raw] += values[0] * factor
            entry = sums.setdefault(key, [0] * 6)
            for i, value in enumerate(values):
                entry[2 * i + offset] += factor * value
    ops = []
    for (category, name), entry in sums.items():
        raw = min(spellings[category, name].items(), key=lambda item: (-item[1], item[0]))[0]
        device = "gpu" if category in GPU_CATEGORIES else "cpu"
        ops.append(Op(readable(name), raw, device, category, family_of(raw), *entry))
    return tuple(sorted(ops, key=lambda op: (-abs(op.delta), op.category, op.raw_name)))
