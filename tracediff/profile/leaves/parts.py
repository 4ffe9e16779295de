"""Parts of the periods: what the critical path was charged to, and all that ran."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np

from tracediff.ingest.times import Int64
from tracediff.profile.analyses.critical_path import EVENT, HOST, QUEUED, UNKNOWN, WHOLE, CriticalPath
from tracediff.profile.leaves.keys import Sources
from tracediff.profile.placement.innermost import Painting, Pieces, cut, overlaid


@dataclass(frozen=True, kw_only=True)
class Parts:
    """Parts of periods, m of them.

    Attributes:
        step: int64[m] position. source: int64[m], see `Sources`.
        path, total: int64[m] ns on the path, and in the period. count: int64[m] 1 where an instance begins, else 0.
        instance: int64[m] what a part on the path belongs to: a GPU event, or a row of the trace; Python code between
            two outermost operators or calls is one, −1 − its number. begin: int64[m] ns.
    """

    step: Int64
    source: Int64
    path: Int64
    total: Int64
    count: Int64
    instance: Int64
    begin: Int64


def all_parts(sources: Sources, path: CriticalPath, of_ops: Pieces) -> Parts:
    """The parts of every period of a file, on the path and off it."""
    parts = [*_on_gpu(sources, path), *_on_path(sources, path), *_on_host(sources, path, of_ops)]
    return Parts(**{f.name: np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(Parts)})


def _parts(step: Int64, source: Int64, begin: Int64, **values: Int64) -> Parts:
    """Those of ``values`` that are not given are 0."""
    return Parts(
        step=step,
        source=source,
        begin=begin,
        **{name: np.zeros(len(step), np.int64) for name in UNSET - values.keys()},
        **values,
    )


UNSET = {"path", "total", "count", "instance"}


def _on_gpu(sources: Sources, path: CriticalPath) -> Iterator[Parts]:
    """GPU events, and on the path their time in queues; a queue is no work, so all of it counts as on the path."""
    gpu, edges = sources.context.gpu, sources.context.completions
    yield from _in_period(gpu.start, gpu.end, sources.event + np.arange(len(gpu.rows)), edges, counted=True)
    ns = path.end - path.start
    for what, first in ((EVENT, sources.event), (QUEUED, sources.queue), (UNKNOWN, sources.unknown)):
        some = np.flatnonzero(path.what == what)
        owner = np.maximum(path.owner[some], 0)
        waited = {} if what == EVENT else {"total": ns[some], "count": np.ones(len(some), np.int64)}
        yield _parts(path.step[some], first + owner, path.start[some], path=ns[some], instance=owner, **waited)


def _on_path(sources: Sources, path: CriticalPath) -> Iterator[Parts]:
    """The host on the path."""
    ops = sources.context.lanes["ops"]
    roots = np.sort(ops.start[ops.depth == 0])
    for thread, painting in path.paintings.items():
        shown = overlaid(sources.scopes[0], painting)
        some = np.flatnonzero((path.what == HOST) & (path.owner == thread))
        span, held, ns = cut(path.start[some], path.end[some], shown.times)
        source = _or_nothing(shown, sources)[held]
        begin = np.maximum(path.start[some][span], shown.times[held])
        gap = -1 - np.searchsorted(roots, begin, side="right")
        instance = np.where(sources.is_op[source], source, gap)
        waits = np.where(sources.waits[source], ns, 0)
        yield _parts(path.step[some][span], source, begin, path=ns, instance=instance, total=waits)


def _on_host(sources: Sources, path: CriticalPath, of_ops: Pieces) -> Iterator[Parts]:
    """All that the host did: operators and calls of every thread by their self time, without those that wait for the
    GPU, which is no work; Python and scopes of the host as one thread.
    """
    context = sources.context
    ops, edges = context.lanes["ops"], context.completions
    scopes = sources.scopes[0]
    whole = overlaid(scopes, path.paintings[WHOLE])
    ends = np.append(whole.times[1:], max(int(edges[-1]), int(whole.times[-1])))
    source = _or_nothing(whole, sources)
    aside = np.flatnonzero(~sources.is_op[source])
    yield from _in_period(np.maximum(whole.times, edges[0])[aside], ends[aside], source[aside], edges, counted=True)
    start, end, position = of_ops
    working = np.flatnonzero(~sources.waits[ops.rows[position]] & (scopes.rows_at(start) < 0))
    yield from _in_period(start[working], end[working], ops.rows[position[working]], edges)
    begun = np.flatnonzero((ops.start >= edges[0]) & (ops.start < edges[-1]) & (scopes.rows_at(ops.start) < 0))
    step = np.searchsorted(edges, ops.start[begun], side="right") - 1
    yield _parts(step, ops.rows[begun], ops.start[begun], count=np.ones(len(begun), np.int64))


def _in_period(start: Int64, end: Int64, source: Int64, edges: Int64, *, counted: bool = False) -> Iterator[Parts]:
    """Spans cut into periods; parts outside every period are left out, and a span counts where it begins."""
    span, step, ns = cut(start, end, edges)
    inside = np.flatnonzero((step >= 0) & (step < len(edges) - 1))
    span, step = span[inside], step[inside]
    count = (start[span] >= edges[step]) & counted
    yield _parts(step, source[span], start[span], total=ns[inside], count=count.astype(np.int64))


def _or_nothing(painting: Painting, sources: Sources) -> Int64:
    return np.where(painting.rows >= 0, painting.rows, sources.nothing)
