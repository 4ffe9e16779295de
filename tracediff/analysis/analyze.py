"""`TraceSet` → `Analysis`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import lcm

from tracediff.analysis.findings import find
from tracediff.analysis.shares import Operation, Share, operations, shares
from tracediff.diff.compare import side_of
from tracediff.diff.comparison import Side
from tracediff.diff.findings.finding import Finding
from tracediff.diff.groups import Member, members_of
from tracediff.diff.matching.items import items_of
from tracediff.diff.matching.origins import Origins
from tracediff.diff.views import VIEWS
from tracediff.profile.average import call_tree, kernel_average, op_average, step_average
from tracediff.profile.further import further_tables
from tracediff.profile.measures.measure import Measure
from tracediff.profile.set_table import SetTable
from tracediff.profile.tensor_cores import uses_tensor_cores
from tracediff.profile.traceset import TraceSet
from tracediff.profile.work import UNMATCHED


@dataclass(frozen=True)
class Analysis:
    """One set in depth. Counts and times are integer numerators: x / scale events, x / scale nanoseconds, per step.

    Attributes:
        scale: the common denominator.
        side: what the set was made of.
        period: the step. states: name → time; they sum to it. foreign: GPU time of work launched in no used step.
        work: Σ durations of GPU events, without a GPU of the self time of operators. busy: union of GPU events per GPU, summed.
        unattributed: the part of `work` that a health note keeps out of the views.
        tensor_cores: part of kernel time on tensor cores, None without kernels.
        views: family, phase, module, op, kernel → the work summed by it, largest first.
        operations: by self time. measures: further tables, those that the set was loaded with: (measure, rows of key and numerators).
        findings: what stands out.
    """

    scale: int
    side: Side
    period: int
    states: tuple[Share, ...]
    foreign: int
    work: int
    busy: int
    unattributed: int
    tensor_cores: float | None
    views: dict[str, tuple[Share, ...]]
    operations: tuple[Operation, ...]
    measures: tuple[tuple[Measure, tuple[tuple[tuple[str, ...], tuple[int, ...]], ...]], ...]
    findings: tuple[Finding, ...] = ()

    def us(self, numerator: int) -> float:
        """Microseconds of a time numerator: the one division."""
        return numerator / (self.scale * 1000)

    def number(self, numerator: int) -> float:
        """Events per step of a count numerator: the one division."""
        return numerator / self.scale


def analyze_set(traces: TraceSet) -> Analysis:
    """Every account of one set."""
    steps, kernels, ops = step_average(traces), kernel_average(traces), op_average(traces)
    tree = call_tree(traces, traces.has_gpu)
    further = further_tables(traces)
    scale = lcm(steps.denominator, kernels.denominator, ops.denominator, tree.denominator, *(t.denominator for t in further.values()))
    factor = scale // tree.denominator
    unattributed = factor * sum(w.ns for w in tree.work if w.ordinal == UNMATCHED)
    qualified = traces.manifest.modules if traces.manifest and traces.manifest.provenance else {}
    members = members_of(items_of(tree, factor, traces.families.of_kernel, Origins(traces.manifest), qualified))
    of_step = scale // steps.denominator
    analysis = Analysis(
        scale,
        side_of(traces, steps.runs),
        of_step * steps.period,
        tuple(Share(name, of_step * ns) for name, ns in steps.states.items()),
        of_step * steps.foreign,
        sum(m.ns for m in members) + unattributed,
        scale // kernels.denominator * kernels.busy,
        unattributed,
        _tensor_cores(members),
        {view: shares(members, key) for view, key in VIEWS.items()},
        operations(ops, scale, traces.families),
        tuple(_scaled(table, scale) for table in further.values()),
    )
    return Analysis(**{**vars(analysis), "findings": find(analysis)})


def _scaled(table: SetTable, scale: int) -> tuple[Measure, tuple[tuple[tuple[str, ...], tuple[int, ...]], ...]]:
    lines = [(key, tuple(scale // table.denominator * n for n in row)) for key, row in table.rows.items()]
    return table.measure, tuple(sorted(lines, key=lambda line: (-line[1][0], line[0])))


def _tensor_cores(members: Iterable[Member]) -> float | None:
    kernels = [m for m in members if m.category == "kernel"]
    whole = sum(m.ns for m in kernels)
    return sum(m.ns for m in kernels if uses_tensor_cores(m.name)) / whole if whole else None
