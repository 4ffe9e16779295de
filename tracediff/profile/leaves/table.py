"""The leaves of a file, step by step."""

from __future__ import annotations

import numpy as np

from tracediff.ingest.times import Int64
from tracediff.profile.analyses.critical_path import critical_path
from tracediff.profile.arrays.factorize import combined
from tracediff.profile.context import Context
from tracediff.profile.leaves.keys import Sources
from tracediff.profile.leaves.parts import Parts, all_parts
from tracediff.profile.model import LeafTable
from tracediff.profile.placement.innermost import pieces
from tracediff.profile.work import WorkKeys

MOST_EMPTY = 4
"""Cells of (step, leaf) per part up to which sums are kept for all of them, so that nothing is sorted."""


def leaf_table(context: Context, work: WorkKeys) -> LeafTable:
    """The leaves of every step; ``work`` are the keys of its GPU events or, without a GPU, of its operators by their
    position in the lane.
    """
    of_ops = pieces(context.lanes["ops"])
    path = critical_path(
        context.trace, context.steps, context.completions, gpu=context.gpu, lanes=context.lanes, of_ops=of_ops
    )
    sources = Sources(context)
    parts = all_parts(sources, path, of_ops)
    present = np.zeros(sources.end, bool)
    present[parts.source] = True
    used = np.flatnonzero(present)
    keys = sources.keys(used, work)
    code, first = combined(*keys.values())
    leaf_of = np.zeros(sources.end, np.int64)
    leaf_of[used] = code
    cell = parts.step * len(first) + leaf_of[parts.source]
    cells = np.arange(len(context.steps) * len(first))
    if len(cells) > MOST_EMPTY * len(cell):  # many steps with leaves of their own
        cells, cell = np.unique(cell, return_inverse=True)
    sums = {name: _added(cell, getattr(parts, name), len(cells)) for name in ("path", "total", "count")}
    rows = np.flatnonzero((sums["path"] > 0) | (sums["total"] > 0))
    step, of_leaf = np.divmod(cells[rows], max(len(first), 1))
    on_path, total, count = (column[rows] for column in sums.values())
    longest = _longest(parts, cell, rows)
    return LeafTable(
        step=step,
        **{name: column[first][of_leaf] for name, column in keys.items()},
        path_ns=on_path,
        total_ns=np.maximum(total, on_path),
        count=count,
        longest_ns=longest[0],
        longest_at=longest[1],
        following=_following(context, longest[2]),
    )


def _added(cell: Int64, values: Int64, cells: int) -> Int64:
    """int64[cells]: sums of ``values`` by ``cell``."""
    out = np.zeros(cells, np.int64)
    some = np.flatnonzero(values)
    np.add.at(out, cell[some], values[some])
    return out


def _longest(parts: Parts, cell: Int64, rows: Int64) -> tuple[Int64, Int64, Int64]:
    """(time on the path in ns, begin in ns, the instance) of the longest instance on the path in each cell of ``rows``
    (ascending), 0 where none is.
    """
    some = np.flatnonzero(parts.path > 0)
    some = some[np.lexsort((parts.begin[some], parts.instance[some], cell[some]))]
    of_cell, instance = cell[some], parts.instance[some]
    first = np.flatnonzero(np.append(True, (np.diff(of_cell) != 0) | (np.diff(instance) != 0))[: len(some)])
    ns = np.add.reduceat(parts.path[some], first) if len(first) else np.zeros(0, np.int64)
    of_cell, instance, begin = of_cell[first], instance[first], parts.begin[some][first]
    order = np.lexsort((-begin, ns, of_cell))
    last = order[np.append(np.diff(of_cell[order]) != 0, True)[: len(order)]]
    out = tuple(np.zeros(len(rows), np.int64) for _ in range(3))
    place = np.searchsorted(rows, of_cell[last])
    for column, values in zip(out, (ns, begin, instance), strict=True):
        column[place] = values[last]
    return out[0], out[1], out[2]


def _following(context: Context, instance: Int64) -> Int64:
    """int64[r] code of the name of the outermost operator or call that follows each stretch of Python; −1 for others."""
    ops = context.lanes["ops"]
    roots = np.flatnonzero(ops.depth == 0)
    roots = roots[np.argsort(ops.start[roots], kind="stable")]
    gap = -1 - instance
    known = np.flatnonzero((instance < 0) & (gap < len(roots)))
    out = np.full(len(instance), -1, np.int64)
    out[known] = context.trace.name[ops.rows[roots[gap[known]]]]
    return out
