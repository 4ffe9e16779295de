"""The work of the kernel account: GPU events by the call that launched them, or without a GPU the self time of
operators.
"""

import numpy as np

from tracediff.arrays import (
    Int64,
    all_none,
    combined,
    least,
    ordinals,
    sorted_by,
    stable_order,
    sums,
    tuples,
    values_at,
    zeros,
)
from tracediff.ingest.model import categories as cat
from tracediff.ingest.model.health import Notes
from tracediff.ingest.model.trace import EventSpans
from tracediff.profile.events.context import Context
from tracediff.profile.model.columns import no_rows
from tracediff.profile.model.profile import WorkTable
from tracediff.profile.perf_model.recorded_sizes import message_bytes
from tracediff.profile.placement.calls import OP
from tracediff.profile.placement.gpu_events import COMMUNICATES, GpuEvents
from tracediff.runtimes import ARGUMENT

UNMATCHED = -1
"""Ordinal of work that is kept out of matching."""


KEY = ("node", "category", "name", "launch_shape", "ordinal")
"""What identifies work, see `WorkTable`."""
WorkKeys = dict[str, Int64]
"""Each of KEY as int64[n]: of GPU events or, in a file without, of the scopes of the ops lane."""


def keys_at(keys: WorkKeys, positions: Int64) -> WorkKeys:
    """``keys`` at ``positions``."""
    return {name: column[positions] for name, column in keys.items()}


def work_keys(context: Context, notes: Notes, texts: list[str]) -> WorkKeys:
    """The keys of a file's work. Grids and blocks, which `launch_shape` refers to, are added to ``texts``."""
    if len(context.gpu.rows):
        return _kernel_keys(context, notes, texts)
    none = all_none(len(context.ops.rows))
    return _keys(context.ops, node=context.calls.node.astype(np.int64), launch_shape=none, ordinal=none + 1)


def _keys(events: EventSpans, *, node: Int64, launch_shape: Int64, ordinal: Int64) -> WorkKeys:
    category, name = (column.astype(np.int64) for column in (events.category, events.name))
    return dict(zip(KEY, (node, category, name, launch_shape, ordinal), strict=True))


def _kernel_keys(context: Context, notes: Notes, texts: list[str]) -> WorkKeys:
    gpu, calls = context.gpu, context.calls
    shape = _launch_shapes(gpu, texts)
    in_step = gpu.step >= 0
    node = np.where(in_step, context.launching_node, -1)
    keys = _keys(gpu, node=node, launch_shape=shape, ordinal=zeros(len(node)))
    is_op = (node >= 0) & (calls.table.kind[node] == OP)
    bare = _in_order(context, np.flatnonzero(in_step & ~is_op))
    equal, _ = combined(gpu.step[bare], *keys_at(keys, bare).values())
    keys["ordinal"][bare] = ordinals(equal)
    long = in_step & (gpu.ns > np.diff(context.completions)[np.maximum(gpu.step, 0)])
    keys["ordinal"][long] = UNMATCHED
    notes.add(
        "long-kernels",
        "GPU events last longer than the period of the step that launched them: kept out of matching",
        long.sum(),
    )
    return keys


def _in_order(context: Context, events: Int64) -> Int64:
    """GPU ``events`` by device, stream and start."""
    gpu = context.gpu
    return sorted_by(events, gpu.start, gpu.stream, gpu.device)


def kernel_work(context: Context, keys: WorkKeys) -> WorkTable:
    """The GPU events of the file by their ``keys``; empty where it has none."""
    trace, gpu, ops = context.trace, context.gpu, context.ops
    if not len(gpu.rows):
        return no_rows(WorkTable)
    around = values_at(ops.parent, context.calls.position[gpu.launch])
    records = np.where(gpu.state == COMMUNICATES, values_at(ops.rows, around), -1)
    moved = trace.integer_column(ARGUMENT.size, cat.MEMCPY, cat.MEMSET, missing=0)[gpu.rows]
    return _table(
        gpu.step,
        keys,
        place=_in_order(context, np.arange(len(gpu.rows))),
        start=gpu.start,
        lane=gpu.stream,
        ns=gpu.ns,
        moved=moved + message_bytes(trace, gpu.rows, records),
    )


def host_work(context: Context, keys: WorkKeys, texts: list[str]) -> WorkTable:
    """The self time of the operators in the steps of a file without GPU events by their ``keys``, else empty; wrappers
    count as no work. The ids of threads, which `lane` refers to, are added to ``texts``.
    """
    trace, ops = context.trace, context.ops
    if len(context.gpu.rows):
        return no_rows(WorkTable)
    positions = np.flatnonzero(context.calls.operator)
    step = context.steps.positions_at(ops.start[positions])
    positions, step = positions[step >= 0], step[step >= 0]
    threads, lane = np.unique(trace.tid[ops.rows[positions]], return_inverse=True)
    lane = lane.astype(np.int64) + len(texts)
    texts += [str(trace.ids[code]) for code in threads.tolist()]
    start = ops.start[positions]
    place, nothing = stable_order(start), zeros(len(positions))
    keys = keys_at(keys, positions)
    return _table(step, keys, place=place, start=start, lane=lane, ns=ops.self_ns[positions], moved=nothing)


def _table(
    step: Int64, keys: WorkKeys, *, place: Int64, start: Int64, lane: Int64, ns: Int64, moved: Int64
) -> WorkTable:
    """Rows with equal keys summed; ``place`` sorts the events within their step."""
    order = np.empty(len(place), np.int64)
    order[place] = ordinals(step[place])
    code, first = combined(step + 1, *keys.values())
    rows = len(first)
    first_ns = least(code, start, rows)
    earliest = np.flatnonzero(start == first_ns[code])
    return WorkTable(
        step=step[first],
        **keys_at(keys, first),
        order=least(code, order, rows),
        first_ns=first_ns,
        lane=least(code[earliest], lane[earliest], rows),
        count=sums(code, 1, rows),
        total_ns=sums(code, ns, rows),
        size=sums(code, np.maximum(moved, 0), rows),
    )


def _launch_shapes(gpu: GpuEvents, texts: list[str]) -> Int64:
    """Code of grid and block, which are added to ``texts``; −1 where not recorded."""
    trace = gpu.trace
    grid, block = (trace.text_column(a, cat.KERNEL)[gpu.rows] for a in (ARGUMENT.grid, ARGUMENT.block))
    kernels = np.flatnonzero((grid >= 0) | (block >= 0))
    code, first = combined(grid[kernels], block[kernels])
    out = all_none(len(grid))
    out[kernels] = code + len(texts)
    text = ["?", *trace.texts]
    for g, b in tuples(grid[kernels][first], block[kernels][first]):
        texts.append(f"{text[g + 1]} × {text[b + 1]}")
    return out
