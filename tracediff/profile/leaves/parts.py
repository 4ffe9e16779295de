"""Parts of the periods: what the critical path was charged to, and all that ran."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracediff.ingest.times import Int64
from tracediff.profile.analyses.critical_path import BETWEEN, EVENT, QUEUED, UNKNOWN, CriticalPath
from tracediff.profile.leaves.keys import Sources
from tracediff.profile.placement.innermost import ALWAYS, cut, overlaid, pieces
from tracediff.profile.placement.steps import Steps


@dataclass(frozen=True, kw_only=True)
class PathParts:
    """Parts of the critical path, m of them.

    Attributes:
        step: int64[m] position. source: int64[m], see `Sources`. begin, ns: int64[m] ns.
        instance: int64[m] what a part belongs to: a GPU event, or a row of the trace; Python code between two outermost
            operators or calls is one, −1 − its number. whole: number of first parts that are an instance each.
    """

    step: Int64
    source: Int64
    begin: Int64
    ns: Int64
    instance: Int64
    whole: int


@dataclass(frozen=True, kw_only=True)
class Totals:
    """Time of sources in steps, on the path or off it, m rows.

    Attributes:
        step: int64[m] position. source: int64[m], see `Sources`. ns: int64[m]. count: int8[m] 1 where an instance
            begins, else 0.
    """

    step: Int64
    source: Int64
    ns: Int64
    count: NDArray[np.int8]


def on_path(sources: Sources, path: CriticalPath) -> tuple[PathParts, list[Totals]]:
    """(the parts of the path, the time of what is no work of its own: all of it counts as on the path)."""
    columns, totals = [], []
    firsts = (EVENT, sources.event), (QUEUED, sources.queue), (BETWEEN, sources.between), (UNKNOWN, sources.unknown)
    for what, first in firsts:
        some = np.flatnonzero(path.what == what)
        owner = np.maximum(path.owner[some], 0)
        ns, step = path.end[some] - path.start[some], path.step[some]
        columns.append((step, first + owner, path.start[some], ns, owner))
        if what != EVENT:
            totals.append(Totals(step=step, source=first + owner, ns=ns, count=np.ones(len(some), np.int8)))
    whole = sum(len(step) for step, *_ in columns)
    step, source, begin, ns, instance, waits = _on_host(sources, path)
    columns.append((step, source, begin, ns, instance))
    waiting = np.flatnonzero(waits)
    totals.append(
        Totals(step=step[waiting], source=source[waiting], ns=ns[waiting], count=np.zeros(len(waiting), np.int8))
    )
    step, source, begin, ns, instance = (np.concatenate(c) for c in zip(*columns, strict=True))
    return PathParts(step=step, source=source, begin=begin, ns=ns, instance=instance, whole=whole), totals


def _on_host(sources: Sources, path: CriticalPath) -> tuple[Int64, Int64, Int64, Int64, Int64, NDArray[np.bool_]]:
    """(step, source, begin, ns, instance, whether it is a call that may wait) of the parts on the host."""
    context, parts, scopes = sources.context, path.on_host, sources.scopes[0]
    ops, nothing = context.lanes["ops"], sources.nothing
    step, begin, ns = path.step[parts.span], parts.begin, parts.ns
    source = np.where(parts.row >= 0, parts.row, nothing)
    if len(scopes.times) > 1:
        part, held, ns = cut(begin, begin + ns, scopes.times)
        step, begin = step[part], np.maximum(begin[part], scopes.times[held])
        source = np.where(scopes.rows[held] >= 0, scopes.rows[held], source[part])
    is_op = sources.is_op(source)
    roots = np.sort(ops.start[ops.depth == 0])
    instance = np.where(is_op, source, -1 - np.searchsorted(roots, begin, side="right"))
    waits = np.zeros(len(source), bool)
    waits[is_op] = sources.waits[context.calls.position[source[is_op]]]
    return step, source, begin, ns, instance, waits


def of_steps(sources: Sources, path: CriticalPath) -> list[Totals]:
    """The work of each step, on the path or off it: the GPU events that it launched, and what the host did from its
    start to the next's: operators and calls of every thread by their self time, without those that wait for the GPU,
    which is no work; Python and scopes of the host as one thread.
    """
    gpu, edges = sources.context.gpu, _host_edges(sources.context.steps)
    events = sources.event + np.arange(len(gpu.rows))
    own, others = np.flatnonzero(gpu.step >= 0), np.flatnonzero(gpu.step < 0)
    whole = overlaid(sources.scopes[0], path.outside_ops)
    begins = np.append(True, (np.diff(whole.rows) != 0) | (whole.rows[1:] < sources.scope))  # a scope counts once
    times, source = whole.times[begins], np.where(whole.rows >= 0, whole.rows, sources.nothing)[begins]
    aside = np.flatnonzero(~sources.is_op(source[1:-1])) + 1  # before the first and after the last nothing is known
    return [
        Totals(step=gpu.step[own], source=events[own], ns=(gpu.end - gpu.start)[own], count=np.ones(len(own), np.int8)),
        _cut(gpu.start[others], gpu.end[others], events[others], sources.context.completions, counted=True),
        _cut(times[aside], times[aside + 1], source[aside], edges, counted=True),
        *_of_operators(sources, edges),
    ]


def _host_edges(steps: Steps) -> Int64:
    """int64[s + 1] ns: the start of each step, and the end of the last."""
    edges: Int64 = np.maximum.accumulate(np.append(steps.own_start, steps.end.max()))
    return edges


def _of_operators(sources: Sources, edges: Int64) -> tuple[Totals, Totals]:
    """Of operators and calls outside of `scopes`, where they begin; and of those that a border of a step or scope
    divides.
    """
    ops, scopes = sources.context.lanes["ops"], sources.scopes[0]
    borders = np.concatenate(([ALWAYS], np.unique(np.concatenate((edges, scopes.times[1:])))))
    step = np.searchsorted(edges, borders, side="right") - 1
    counts = (step >= 0) & (step < len(edges) - 1) & (scopes.rows_at(borders) < 0)
    first = np.searchsorted(borders, ops.start, side="right") - 1
    divided = first != np.searchsorted(borders, ops.end, side="left") - 1
    begun = np.flatnonzero(counts[first])
    within = Totals(
        step=step[first[begun]],
        source=ops.rows[begun],
        ns=np.where(divided | sources.waits, 0, ops.self_ns)[begun],
        count=np.ones(len(begun), np.int8),
    )
    start, end, position = pieces(ops, divided & ~sources.waits)
    piece, held, ns = cut(start, end, scopes.times)
    outside = np.flatnonzero(scopes.rows[held] < 0)
    piece, begin, ns = piece[outside], np.maximum(start[piece], scopes.times[held])[outside], ns[outside]
    return within, _cut(begin, begin + ns, ops.rows[position[piece]], edges)


def _cut(start: Int64, end: Int64, source: Int64, edges: Int64, *, counted: bool = False) -> Totals:
    """Spans cut at ``edges``; parts beyond them are left out, and a span counts where it begins."""
    span, step, ns = cut(start, end, edges)
    inside = np.flatnonzero((step >= 0) & (step < len(edges) - 1))
    span, step = span[inside], step[inside]
    count = (start[span] >= edges[step]) & counted
    return Totals(step=step, source=source[span], ns=ns[inside], count=count.astype(np.int8))
