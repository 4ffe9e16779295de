"""The leaves of a file, step by step."""

from __future__ import annotations

import numpy as np

from tracediff.ingest.times import Int64
from tracediff.profile.analyses.critical_path import critical_path
from tracediff.profile.arrays.factorize import combined, least, most, sums
from tracediff.profile.context import Context
from tracediff.profile.leaves.keys import Sources
from tracediff.profile.leaves.parts import PathParts, of_steps, on_path
from tracediff.profile.model import LeafTable
from tracediff.profile.work import WorkKeys

MOST_EMPTY = 4
"""Cells of (step, leaf) per part up to which sums are kept for all of them, so that nothing is sorted."""


def leaf_table(context: Context, work: WorkKeys) -> LeafTable:
    """The leaves of every step; ``work`` are the keys of its GPU events or, without a GPU, of its operators by their
    position in the lane.
    """
    path = critical_path(context)
    sources = Sources(context, path.blocked)
    parts, waiting = on_path(sources, path)
    totals = [*waiting, *of_steps(sources, path)]
    leaf_of, keys = sources.keys(_others(sources, [parts.source, *(t.source for t in totals)]), work)
    leaves = len(keys["kind"])
    cell_of = [parts.step * leaves + leaf_of[parts.source], *(t.step * leaves + leaf_of[t.source] for t in totals)]
    cells = np.arange(len(context.steps) * leaves)
    if len(cells) > MOST_EMPTY * sum(map(len, cell_of)):  # many steps with leaves of their own
        cells = np.unique(np.concatenate(cell_of))
        cell_of = [np.searchsorted(cells, cell) for cell in cell_of]
    cell = cell_of[0]
    on, total, count = (np.zeros(len(cells), np.int64) for _ in range(3))
    np.add.at(on, cell, parts.ns)
    for mine, some in zip(cell_of[1:], totals, strict=True):
        np.add.at(total, mine, some.ns)
        np.add.at(count, mine, some.count)
    rows = np.flatnonzero((on > 0) | (total > 0) | (count > 0))
    step, leaf = np.divmod(cells[rows], max(leaves, 1))
    longest = _longest(parts, cell, len(cells))
    return LeafTable(
        step=step,
        **{name: column[leaf] for name, column in keys.items()},
        path_ns=on[rows],
        total_ns=np.maximum(total, on)[rows],
        count=count[rows],
        longest_ns=longest[0][rows],
        longest_at=longest[1][rows],
        following=_following(context, longest[2][rows]),
    )


def _others(sources: Sources, columns: list[Int64]) -> Int64:
    """Those of the sources in ``columns`` that are no operators, calls or GPU events."""
    present = np.zeros(sources.end, bool)
    for column in columns:
        present[column] = True
    present[sources.context.lanes["ops"].rows] = False
    present[sources.event : sources.queue] = False
    return np.flatnonzero(present)


def _longest(parts: PathParts, cell: Int64, cells: int) -> tuple[Int64, Int64, Int64]:
    """(time on the path in ns, begin in ns, the instance) of the longest instance on the path in each cell; of several
    the first to begin. 0 where none is.
    """
    host = slice(parts.whole, None)
    low = int(parts.instance[host].min(initial=0))
    code, first = combined(cell[host], parts.instance[host] - low)
    where, ns, begin, instance = (
        np.concatenate((whole[: parts.whole], of_host))
        for whole, of_host in (
            (cell, cell[host][first]),
            (parts.ns, sums(code, parts.ns[host], len(first))),
            (parts.begin, least(code, parts.begin[host], len(first))),
            (parts.instance, parts.instance[host][first]),
        )
    )
    longest = np.maximum(most(where, ns, cells), 0)
    some = np.flatnonzero(ns == longest[where])
    earliest = least(where[some], begin[some], cells)
    some = some[begin[some] == earliest[where[some]]]
    chosen = most(where[some], instance[some], cells)
    none = longest == 0
    earliest[none] = chosen[none] = 0
    return longest, earliest, chosen


def _following(context: Context, instance: Int64) -> Int64:
    """int64[r] code of the name of the outermost operator or call after each stretch of Python; −1 for others."""
    ops = context.lanes["ops"]
    roots = np.flatnonzero(ops.depth == 0)
    roots = roots[np.argsort(ops.start[roots], kind="stable")]
    gap = -1 - instance
    known = np.flatnonzero((instance < 0) & (gap < len(roots)))
    out = np.full(len(instance), -1, np.int64)
    out[known] = context.trace.name[ops.rows[roots[gap[known]]]]
    return out
