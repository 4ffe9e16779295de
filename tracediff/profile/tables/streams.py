"""Streams: how busy each GPU stream is, and how long launched work waits while other streams run."""

from __future__ import annotations

import numpy as np

from tracediff.ingest import categories as cat
from tracediff.ingest.times import MISSING, Int64
from tracediff.profile.arrays.busy import busy_ns
from tracediff.profile.arrays.intervals import Intervals, union
from tracediff.profile.context import Context
from tracediff.profile.model import TableRows
from tracediff.profile.placement.gpu_events import GpuEvents, gpu_names
from tracediff.profile.tables.schema import Column, Rate, TableSchema, summed
from tracediff.runtimes import ARGUMENT

ALL = "all streams"

SCHEMA = TableSchema(
    "streams",
    "Streams",
    "GPU events by stream. Busy: the union of their intervals; sum: the sum of their durations. “All streams” has both "
    "for the whole GPU. Behind others: launched work waits although its stream is idle, while another stream of the "
    "GPU runs.",
    keys=("gpu", "stream"),
    columns=(
        Column("busy", "busy"),
        Column("sum", "sum"),
        Column("behind", "behind others"),
        Column("events", "events", "count"),
    ),
    rates=(Rate("concurrency", "sum / busy", "sum", "busy"),),
)


def table(context: Context) -> TableRows:
    """Rows by GPU and stream, and for all streams of each GPU; an event counts in the step that launched it."""
    gpu, steps = context.gpu, len(context.steps)
    stream = context.trace.integer_column(ARGUMENT.stream, cat.GPU)[gpu.rows]
    launched = np.where(gpu.launch >= 0, context.trace.ts[gpu.launch] + context.trace.dur[gpu.launch], gpu.start)
    gpus, streams, parts = [], [], [np.zeros((0, 4), np.int64)]
    for device, gpu_name in gpu_names(gpu).items():
        on_device = np.flatnonzero(gpu.device == device)
        running = union(gpu.start[on_device], gpu.end[on_device])
        each = {
            str(s) if s != MISSING else "unknown": on_device[stream[on_device] == s]
            for s in np.unique(stream[on_device]).tolist()
        }
        for name, which in {ALL: on_device, **each}.items():
            gpus.append(gpu_name)
            streams.append(name)
            parts.append(_of_stream(gpu, which, launched, running, steps))
    values = np.concatenate(parts)
    place, step = np.divmod(np.arange(len(values)), max(steps, 1))
    used = np.flatnonzero(values[:, -1])
    return summed(step[used], [(place[used], gpus), (place[used], streams)], list(values[used].T))


def _of_stream(gpu: GpuEvents, which: Int64, launched: Int64, running: Intervals, steps: int) -> Int64:
    """int64[steps, 4]: busy, sum, behind others and events of the events ``which`` of a stream; ``running`` is when any
    stream of the GPU runs.
    """
    which = which[np.lexsort((gpu.step[which], launched[which], gpu.end[which], gpu.start[which]))]
    start, end, step = gpu.start[which], gpu.end[which], gpu.step[which]
    free = np.concatenate(
        ([np.iinfo(np.int64).min], np.maximum.accumulate(end)[:-1])
    )  # since when nothing of the stream runs
    waits_from = np.minimum(np.maximum(launched[which], free), start)
    behind = running.length_before(start) - running.length_before(waits_from)
    out = np.zeros((steps, 4), np.int64)
    out[:, 0] = busy_ns(start, end, step, steps)
    in_step = step >= 0
    for column, values in ((1, end - start), (2, behind), (3, np.ones(len(which), np.int64))):
        np.add.at(out[:, column], step[in_step], values[in_step])
    return out
