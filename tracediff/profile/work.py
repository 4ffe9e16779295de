"""The work of the kernel account: GPU events by the call that launched them, or without a GPU the self time of
operators.
"""

from __future__ import annotations

from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from tracediff.ingest import categories as cat
from tracediff.ingest.health import Notes
from tracediff.ingest.times import Int64
from tracediff.ingest.trace import Trace
from tracediff.profile.arrays.factorize import combined, ordinals
from tracediff.profile.model import WorkTable
from tracediff.profile.placement.calls import OP, Calls
from tracediff.profile.placement.gpu_events import GpuEvents
from tracediff.profile.placement.nesting import Lane
from tracediff.profile.placement.steps import Steps
from tracediff.runtimes import ARGUMENT

UNMATCHED = -1
"""Ordinal of work that is kept out of matching."""


def kernel_work(
    trace: Trace, gpu: GpuEvents, calls: Calls, captured_node: Int64, periods: Int64, notes: Notes
) -> tuple[WorkTable, list[str]]:
    """(the GPU events of the file, the grids and blocks that `launch_shape` refers to).

    Args:
        captured_node: int64[g] see `Context`. periods: int64[steps] ns.
    """
    rows = gpu.rows
    ns = gpu.end - gpu.start
    long = (gpu.step >= 0) & (ns > periods[np.maximum(gpu.step, 0)]) if len(periods) else np.zeros(len(rows), bool)
    notes.add(
        "long-kernels",
        "GPU events last longer than the period of the step that launched them: kept out of matching",
        int(long.sum()),
    )
    launched = np.where(gpu.launch >= 0, calls.position[gpu.launch], -1)
    placed = (launched >= 0) & (gpu.step >= 0)
    node = np.where(placed, calls.node[launched] if len(calls.node) else -1, -1)
    node = np.where(placed & (captured_node >= 0), captured_node, node)
    op = calls.table.kind[node] == OP if len(calls.table.kind) else np.zeros(len(rows), bool)
    shape, texts = _launch_shapes(trace, rows)
    stream = trace.integer_column(ARGUMENT.stream, cat.GPU)[rows]
    place = np.lexsort((gpu.start, stream, gpu.device))
    category, name = _codes(trace, rows)
    table = _table(
        step=gpu.step,
        node=node,
        has_op=op & (node >= 0),
        category=category,
        name=name,
        launch_shape=shape,
        place=place,
        start=gpu.start,
        lane=stream,
        ns=ns,
        unmatched=long,
    )
    return table, texts


def host_work(trace: Trace, steps: Steps, ops: Lane, calls: Calls) -> tuple[WorkTable, list[str]]:
    """(the self time of the operators in the steps of a file without GPU events, the thread ids that `lane` refers to);
    wrappers count as no work.
    """
    positions = np.flatnonzero(calls.operator)
    step = steps.positions_at(ops.start[positions])
    positions, step = positions[step >= 0], step[step >= 0]
    rows = ops.rows[positions]
    none = np.full(len(positions), -1, np.int64)
    place = np.lexsort((ops.start[positions],))
    category, name = _codes(trace, rows)
    threads, lane = np.unique(trace.tid[rows], return_inverse=True)
    table = _table(
        step=step,
        node=calls.node[positions],
        has_op=calls.operator[positions],
        category=category,
        name=name,
        launch_shape=none,
        place=place,
        start=ops.start[positions],
        lane=lane.astype(np.int64),
        ns=ops.self_ns[positions],
        unmatched=np.zeros(len(positions), bool),
    )
    return table, [str(trace.ids[code]) for code in threads.tolist()]


def _table(
    *,
    step: Int64,
    node: Int64,
    has_op: NDArray[np.bool_],
    category: Int64,
    name: Int64,
    launch_shape: Int64,
    place: Int64,
    start: Int64,
    lane: Int64,
    ns: Int64,
    unmatched: NDArray[np.bool_],
) -> WorkTable:
    """Rows with equal keys summed; ``place`` sorts the events within their step, ``has_op`` marks the events below an
    operator.
    """
    order = np.empty(len(place), np.int64)
    order[place] = ordinals(step[place])
    ordinal = np.zeros(len(step), np.int64)
    bare = place[((step >= 0) & ~has_op)[place]]
    equal, _ = combined(step[bare], node[bare], category[bare], name[bare], launch_shape[bare])
    ordinal[bare] = ordinals(equal)
    ordinal[unmatched] = UNMATCHED
    code, first = combined(step + 1, node, category, name, launch_shape, ordinal)
    earliest = np.full(len(first), np.iinfo(np.int64).max, np.int64)
    np.minimum.at(earliest, code, order)
    first_ns, first_lane = (np.full(len(first), np.iinfo(np.int64).max, np.int64) for _ in range(2))
    np.minimum.at(first_ns, code, start)
    earliest_events = np.flatnonzero(start == first_ns[code])
    np.minimum.at(first_lane, code[earliest_events], lane[earliest_events])
    total = np.zeros(len(first), np.int64)
    np.add.at(total, code, ns)
    count = np.bincount(code, minlength=len(first)).astype(np.int64)
    return WorkTable(
        step=step[first],
        node=node[first],
        category=category[first],
        name=name[first],
        launch_shape=launch_shape[first],
        ordinal=ordinal[first],
        order=earliest,
        first_ns=first_ns,
        lane=first_lane,
        count=count,
        total_ns=total,
    )


def _codes(trace: Trace, rows: Int64) -> tuple[Int64, Int64]:
    """(category, name) of events."""
    return trace.category[rows].astype(np.int64), trace.name[rows].astype(np.int64)


def empty_work() -> WorkTable:
    """No work at all."""
    return WorkTable(**{column.name: np.zeros(0, np.int64) for column in fields(WorkTable)})


def _launch_shapes(trace: Trace, rows: Int64) -> tuple[Int64, list[str]]:
    """(code of grid and block, −1 where not recorded; the texts that the codes index)."""
    grid, block = (trace.text_column(a, cat.KERNEL)[rows].astype(np.int64) for a in (ARGUMENT.grid, ARGUMENT.block))
    kernels = np.flatnonzero((grid >= 0) | (block >= 0))
    code, first = combined(grid[kernels], block[kernels])
    out = np.full(len(rows), -1, np.int64)
    out[kernels] = code
    text = ["?", *trace.texts]
    return out, [
        f"{text[g + 1]} × {text[b + 1]}"
        for g, b in zip(grid[kernels][first].tolist(), block[kernels][first].tolist(), strict=True)
    ]
