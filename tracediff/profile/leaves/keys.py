"""What a part of a period belongs to: a leaf, by its key (`LeafTable`)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tracediff.ingest import categories as cat
from tracediff.ingest.times import Int64
from tracediff.ingest.trace import Trace
from tracediff.profile.arrays.intervals import union
from tracediff.profile.context import Context
from tracediff.profile.placement.calls import operators_around
from tracediff.profile.placement.innermost import NOTHING, Painting, overlaid, painted
from tracediff.profile.placement.python_callers import outside_torch
from tracediff.profile.work import KEY, WorkKeys
from tracediff.runtimes import is_synchronising, may_wait

KINDS = ("gpu", "queue", "op", "call", "sync", "loading", "compiling", "python", "unknown")
GPU, QUEUE, OP, CALL, SYNC, LOADING, COMPILING, PYTHON, UNKNOWN = range(len(KINDS))
COLUMNS = ("kind", *KEY, "op", "root")

LOADER, COMPILER, CAPTURE = "DataLoader", "(dynamo_timed)", "CUDAGraphNode.record"
"""In the names of scopes: of a DataLoader, of a part of compilation, and of the capture of a CUDA graph within one."""


@dataclass(frozen=True)
class Sources:
    """What a part of a period can be charged to, as one number: a row of the trace, and from these numbers on nothing
    recorded, a GPU event, its queue, time before a GPU event whose launch is not in the file, and a scope.
    """

    context: Context

    @property
    def nothing(self) -> int:
        """Of the host where nothing is recorded."""
        return len(self.context.trace)

    @property
    def event(self) -> int:
        """Of the first GPU event."""
        return self.nothing + 1

    @property
    def queue(self) -> int:
        """Of the queue of the first GPU event."""
        return self.event + len(self.context.gpu.rows)

    @property
    def unknown(self) -> int:
        """Of time before a GPU event whose launch is not in the file."""
        return self.queue + len(self.context.gpu.rows)

    @property
    def scope(self) -> int:
        """Of the first of `scopes`."""
        return self.unknown + 1

    @cached_property
    def end(self) -> int:
        """After the last of all."""
        return self.scope + len(self.scopes[1])

    @cached_property
    def is_op(self) -> NDArray[np.bool_]:
        """bool[end]: operators and calls."""
        out = np.zeros(self.end, bool)
        out[self.context.lanes["ops"].rows] = True
        return out

    @cached_property
    def waits(self) -> NDArray[np.bool_]:
        """bool[end]: calls that may wait for the GPU."""
        trace, rows = self.context.trace, self.context.lanes["ops"].rows
        out = np.zeros(self.end, bool)
        out[rows] = (trace.named(may_wait)[rows]) & (trace.category[rows] != cat.CPU_OP)
        return out

    @cached_property
    def scopes(self) -> tuple[Painting, Int64, Int64]:
        """(painting, kind, code of the name) of the scopes that hold whatever happens in them: where a DataLoader loads,
        and where torch.compile works, by its outermost scope and the capture of a graph.
        """
        return _scopes(self.context.trace, self.scope)

    def keys(self, sources: Int64, work: WorkKeys) -> dict[str, Int64]:
        """The columns of the keys of ``sources``.

        Args:
            work: of the GPU events or, without a GPU, of the operators by their position in the lane.
        """
        context, trace = self.context, self.context.trace
        out = {name: np.full(len(sources), -1, np.int64) for name in COLUMNS}
        events = np.flatnonzero((sources >= self.event) & (sources < self.queue))
        queues = np.flatnonzero((sources >= self.queue) & (sources < self.unknown))
        scopes = np.flatnonzero(sources >= self.scope)
        rows = np.flatnonzero(sources <= self.nothing)
        for name, column in work.columns(sources[events] - self.event).items() if len(events) else ():
            out[name][events] = column
        launch = context.gpu.launch[sources[queues] - self.queue]
        _, kind, name = self.scopes
        out["kind"][events], out["kind"][queues], out["kind"][sources == self.unknown] = GPU, QUEUE, UNKNOWN
        out["name"][queues] = np.where(launch >= 0, trace.name[launch], -1)
        out["kind"][scopes], out["name"][scopes] = (c[sources[scopes] - self.scope] for c in (kind, name))
        for name, column in self._of_rows(sources[rows], work).items():
            out[name][rows] = column
        return out

    def _of_rows(self, row: Int64, work: WorkKeys) -> dict[str, Int64]:
        """The columns of what the host does in each of ``row``; rows of no operator or call are Python."""
        context, trace, ops = self.context, self.context.trace, self.context.lanes["ops"]
        out = {name: np.full(len(row), -1, np.int64) for name in COLUMNS}
        out["kind"][:] = PYTHON
        caller = outside_torch(context.trace, context.lanes["python"])[row]
        out["name"] = np.where(caller >= 0, trace.name[caller], -1)
        position = np.append(context.calls.position, -1)[row]
        here = np.flatnonzero(position >= 0)
        position, row = position[here], row[here]
        is_call = np.isin(trace.category[row], cat.CALLS)
        out["kind"][here] = np.where(is_call, np.where(trace.named(is_synchronising)[row], SYNC, CALL), OP)
        out["name"][here] = trace.name[row]
        for name, around in zip(("op", "root"), operators_around(ops, context.calls.operator), strict=True):
            found = around[position]
            out[name][here] = np.where(found >= 0, trace.name[ops.rows[found]], -1)
        if not len(context.gpu.rows):
            counted = context.calls.operator[position]
            for name, column in work.columns(position[counted]).items():
                out[name][here[counted]] = column
        return out


def _scopes(trace: Trace, first: int) -> tuple[Painting, Int64, Int64]:
    rows = np.flatnonzero(np.isin(trace.category, cat.HOST) & (trace.dur > 0))
    compiles = trace.named(lambda name: COMPILER in name)[rows]
    captures = compiles & trace.named(lambda name: CAPTURE in name)[rows]
    loads = trace.named(lambda name: LOADER in name)[rows] & (trace.category[rows] == cat.ANNOTATION)
    painting, kinds, names = NOTHING, [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for kind, some in ((LOADING, rows[loads]), (COMPILING, rows[captures]), (COMPILING, rows[compiles & ~captures])):
        some = some[np.lexsort((-trace.dur[some], trace.ts[some]))]
        spans = union(trace.ts[some], trace.ts[some] + trace.dur[some])
        outermost = some[np.searchsorted(trace.ts[some], spans.start, side="left")]
        number = first + sum(map(len, names)) + np.arange(len(outermost))
        painting = overlaid(painting, painted(spans.start, spans.end, number))
        kinds.append(np.full(len(outermost), kind))
        names.append(trace.name[outermost] if kind == COMPILING else np.full(len(outermost), -1))
    return painting, np.concatenate(kinds), np.concatenate(names).astype(np.int64)
