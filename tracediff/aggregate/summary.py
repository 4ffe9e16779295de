"""`SetSummary`: every number of one set per step; a comparison is made of two of them, an analysis of one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tracediff.aggregate.averages import (
    KernelAverage,
    OpAverage,
    StepAverage,
    call_tree,
    kernel_average,
    op_average,
    step_average,
)
from tracediff.aggregate.call_tree import CallTree
from tracediff.aggregate.samples import Samples, family_samples, op_samples
from tracediff.aggregate.set_table import SetTable
from tracediff.aggregate.side import Side, side_of
from tracediff.aggregate.tables import set_tables
from tracediff.aggregate.traceset import TraceSet


@dataclass(frozen=True, kw_only=True)
class SetSummary:
    """The accounts of one set per step, each with numerators over a denominator of its own.

    Attributes:
        traces: the set. side: what it was made of.
        steps, kernels, ops: the step account, what accompanies the kernel account, the operations.
        tables: name → table, those that the set was loaded with.
    """

    traces: TraceSet
    side: Side
    steps: StepAverage
    kernels: KernelAverage
    ops: OpAverage
    tables: dict[str, SetTable]

    @property
    def denominators(self) -> tuple[int, ...]:
        """Of all accounts: whatever puts them on one scale needs a common multiple."""
        accounts = self.steps.denominator, self.kernels.denominator, self.ops.denominator
        tables = self.tables.values()
        return *accounts, *(table.denominator for table in tables)

    def tree(self, gpu: bool) -> CallTree:
        """The call tree; its work are GPU events or, without ``gpu``, the self time of operators."""
        return call_tree(self.traces, gpu)

    def op_samples(self) -> Samples:
        """Self time by operation, one value per run."""
        return op_samples(self.traces)

    def family_samples(self, gpu: bool, family_of: Callable[[str, str | None], str]) -> Samples:
        """Work by family, one value per run; GPU events or, without ``gpu``, the self time of operators."""
        return family_samples(self.traces, gpu, family_of)


def summarise(traces: TraceSet) -> SetSummary:
    """The accounts of ``traces`` per used step."""
    steps = step_average(traces)
    side = side_of(traces, steps.runs)
    tables, notes = set_tables(traces)
    return SetSummary(
        traces=traces,
        side=replace(side, notes=(*side.notes, *notes)),
        steps=steps,
        kernels=kernel_average(traces),
        ops=op_average(traces),
        tables=tables,
    )
