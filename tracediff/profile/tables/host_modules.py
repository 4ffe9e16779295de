"""Host time by module: the host time of the operators below each nn.Module."""

from __future__ import annotations

import numpy as np

from tracediff.ingest.times import Int64
from tracediff.profile.arrays.factorize import grouped
from tracediff.profile.context import Context
from tracediff.profile.model import CallTable, TableRows
from tracediff.profile.placement.calls import MODULE
from tracediff.profile.placement.module_paths import module_labels
from tracediff.profile.placement.scopes import module_lane, paths_of
from tracediff.profile.tables.schema import Column, TableSchema, summed

OUTSIDE = "outside modules"

SCHEMA = TableSchema(
    "host_modules",
    "Host time by module",
    "Host time of operators and runtime calls by the nn.Module they belong to, forward and backward. Self: operators "
    "of the module itself; total: with the modules inside it. Calls: forward calls of the module.",
    keys=("module",),
    columns=(
        Column("self", "self"),
        Column("total", "total"),
        Column("operators", "operators", "count"),
        Column("calls", "module calls", "count"),
    ),
)


class Paths:
    """Paths of modules, numbered: each a name (a code of the trace) below another path, −1 for none."""

    def __init__(self) -> None:
        self.known: dict[tuple[int, int], int] = {}

    def below(self, parent: int, name: int) -> int:
        """The number of ``name`` below the path ``parent``."""
        return self.known.setdefault((parent, name), len(self.known))


def table(context: Context) -> TableRows:
    """Rows by module path; empty if the trace has no modules. Self times add up to those of all operators and calls in
    the steps.
    """
    ops, paths = context.lanes["ops"], Paths()
    of_node = _modules_of(context.calls.table, paths)
    lane = module_lane(context.trace)
    nodes, recorded = paths_of(context.trace, lane)
    of_call: list[int] = []
    for parent, name in zip(recorded.parent, recorded.name, strict=True):
        of_call.append(paths.below(of_call[parent] if parent >= 0 else -1, name))
    step = context.steps.positions_at(ops.start)
    operator_columns = [
        np.where(step >= 0, of_node[context.calls.node], -1),
        ops.self_ns,
        context.calls.operator.astype(np.int64),
    ]
    (at_step, module), (self_ns, operators) = grouped([step, operator_columns[0]], operator_columns[1:])
    rows = [_row(at_step, module, self_ns, 0, operators, 0)]
    above = np.array([parent for parent, _ in paths.known], np.int64)
    while len(at_step):
        rows.append(_row(at_step, module, 0, self_ns, 0, 0))
        inner = np.flatnonzero(module >= 0)
        inner = inner[above[module[inner]] >= 0]
        at_step, module, self_ns = at_step[inner], above[module[inner]], self_ns[inner]
    rows.append(
        _row(
            context.steps.positions_at(lane.start), np.array(of_call, np.int64)[nodes] if of_call else nodes, 0, 0, 0, 1
        )
    )
    columns = np.concatenate(rows) if paths.known else np.zeros((0, 6), np.int64)
    return summed(
        columns[:, 0], [(columns[:, 1] + 1, [OUTSIDE, *_texts(context.trace.names, paths)])], list(columns[:, 2:].T)
    )


def _row(step: Int64, module: Int64, *values: Int64 | int) -> Int64:
    return np.column_stack((step, module, *(np.broadcast_to(np.asarray(v, np.int64), len(step)) for v in values)))


def _modules_of(calls: CallTable, paths: Paths) -> Int64:
    """int64[nodes] path of the innermost module at or around each node of the calls, −1 for none."""
    out = np.full(len(calls.parent), -1, np.int64)
    for node, (parent, kind, name) in enumerate(
        zip(calls.parent.tolist(), calls.kind.tolist(), calls.name.tolist(), strict=True)
    ):
        around = int(out[parent]) if parent >= 0 else -1
        out[node] = paths.below(around, name) if kind == MODULE else around
    return out


def _texts(names: list[str], paths: Paths) -> list[str]:
    """The text of each path, labelled as in the other tables."""
    labels = module_labels((path, parent, names[name]) for path, (parent, name) in enumerate(paths.known))
    texts: list[str] = []
    for path, (parent, _) in enumerate(paths.known):
        texts.append(f"{texts[parent]}/{labels[path]}" if parent >= 0 else labels[path])
    return texts
