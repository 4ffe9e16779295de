"""What each step waited for, by work and by what the host did, with all time of the same in its period
(docs/explanation.md): the critical path and all that ran are cut into parts, and the parts of a leaf added up. The path
tiles the period, so the times on the path add up to it.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tracediff import bounds
from tracediff.arrays import (
    Int64,
    all_none,
    combined,
    cut,
    distinct,
    grouped,
    last_up_to,
    least,
    most,
    return_freed,
    sorted_by,
    sums,
    zeros,
)
from tracediff.profile.analyses.critical_path import WHOLE, CriticalPath, critical_path
from tracediff.profile.analyses.leaf_keys import Sources
from tracediff.profile.events.context import Context
from tracediff.profile.events.work import WorkKeys
from tracediff.profile.model.profile import LeafTable
from tracediff.profile.placement.nesting import ALWAYS, Painting, overlaid

PathParts = list[Int64]
"""Parts of the critical path: position of the step, source (see `Sources`), begin and length in ns, and the instance
that a part belongs to: its source; Python code between two outermost operators or calls is one, −1 − its number.
"""
Totals = tuple[Int64, Int64, Int64, NDArray[np.int8]]
"""Time of sources in steps, on the path or off it: position of the step, source, ns, and 1 where an instance begins,
else 0.
"""


def on_path(sources: Sources, path: CriticalPath, spans: Int64) -> tuple[PathParts, Totals]:
    """(the parts of the path's ``spans``, the time of what is not work of its own: all of it counts as on the path)."""
    scopes = sources.scopes[0]
    span, source, begin, ns = path.parts(spans)
    if len(scopes.times) > 1:
        part, scope, begin, end = scopes.cut(begin, begin + ns)
        span, source, ns = span[part], source[part], end - begin
        source = np.where((scope >= 0) & (source < sources.event), scope, source)
    step, is_op = path.step[span], sources.is_op(source)
    is_of_gpu = (source >= sources.event) & (source < sources.further)
    gap = np.searchsorted(sources.root_starts, begin, side="right")
    instance = np.where(is_op | is_of_gpu, source, -1 - gap)
    may_wait = (is_of_gpu & (source >= sources.queue)) | path.host.is_collective(source)
    may_wait[is_op] |= sources.waits[sources.context.calls.position[source[is_op]]]
    waits = np.flatnonzero(may_wait)
    count = np.zeros(len(waits), np.int8)
    first = combined(step[waits], source[waits])[1]  # a wait may be in parts
    count[first] = source[waits[first]] >= sources.queue
    return [step, source, begin, ns, instance], (step[waits], source[waits], ns[waits], count)


def of_steps(sources: Sources, path: CriticalPath) -> Iterator[Totals]:
    """The work of each step, on the path or off it: the GPU events that it launched, and what the host did from its
    start to the next's: operators and calls of every thread by their self time, without those that wait for the GPU,
    which is not work; Python and scopes of the host as one thread.
    """
    gpu, completions = sources.context.gpu, sources.context.completions
    steps, edges = sources.context.steps, completions  # without a GPU those of the path
    if len(gpu.rows):
        edges = np.maximum.accumulate(np.append(steps.own_start, steps.end.max()))
    events = sources.event + np.arange(len(gpu.rows))
    own, others = np.flatnonzero(gpu.step >= 0), np.flatnonzero(gpu.step < 0)
    yield from _of_operators(sources, edges)
    for step, source, ns, count in _outside_ops(sources, path.host.outside_ops, edges):
        yield step, source, np.where(path.host.is_collective(source), 0, ns), count
    yield gpu.step[own], events[own], gpu.ns[own], np.ones(len(own), np.int8)
    yield _cut(gpu.start[others], gpu.end[others], events[others], completions, counted=True)


def _outside_ops(sources: Sources, painting: Painting, edges: Int64) -> Iterator[Totals]:
    """Of Python and scopes of the host as one thread."""
    whole = overlaid(sources.scopes[0], painting)
    begins = np.append(True, (np.diff(whole.rows) != 0) | (whole.rows[1:] < sources.further))  # a scope counts once
    times, source = whole.times[begins], np.where(whole.rows >= 0, whole.rows, sources.nothing)[begins]
    aside = np.flatnonzero(~sources.is_op(source[1:-1])) + 1  # before the first and after the last nothing is known
    for low in range(0, len(aside), bounds.EVENTS_AT_ONCE):
        some = aside[low : low + bounds.EVENTS_AT_ONCE]
        yield _cut(times[some], times[some + 1], source[some], edges, counted=True)


def _of_operators(sources: Sources, edges: Int64) -> Iterator[Totals]:
    """Of operators and calls outside of `scopes`, where they begin; at last of those that a border of a step or scope
    divides.
    """
    ops, scopes = sources.context.ops, sources.scopes[0]
    borders = np.concatenate(([ALWAYS], distinct(np.concatenate((edges, scopes.times[1:])))))
    step = last_up_to(edges, borders)
    counts = (step >= 0) & (step < len(edges) - 1) & (scopes.rows_at(borders) < 0)
    divided = np.zeros(len(ops.rows), bool)
    for low in range(0, len(ops.rows), bounds.EVENTS_AT_ONCE):
        some = slice(low, low + bounds.EVENTS_AT_ONCE)
        first = last_up_to(borders, ops.start[some])
        divided[some] = first != np.searchsorted(borders, ops.end[some], side="left") - 1
        with_begin = np.flatnonzero(counts[first])
        ns = np.where(divided[some] | sources.waits[some], 0, ops.self_ns[some])
        count = np.ones(len(with_begin), np.int8)
        yield step[first[with_begin]], ops.rows[some][with_begin], ns[with_begin], count
    start, end, position = ops.pieces(divided & ~sources.waits)
    piece, scope, begin, until = scopes.cut(start, end)
    outside = np.flatnonzero(scope < 0)
    yield _cut(begin[outside], until[outside], ops.rows[position[piece[outside]]], edges)


def _cut(start: Int64, end: Int64, source: Int64, edges: Int64, *, counted: bool = False) -> Totals:
    """Spans cut at ``edges``; parts beyond them are left out, and a span counts where it begins."""
    which, step, low, high = cut(start, end, edges)
    count = (start[which] == low) & counted
    return step, source[which], high - low, count.astype(np.int8)


def leaf_table(context: Context, work: WorkKeys) -> LeafTable:
    """The leaves of every step; ``work`` are the keys of its GPU events or, without a GPU, of its operators by their
    position in the lane.
    """
    keys, on_path_cells, totals = _cells(context, work)
    return_freed(len(context.trace))
    cells = distinct(np.concatenate([cell for cell, *_ in (*on_path_cells, *totals)]))
    total, count = _added_up(totals, cells)
    path_ns, longest_ns, longest_at, instance = _added_up(on_path_cells, cells)
    rows = np.flatnonzero((path_ns > 0) | (total > 0) | (count > 0))
    step, leaf = np.divmod(cells[rows], len(keys["kind"]))
    return LeafTable(
        step=step,
        **{name: column[leaf] for name, column in keys.items()},
        path_ns=path_ns[rows],
        total_ns=total[rows],
        count=count[rows],
        longest_ns=longest_ns[rows],
        longest_at=longest_at[rows],
        following=_following(context, instance[rows]),
    )


def _added_up(parts: Sequence[tuple[Int64, ...]], cells: Int64) -> Int64:
    """int64[columns, cells]: the sums of the columns of ``parts``, each of which begins with its distinct cells."""
    out = zeros((len(parts[0]) - 1, len(cells)))
    for cell, *columns in parts:
        place = np.searchsorted(cells, cell)
        for row, column in zip(out, columns, strict=True):
            row[place] += column
    return out


def _cells(
    context: Context, work: WorkKeys
) -> tuple[dict[str, Int64], list[tuple[Int64, ...]], list[tuple[Int64, ...]]]:
    """(columns of the keys of the leaves, the path by cell as of `_path_cells`, sums of `Totals` by cell), in parts; a
    cell is step × leaves + leaf.
    """
    path = critical_path(context)
    sources = Sources(context, path.blocked)
    path = _with_start(path, sources)
    return_freed(len(context.trace))
    leaf_of, keys = sources.keys(_others(sources, path), work)
    leaves = len(keys["kind"])
    return_freed(len(context.trace))

    def summed(some: Totals) -> tuple[Int64, ...]:
        step, source, ns, count = some
        cell = step * leaves + leaf_of[source]
        cells, totals_of_cells = grouped([cell], [ns, count])
        return *cells, *totals_of_cells

    on_path_cells: list[tuple[Int64, ...]] = []
    totals: list[tuple[Int64, ...]] = []
    for spans in _blocks(context, path):
        (step, source, *parts), aside = on_path(sources, path, spans)
        on_path_cells.append(_path_cells(step * leaves + leaf_of[source], *parts))
        totals.append(summed(aside))
    totals += map(summed, of_steps(sources, path))
    return keys, on_path_cells, totals


def _with_start(path: CriticalPath, sources: Sources) -> CriticalPath:
    """``path``, in a file without steps with one span from the launch of its first GPU event until that starts, if it
    leads there: the GPU runs what was launched before the recording, or the profiler starts.
    """
    context, gpu = sources.context, sources.context.gpu
    if not context.steps.whole_file or not len(gpu.rows):
        return path
    first = int(np.argmin(gpu.start))
    low, high = int(context.trace.ts[gpu.launch[first]]), int(gpu.start[first])
    if gpu.launch[first] < 0 or low >= high or not (path.source == sources.event + first).any():
        return path
    before = (path.start < high) & (path.end > low)
    others = np.flatnonzero(~before | (path.start < low))
    span = {"step": 0, "source": sources.start, "thread": WHOLE, "start": low, "end": high}
    columns = {name: getattr(path, name)[others] for name in span}
    columns["end"] = np.where(before[others], low, columns["end"])
    return path.replace(**{name: np.append(column, span[name]) for name, column in columns.items()})


def _blocks(context: Context, path: CriticalPath) -> Iterator[Int64]:
    """The spans of the path in blocks of whole steps: what all are cut into may take as much as the trace."""
    steps = len(context.steps)
    number = min(1 + len(context.ops.rows) // bounds.EVENTS_AT_ONCE, steps)
    block = path.step * number // steps
    yield from (np.flatnonzero(block == k) for k in range(number))


def _others(sources: Sources, path: CriticalPath) -> Int64:
    """Sources that are not operators, calls or GPU events, among them all that time can belong to."""
    lanes = sources.context.lanes
    return np.concatenate(
        (
            lanes.python.rows,
            lanes.annotations.rows,
            [sources.nothing, sources.unknown, sources.start],
            path.source[path.source >= sources.queue],
            np.arange(sources.further, sources.end),
        )
    )


def _path_cells(cell: Int64, begin: Int64, ns: Int64, instance: Int64) -> tuple[Int64, ...]:
    """(distinct cells, ns of each, and of its instance that is longest on the path, of several the first to begin: ns,
    begin in ns, and the instance; 0 where none is) of `PathParts`.
    """
    place, first_of_cell = combined(cell)
    cells = len(first_of_cell)
    code, first = combined(place, instance - int(instance.min(initial=0)))
    where, instance = place[first], instance[first]
    instance_ns, begin = sums(code, ns, len(first)), least(code, begin, len(first))
    longest = np.maximum(most(where, instance_ns, cells), 0)
    some = np.flatnonzero(instance_ns == longest[where])
    earliest = least(where[some], begin[some], cells)
    some = some[begin[some] == earliest[where[some]]]
    longest_instance = most(where[some], instance[some], cells)
    none = longest == 0
    earliest[none] = longest_instance[none] = 0
    return cell[first_of_cell], sums(place, ns, cells), longest, earliest, longest_instance


def _following(context: Context, instance: Int64) -> Int64:
    """int64[r] code of the name of the outermost operator or call after each stretch of Python; −1 for others."""
    ops = context.ops
    roots = sorted_by(ops.roots, ops.start)
    gap = -1 - instance
    with_root = np.flatnonzero((instance < 0) & (gap < len(roots)))
    out = all_none(len(instance))
    out[with_root] = ops.name[roots[gap[with_root]]]
    return out
