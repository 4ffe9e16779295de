"""Gaps: what each GPU waits for while all of its streams are idle."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from tracediff.ingest.times import Int64
from tracediff.profile.arrays.factorize import combined, sums
from tracediff.profile.arrays.intervals import Intervals, union
from tracediff.profile.arrays.paint import edges_of
from tracediff.profile.context import Context
from tracediff.profile.model import TableRows
from tracediff.profile.placement.gpu_events import GpuEvents, gpu_names
from tracediff.profile.step_states import STATES, step_account
from tracediff.profile.tables.schema import Column, TableSchema, summed
from tracediff.runtimes import is_communication, is_host_collective

WAITS = ("busy", "launch", "data", "host", "peer")
BUSY, LAUNCH, DATA, HOST, PEER = range(len(WAITS))
WAITS_IN = {
    "gpu_compute": BUSY, "gpu_comm": BUSY, "gpu_copy": BUSY, "gpu_queued": LAUNCH, "launching": LAUNCH,
    "data_loading": DATA, "synchronising": HOST, "op": HOST, "python": HOST,
}  # fmt: skip
"""State → what the GPU waits for in that state, unless it waits for another rank."""
BY_PEER = tuple(STATES.index(state) for state in ("synchronising", "op", "python"))
"""States in which a collective that runs on the host explains the wait."""

SCHEMA = TableSchema(
    "gaps",
    "GPU gaps",
    "The period of each GPU, divided by what the GPU waits for and the state of the step meanwhile. With “busy” the "
    "rows add up to the period. A gap is the time between two GPU events in which no stream of the GPU runs; it is "
    "counted in the row that has most of its time.",
    keys=("gpu", "waits_for", "state"),
    columns=(Column("time", "time"), Column("gaps", "gaps", "count")),
    states=("state",),
)  # fmt: skip


def table(context: Context) -> TableRows:
    """Rows by GPU, cause and state. Time counts in the period in which it lies, whichever step launched the work."""
    gpus = gpu_names(context.gpu)
    parts = [_of_gpu(context, _only(context.gpu, device)) for device in gpus]
    place = np.repeat(np.arange(len(parts)), [len(step) for step, *_ in parts]).astype(np.int64)
    step, waits, state, length, gaps = (
        (np.concatenate(column) for column in zip(*parts, strict=True)) if parts else (np.zeros(0, np.int64),) * 5
    )
    return summed(step, [(place, list(gpus.values())), (waits, WAITS), (state, STATES)], [length, gaps])


def _only(gpu: GpuEvents, device: int) -> GpuEvents:
    """The events of one GPU."""
    return GpuEvents(**{f.name: getattr(gpu, f.name)[gpu.device == device] for f in fields(gpu)})


def _of_gpu(context: Context, gpu: GpuEvents) -> tuple[Int64, Int64, Int64, Int64, Int64]:
    """(step, cause, state, ns, 1 where a gap is counted) of the intervals in which cause and state are constant, each
    int64[m].
    """
    whole = len(gpu.rows) == len(context.gpu.rows)
    account = (
        context.account
        if whole
        else step_account(
            context.trace,
            context.steps,
            context.completions,
            gpu=gpu,
            ops=context.lanes["ops"],
            annotations=context.lanes["annotations"],
        )
    )
    queued, collective = _collectives_next(context, gpu), _on_host(context)
    low, high = int(context.completions[0]), int(context.completions[-1])
    also = [x for among in (queued, collective) for x in (among.clipped(low, high).start, among.clipped(low, high).end)]
    edges = edges_of(account.edges, *also)
    start, length = edges[:-1], np.diff(edges)
    state = account.painted[np.searchsorted(account.edges, start, side="right") - 1]
    waits = np.array([WAITS_IN[s] for s in STATES], np.int64)[state]
    waits[(state == STATES.index("gpu_queued")) & queued.covers(start)] = PEER
    waits[np.isin(state, BY_PEER) & collective.covers(start)] = PEER
    step = np.searchsorted(context.completions, start, side="right") - 1
    return step, waits, state, length, _counted(step, waits, state, length)


def _collectives_next(context: Context, gpu: GpuEvents) -> Intervals:
    """The times at which the GPU is idle and the next event to begin is a launched communication kernel."""
    lasting = np.flatnonzero(gpu.end > gpu.start)
    lasting = lasting[np.argsort(gpu.start[lasting], kind="stable")]
    start, launch = gpu.start[lasting], gpu.launch[lasting]
    speaks = np.flatnonzero(context.trace.named(is_communication)[gpu.rows[lasting]] & (launch >= 0))
    idle_since = np.maximum.accumulate(gpu.end[lasting])[np.searchsorted(start, start[speaks], side="left") - 1]
    idle_since[np.searchsorted(start, start[speaks], side="left") == 0] = context.completions[0]
    launched = (context.trace.ts + np.maximum(context.trace.dur, 0))[launch[speaks]]
    return union(np.maximum(launched, idle_since), start[speaks])


def _on_host(context: Context) -> Intervals:
    """The times at which a collective runs on the host, as recorded: the lane cuts scopes that overlap in part."""
    trace, rows = context.trace, context.lanes["annotations"].rows
    some = rows[trace.named(is_host_collective)[rows]]
    return union(trace.ts[some], trace.ts[some] + trace.dur[some])


def _counted(step: Int64, waits: Int64, state: Int64, length: Int64) -> Int64:
    """int64[m]: 1 at one interval of each gap, one that has the cause and state with most of the gap's time."""
    idle = np.flatnonzero(waits != BUSY)
    new = np.concatenate(([True], (np.diff(idle) > 1) | (np.diff(step[idle]) > 0)))[: len(idle)]
    gap = np.cumsum(new)
    code, first = combined(gap, waits[idle], state[idle])
    order = np.lexsort((first, -sums(code, length[idle], len(first)), gap[first]))
    longest = order[np.concatenate(([True], np.diff(gap[first][order]) > 0))[: len(order)]]
    out = np.zeros(len(step), np.int64)
    out[idle[first[longest]]] = 1
    return out
