"""Tables of GPUs: what launches cost, how busy streams are, what a GPU waits for, how long kernels take, what copies
move, and how much ranks communicate.
"""

import re
from functools import partial
from itertools import pairwise

import numpy as np

from tracediff.arrays import (
    MISSING,
    Int64,
    Intervals,
    Rows,
    busy_ns,
    changes,
    combined,
    distinct,
    edges_of,
    int64_of,
    last_up_to,
    numbered_texts,
    ordinals,
    sorted_by,
    stacked,
    sums,
    union,
    zeros,
)
from tracediff.ingest.model import categories as cat
from tracediff.profile.analyses.collective_ops import AMOUNTS, DESCRIPTION, collectives, size_labels, traffic
from tracediff.profile.events.context import Context
from tracediff.profile.events.step_states import STATES, state_label, step_account
from tracediff.profile.model.columns import rows_of
from tracediff.profile.model.profile import TableRows
from tracediff.profile.placement.gpu_events import COMMUNICATES, GpuEvents, gpu_names
from tracediff.profile.placement.nesting import ALWAYS
from tracediff.profile.placement.scopes import host_collectives
from tracediff.profile.tables.schema import Amounts, TableSchema, read_columns, read_rates, summed
from tracediff.runtimes import ARGUMENT, copy_direction, is_memset

LAUNCHES = TableSchema(
    "launches",
    "Launches",
    "Runtime calls that launch GPU work. Host: duration of the calls. Queue delay: from the return of the call until "
    "its GPU event starts. GPU time: how long the launched events run. Short: GPU events that run for less time than "
    "their launch took.",
    keys=("call",),
    columns=read_columns("""
        host      ns     host time
        launches  count  launches
        delay     ns     queue delay
        work      ns     GPU time
        events    count  GPU events
        short     count  short
    """),
    rates=read_rates("""
        host_mean_us   host / launches  1e-3  mean host µs
        delay_mean_us  delay / events   1e-3  mean delay µs
    """),
)


def launches_rows(context: Context) -> TableRows:
    """Rows by the name of the call; a launch counts once, however many GPU events it starts."""
    trace, gpu = context.trace, context.gpu
    launched = np.flatnonzero(gpu.launch >= 0)
    launch = gpu.launch[launched]
    first = ordinals(launch) == 0
    took, ran = trace.dur[launch], gpu.ns[launched]
    waited = np.maximum(gpu.start[launched] - trace.ts[launch] - took, 0)
    columns = [took * first, first, waited, ran, 1, ran < took]
    return summed(gpu.step[launched], [(trace.name[launch], trace.names)], columns)


ALL_STREAMS = "all streams"

STREAMS = TableSchema(
    "streams",
    "Streams",
    "GPU events by stream. Busy: the union of their intervals; sum: the sum of their durations. “All streams” has both "
    "for the whole GPU. Behind others: launched work waits although its stream is idle, while another stream of the "
    "GPU runs.",
    keys=("gpu", "stream"),
    columns=read_columns("""
        busy    ns     busy
        sum     ns     sum
        behind  ns     behind others
        events  count  events
    """),
    rates=read_rates("concurrency  sum / busy  1  sum / busy"),
)


def streams_rows(context: Context) -> TableRows:
    """Rows by GPU and stream, and for all streams of each GPU; an event counts in the step that launched it."""
    gpu, steps = context.gpu, len(context.steps)
    launched = np.where(gpu.launch >= 0, context.trace.spans(gpu.launch)[1], gpu.start)
    places: list[tuple[str, str]] = []
    parts: list[Rows] = [(gpu.step[:0],) * 6]
    for device, gpu_name in gpu_names(gpu).items():
        on_device = np.flatnonzero(gpu.device == device)
        running = union(gpu.start[on_device], gpu.end[on_device])
        streams = {ALL_STREAMS: on_device}
        for stream in distinct(gpu.stream[on_device]).tolist():
            name = str(stream) if stream != MISSING else "unknown"
            streams[name] = on_device[gpu.stream[on_device] == stream]
        for name, which in streams.items():
            parts.append((np.arange(steps), len(places), *_of_stream(gpu, which, launched, running, steps)))
            places.append((gpu_name, name))
    step, place, *columns = stacked(*parts)
    step[columns[-1] == 0] = -1
    return summed(step, [(place, [gpu for gpu, _ in places]), (place, [stream for _, stream in places])], columns)


