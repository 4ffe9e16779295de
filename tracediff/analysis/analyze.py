"""`TraceSet` → `Analysis`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import lcm

from tracediff.analysis.analysis import Analysis
from tracediff.analysis.findings import find
from tracediff.analysis.shares import Share, operations, shares
from tracediff.diff.compare import side_of
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
    return replace(analysis, findings=find(analysis))


def _scaled(table: SetTable, scale: int) -> tuple[Measure, tuple[tuple[tuple[str, ...], tuple[int, ...]], ...]]:
    lines = [(key, tuple(scale // table.denominator * n for n in row)) for key, row in table.rows.items()]
    return table.measure, tuple(sorted(lines, key=lambda line: (-line[1][0], line[0])))


def _tensor_cores(members: Iterable[Member]) -> float | None:
    kernels = [m for m in members if m.category == "kernel"]
    whole = sum(m.ns for m in kernels)
    return sum(m.ns for m in kernels if uses_tensor_cores(m.name)) / whole if whole else None
