"""`Comparison`: all results of comparing two sets."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from tracediff.aggregate.call_tree import CallTree
from tracediff.aggregate.side import Side
from tracediff.diff.family_tests import TestedFamily
from tracediff.diff.gpu_time import GpuTime
from tracediff.diff.groups import WorkTime
from tracediff.diff.matching.call_pairs import Pairing
from tracediff.diff.ops import Op
from tracediff.diff.preflight import REFUSED, Comparability
from tracediff.diff.step_time import StepTime
from tracediff.diff.table_changes import TableDiff
from tracediff.diff.unprofiled import Unprofiled
from tracediff.diff.verdict import Verdict
from tracediff.diff.work_changes import WorkChange, work_changes

if TYPE_CHECKING:
    from tracediff.explain.explanation import Explanation
    from tracediff.source.touching import ChangedCode


@dataclass(frozen=True)
class Comparison:
    """Control and test side by side. Counts and times are integer numerators: x / scale events, x / scale nanoseconds.

    Attributes:
        scale: the common denominator.
        control, test: the files, ranks and steps of the sides.
        comparability: whether the sides are comparable, with the cautions.
        verdict, step_time, gpu_time, ops: see their classes; if `comparability` is refused and not forced, gpu_time
            has no groups and ops is empty.
        host_time: the self time of operators in groups if neither side has a GPU; else empty.
        trees, pairing: the call trees of both sides, and which calls are the same.
        families: the significance of the change of each family of work.
        unprofiled: the test of the steps without the profiler, where both sides have them.
        explanation: why the step changed; None if the comparison was refused.
        tables: the further tables with which both sets were loaded.
        changed_code: the changed lines that changed work runs for; None if no commits were given.
        common_change: median relative change of all tested operators, 0 if none was tested.
    """

    scale: int
    control: Side
    test: Side
    comparability: Comparability
    verdict: Verdict
    step_time: StepTime
    gpu_time: GpuTime
    host_time: WorkTime
    ops: tuple[Op, ...]
    trees: tuple[CallTree, CallTree]
    pairing: Pairing
    families: tuple[TestedFamily, ...]
    common_change: float
    unprofiled: Unprofiled | None = None
    explanation: Explanation | None = None
    tables: tuple[TableDiff, ...] = ()
    changed_code: ChangedCode | None = None

    def us(self, numerator: int) -> float:
        """Microseconds of a time numerator: the one division."""
        return numerator / (self.scale * 1000)

    def number(self, numerator: int) -> float:
        """Events per step of a count numerator: the one division."""
        return numerator / self.scale

    @property
    def believed_unprofiled(self) -> Unprofiled | None:
        """The steps without the profiler, where the verdict is from these."""
        return self.unprofiled if self.unprofiled and self.unprofiled.believed else None

    @property
    def p_value(self) -> float | None:
        """Of the steps that the verdict is about; None where untested."""
        return (self.believed_unprofiled or self.verdict).p_value

    @property
    def work(self) -> WorkTime:
        """The work that was matched: GPU events if there are any, else the self time of operators."""
        return self.gpu_time if self.gpu_time.groups else self.host_time

    @cached_property
    def work_changes(self) -> tuple[WorkChange, ...]:
        """The work with its instances merged, the largest change first."""
        return tuple(work_changes(self.work))

    @property
    def was_refused(self) -> bool:
        """Whether the sides were not compared."""
        return self.comparability.level == REFUSED and not self.ops