def _of_stream(gpu: GpuEvents, which: Int64, launched: Int64, running: Intervals, steps: int) -> list[Int64]:
    """int64[steps] each: busy, sum, behind others and events of ``which`` of a stream; ``running`` is when any
    stream of the GPU runs.
    """
    which = sorted_by(which, gpu.step, launched, gpu.end, gpu.start)
    start, end, step = gpu.start[which], gpu.end[which], gpu.step[which]
    free = np.append(ALWAYS, np.maximum.accumulate(end)[:-1])  # since when nothing of the stream runs
    waits_from = np.minimum(np.maximum(launched[which], free), start)
    queued_ns = running.length_before(start) - running.length_before(waits_from)
    in_step = np.flatnonzero(step >= 0)
    amounts = (end - start)[in_step], queued_ns[in_step], 1
    return [busy_ns(start, end, step, steps), *(sums(step[in_step], a, steps) for a in amounts)]


WAITS = ("busy", "launch", "data", "host", "peer")
BUSY, LAUNCH, DATA, HOST, PEER = range(len(WAITS))
WAITS_IN = {
    "gpu_compute": BUSY, "gpu_comm": BUSY, "gpu_copy": BUSY, "gpu_queued": LAUNCH, "launching": LAUNCH,
    "data_loading": DATA, "synchronising": HOST, "op": HOST, "python": HOST,
}  # fmt: skip
"""State → what the GPU waits for in that state, unless it waits for another rank."""
BY_PEER = tuple(STATES.index(state) for state in ("synchronising", "op", "python"))
"""States in which a collective that runs on the host explains the wait."""

GAPS = TableSchema(
    "gaps",
    "GPU gaps",
    "The period of each GPU, divided by what the GPU waits for and the state of the step meanwhile. With “busy” the "
    "rows add up to the period. A gap is the time between two GPU events in which no stream of the GPU runs; it is "
    "counted in the row that has most of its time.",
    keys=("gpu", "waits_for", "state"),
    columns=read_columns("""
        time  ns     time
        gaps  count  gaps
    """),
    labels={"state": partial(state_label, has_gpu=True)},
)


def gaps_rows(context: Context) -> TableRows:
    """Rows by GPU, cause and state. Time counts in the period in which it lies, whichever step launched the work."""
    gpus = gpu_names(context.gpu)
    parts: list[Rows] = [(context.gpu.step[:0],) * 6]
    for device in gpus:
        parts.append((len(parts) - 1, *_of_gpu(context, rows_of(context.gpu, context.gpu.device == device))))
    place, step, waits, state, length, gaps = stacked(*parts)
    return summed(step, [(place, list(gpus.values())), (waits, WAITS), (state, STATES)], [length, gaps])


def _of_gpu(context: Context, gpu: GpuEvents) -> tuple[Int64, Int64, Int64, Int64, Int64]:
    """(step, cause, state, ns, 1 where a gap is counted) of the intervals in which cause and state are constant, each
    int64[m].
    """
    whole = len(gpu.rows) == len(context.gpu.rows)
    account = context.account if whole else step_account(context.replace(gpu=gpu))
    queued = _collectives_next(context, gpu)
    collective = union(*context.trace.spans(host_collectives(context.lanes)))
    low, high = int(context.completions[0]), int(context.completions[-1])
    borders = np.concatenate((queued.start, queued.end, collective.start, collective.end))
    edges = edges_of(account.painting.times[1:], borders.clip(low, high))
    start, length = edges[:-1], np.diff(edges)
    state = account.painting.rows_at(start)
    waits = int64_of([WAITS_IN[s] for s in STATES])[state]
    waits[(state == STATES.index("gpu_queued")) & queued.covers(start)] = PEER
    waits[np.isin(state, BY_PEER) & collective.covers(start)] = PEER
    step = last_up_to(context.completions, start)
    return step, waits, state, length, _counted(step, waits, state, length)


def _collectives_next(context: Context, gpu: GpuEvents) -> Intervals:
    """The times at which the GPU is idle and the next event to begin is a launched communication kernel."""
    lasting = np.flatnonzero(gpu.end > gpu.start)
    lasting = sorted_by(lasting, gpu.start)
    start, launch = gpu.start[lasting], gpu.launch[lasting]
    speaks = np.flatnonzero((gpu.state[lasting] == COMMUNICATES) & (launch >= 0))
    earlier = np.searchsorted(start, start[speaks], side="left")
    idle_since = np.append(context.completions[0], np.maximum.accumulate(gpu.end[lasting]))[earlier]
    return union(np.maximum(context.trace.spans(launch[speaks])[1], idle_since), start[speaks])


def _counted(step: Int64, waits: Int64, state: Int64, length: Int64) -> Int64:
    """int64[m]: 1 at one interval of each gap, one that has the cause and state with most of the gap's time."""
    idle = np.flatnonzero(waits != BUSY)
    gap = np.cumsum(changes(idle - np.arange(len(idle)), step[idle]))  # of intervals one after the other in a step
    code, first = combined(gap, waits[idle], state[idle])
    order = np.lexsort((first, -sums(code, length[idle], len(first)), gap[first]))
    longest = order[changes(gap[first][order])]
    out = zeros(len(step))
    out[idle[first[longest]]] = 1
    return out


