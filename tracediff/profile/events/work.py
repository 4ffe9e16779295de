"""The work of the kernel account: GPU events by the call that launched them, or without a GPU the self time of
operators.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from tracediff.arrays import Int64, combined, least, ordinals, sums
from tracediff.ingest.model import categories as cat
from tracediff.ingest.model.health import Notes
from tracediff.ingest.model.trace import Trace
from tracediff.profile.model.profile import WorkTable
from tracediff.profile.perf_model.recorded_sizes import message_bytes
from tracediff.profile.placement.calls import OP, Calls
from tracediff.profile.placement.gpu_events import GpuEvents
from tracediff.profile.placement.nesting import Lane
from tracediff.profile.placement.steps import Steps
from tracediff.runtimes import ARGUMENT, is_communication

UNMATCHED = -1
"""Ordinal of work that is kept out of matching."""


class WorkKeys(Struct, frozen=True, kw_only=True):
    """What identifies work, see `WorkTable`: int64[n] columns of GPU events, or of the scopes of the ops lane."""

    node: Int64
    category: Int64
    name: Int64
    launch_shape: Int64
    ordinal: Int64

    def columns(self, positions: Int64) -> dict[str, Int64]:
        """The columns at ``positions``."""
        return {name: getattr(self, name)[positions] for name in KEY}


KEY = WorkKeys.__struct_fields__


def operator_keys(trace: Trace, ops: Lane, calls: Calls) -> WorkKeys:
    """The keys of operators by their position in the ops lane."""
    category, name = _codes(trace, ops.rows)
    none = np.full(len(ops.rows), -1, np.int64)
    return WorkKeys(node=calls.node, category=category, name=name, launch_shape=none, ordinal=none + 1)


def kernel_work(
    trace: Trace,
    gpu: GpuEvents,
    ops: Lane,
    calls: Calls,
    captured_node: Int64,
    periods: Int64,
    notes: Notes,
    texts: int,
) -> tuple[WorkTable, WorkKeys, list[str]]:
    """(the GPU events of the file, their keys, the grids and blocks that `launch_shape` refers to).

    Args:
        captured_node: int64[g] see `Context`. periods: int64[steps] ns. texts: number of texts before the grids.
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
    shape, launch_shapes = _launch_shapes(trace, rows)
    stream = trace.integer_column(ARGUMENT.stream, cat.GPU)[rows]
    place = np.lexsort((gpu.start, stream, gpu.device))
    category, name = _codes(trace, rows)
    ordinal = np.zeros(len(rows), np.int64)
    bare = place[((gpu.step >= 0) & ~(op & (node >= 0)))[place]]
    equal, _ = combined(gpu.step[bare], node[bare], category[bare], name[bare], shape[bare])
    ordinal[bare] = ordinals(equal)
    ordinal[long] = UNMATCHED
    shape = np.where(shape >= 0, shape + texts, -1)
    keys = WorkKeys(node=node, category=category, name=name, launch_shape=shape, ordinal=ordinal)
    around = np.where(launched >= 0, ops.parent[launched], -1) if len(ops.rows) else launched
    records = np.where(around >= 0, ops.rows[around], -1) if len(ops.rows) else around
    moved = trace.integer_column(ARGUMENT.size, (cat.MEMCPY, cat.MEMSET), 0)[rows]
    moved = moved + message_bytes(trace, rows, np.where(trace.named(is_communication)[rows], records, -1))
    table = _table(gpu.step, keys, place=place, start=gpu.start, lane=stream, ns=ns, moved=moved)
    return table, keys, launch_shapes


def host_work(trace: Trace, steps: Steps, ops: Lane, calls: Calls) -> tuple[WorkTable, list[str]]:
    """(the self time of the operators in the steps of a file without GPU events, the thread ids that `lane` refers to);
    wrappers count as no work.
    """
    positions = np.flatnonzero(calls.operator)
    step = steps.positions_at(ops.start[positions])
    positions, step = positions[step >= 0], step[step >= 0]
    threads, lane = np.unique(trace.tid[ops.rows[positions]], return_inverse=True)
    start = ops.start[positions]
    keys = WorkKeys(**operator_keys(trace, ops, calls).columns(positions))
    place, lane = np.lexsort((start,)), lane.astype(np.int64)
    nothing = np.zeros(len(positions), np.int64)
    table = _table(step, keys, place=place, start=start, lane=lane, ns=ops.self_ns[positions], moved=nothing)
    return table, [str(trace.ids[code]) for code in threads.tolist()]


def _table(
    step: Int64, keys: WorkKeys, *, place: Int64, start: Int64, lane: Int64, ns: Int64, moved: Int64
) -> WorkTable:
    """Rows with equal keys summed; ``place`` sorts the events within their step."""
    order = np.empty(len(place), np.int64)
    order[place] = ordinals(step[place])
    code, first = combined(step + 1, *keys.columns(np.arange(len(step))).values())
    rows = len(first)
    first_ns = least(code, start, rows)
    earliest = np.flatnonzero(start == first_ns[code])
    return WorkTable(
        step=step[first],
        **keys.columns(first),
        order=least(code, order, rows),
        first_ns=first_ns,
        lane=least(code[earliest], lane[earliest], rows),
        count=np.bincount(code, minlength=rows).astype(np.int64),
        total_ns=sums(code, ns, rows),
        size=sums(code, np.maximum(moved, 0), rows),
    )


def _codes(trace: Trace, rows: Int64) -> tuple[Int64, Int64]:
    """(category, name) of events."""
    return trace.category[rows].astype(np.int64), trace.name[rows].astype(np.int64)


def empty_work() -> WorkTable:
    """No work at all."""
    return WorkTable(**{name: np.zeros(0, np.int64) for name in WorkTable.__struct_fields__})


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
