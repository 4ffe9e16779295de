"""`TraceSet` → `Analysis`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import lcm

from tracediff.aggregate.set_table import SetTable
from tracediff.aggregate.summary import summarise
from tracediff.aggregate.traceset import TraceSet
from tracediff.analysis.analysis import Analysis
from tracediff.analysis.set_findings import find
from tracediff.analysis.shares import Share, operations, shares
from tracediff.diff.groups import Member, members_of
from tracediff.diff.matching.items import items_of
from tracediff.diff.matching.origins import Origins
from tracediff.diff.views import VIEWS
from tracediff.profile.kernels.tensor_cores import uses_tensor_cores
from tracediff.profile.tables.schema import TableSchema
from tracediff.profile.work import UNMATCHED
from tracediff.runtimes import KERNEL


def analyze_set(traces: TraceSet) -> Analysis:
    """The step account, the kernel account, operations, tables and findings of one set."""
    summary = summarise(traces)
    steps, kernels, ops = summary.steps, summary.kernels, summary.ops
    tree = summary.tree(traces.has_gpu)
    scale = lcm(*summary.denominators, tree.denominator)
    factor = scale // tree.denominator
    unattributed = factor * sum(w.ns for w in tree.work if w.ordinal == UNMATCHED)
    qualified = traces.manifest.modules if traces.manifest and traces.manifest.provenance else {}
    family_of = traces.families.of_kernel if traces.has_gpu else traces.families.of_work
    members = members_of(items_of(tree, factor, family_of, Origins(traces.manifest, traces.torch_log), qualified))
    step_factor = scale // steps.denominator
    analysis = Analysis(
        scale=scale,
        side=summary.side,
        period=step_factor * steps.period,
        states=tuple(Share(name, step_factor * ns) for name, ns in steps.states.items()),
        foreign=step_factor * steps.foreign,
        draining=step_factor * steps.draining,
        work=sum(m.ns for m in members) + unattributed,
        busy=scale // kernels.denominator * kernels.busy,
        unattributed=unattributed,
        tensor_cores=_tensor_cores(members),
        views={view: shares(members, key) for view, key in VIEWS.items()},
        tree=tree,
        operations=operations(ops, scale, traces.families),
        tables=tuple(_scaled(table, scale) for table in summary.tables.values()),
    )
    return replace(analysis, findings=find(analysis))


def _scaled(table: SetTable, scale: int) -> tuple[TableSchema, tuple[tuple[tuple[str, ...], tuple[int, ...]], ...]]:
    lines = [(key, tuple(scale // table.denominator * n for n in row)) for key, row in table.rows.items()]
    return table.schema, tuple(sorted(lines, key=lambda line: (-line[1][0], line[0])))


def _tensor_cores(members: Iterable[Member]) -> float | None:
    kernels = [m for m in members if m.category == KERNEL]
    whole = sum(m.ns for m in kernels)
    return sum(m.ns for m in kernels if uses_tensor_cores(m.name)) / whole if whole else None