BOUNDS_US = (0, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
"""Where buckets begin; a kernel of exactly that duration is in the bucket that begins there."""
BUCKETS = (*(f"{low:04d}–{high:04d} µs" for low, high in pairwise(BOUNDS_US)), f"{BOUNDS_US[-1]} µs and more")
"""Their names, which sort as text."""

KERNEL_SIZES = TableSchema(
    "kernel_sizes",
    "Kernels by duration",
    "A histogram of kernels by duration, with the total time of each bucket. Copies and memsets are not included.",
    keys=("duration",),
    columns=read_columns("""
        time     ns     time
        kernels  count  kernels
    """),
)


def kernel_sizes_rows(context: Context) -> TableRows:
    """Rows by bucket of duration."""
    gpu = context.gpu
    kernels = np.flatnonzero(gpu.category == cat.KERNEL)
    took = gpu.ns[kernels]
    bucket = last_up_to(np.array(BOUNDS_US) * 1000, took)
    return summed(gpu.step[kernels], [(bucket, BUCKETS)], [took, 1])


KINDS_OF_MEMORY = re.compile(r"[^(]*\((?P<kinds>.*)\)$")

COPIES = TableSchema(
    "copies",
    "Copies and memsets",
    "Copies by direction and kind of memory, and memsets. Kinds of memory are named as the vendor records them. "
    "Bandwidth is the bytes copied over the time of the copies.",
    keys=("direction", "memory"),
    columns=read_columns("""
        time    ns     time
        copies  count  copies
        size    bytes  size
    """),
    rates=read_rates("rate_gb_s  size / time  1  bandwidth, GB/s"),
    arguments=(ARGUMENT.size,),
)


def copies_rows(context: Context) -> TableRows:
    """Rows by direction and kind of memory, both from the event's name."""
    trace, gpu = context.trace, context.gpu
    copies = np.flatnonzero(gpu.category != cat.KERNEL)
    rows = gpu.rows[copies]
    name = trace.name[rows]
    size = trace.integer_column(ARGUMENT.size, cat.MEMCPY, cat.MEMSET, missing=0)[rows]
    keys = [(name, lambda code: _direction(trace.names[code])), (name, lambda code: _memory(trace.names[code]))]
    return summed(gpu.step[copies], keys, [gpu.ns[copies], 1, size])


def _direction(name: str) -> str:
    return copy_direction(name) or ("memset" if is_memset(name) else name[:60])


def _memory(name: str) -> str:
    """The kinds of memory that a copy is between."""
    kinds = KINDS_OF_MEMORY.match(name) if copy_direction(name) else None
    return kinds["kinds"] if kinds else ""


COLLECTIVES = TableSchema(
    "collectives",
    "Collectives",
    "Collective operations by process group, dtype and message size. Times include the wait for other ranks. "
    "Exposed: no compute kernel runs on that GPU (for gloo and MPI: no operator runs on the host). Overlapped: one "
    "does. Algorithm bandwidth is size over time. Bus bandwidth corrects it for the operation and the number of ranks, "
    "so that it can be compared with the speed of the links.",
    keys=("collective", "group", "dtype", "size"),
    columns=read_columns("""
        time        ns     time
        exposed     ns     exposed
        overlapped  ns     overlapped
        operations  count  operations
        moved       bytes  moved
        moved_time  ns     time with known size
        bus         bytes  bus traffic
        bus_time    ns     time with known bus traffic
    """),
    rates=read_rates("""
        mean_us         time / operations   1e-3  mean µs
        algorithm_gb_s  moved / moved_time  1     algorithm bandwidth, GB/s
        bus_gb_s        bus / bus_time      1     bus bandwidth, GB/s
    """),
    arguments=(*DESCRIPTION, *AMOUNTS),
)


def collectives_rows(context: Context) -> TableRows:
    """Rows by the recorded properties of the operation; `bus_bytes` has the formula of the bus bandwidth."""
    operations = collectives(context)
    took = operations.ns
    ranks = int64_of([k.ranks for k in operations.kinds])[operations.kind]
    keys = [
        (operations.kind, [getattr(k, name) for k in operations.kinds]) for name in ("collective", "group", "dtype")
    ]
    columns: list[Amounts] = [
        took,
        operations.exposed,
        took - operations.exposed,
        1,
        *traffic(operations.kinds, operations.kind, ranks, operations.size, took),
    ]
    return summed(operations.step, [*keys, numbered_texts(size_labels(operations.size))], columns)
