"""`Timeline` of one step: the events of its streams and threads in a bounded number of marks, and the memory allocated.
And from one of its GPU events to the call that launched it and the operators around that call, and from a call to what
it launched.
"""

from itertools import islice

import numpy as np

from tracediff import bounds
from tracediff.arrays import Bools, Int64, Rows, changes, group_rows, marked, stacked, tuples, zeros
from tracediff.ingest.model import categories as cat
from tracediff.ingest.model.trace import EventRecord, Trace, event_records, thread_title
from tracediff.profile.analyses.allocations import Allocations, allocations
from tracediff.profile.events.context import Context
from tracediff.profile.events.step_states import STATES
from tracediff.profile.kernels.match_names import numbered
from tracediff.profile.model.profile import Marks, Memory, Timeline
from tracediff.profile.placement.calls import OP
from tracediff.profile.placement.gpu_events import GpuEvents
from tracediff.profile.placement.nesting import Lane
from tracediff.profile.placement.scopes import is_loading
from tracediff.runtimes import is_synchronising

ANNOTATION = "annotation"
KINDS = (*STATES, ANNOTATION)
"""Kinds of marks: a state, or an event that puts the step in that state. Annotations have no state but data_loading."""


UnmergedMarks = Int64
"""int64[7, n]: row, start, end, kind, code of the name, event and code of the operator's name (−1 for none), as in
`Marks`, of events before they are merged.
"""
NO_EVENTS = zeros(0)


def build_timeline(
    context: Context, position: int, window: tuple[int, int] | None = None, apart: Int64 = NO_EVENTS
) -> Timeline:
    """The timeline of the step at ``position``: every event in its period, whichever step launched it.

    Args:
        window: [start, end) in ns on the trace's clock, to show instead of the step's period.
        apart: int64[k] rows of the trace, whose events share marks with each other only.
    """
    trace, gpu = context.trace, context.gpu
    window = window or (int(context.completions[position]), int(context.completions[position + 1]))
    rows = ["state"]
    parts: list[Rows] = [_states(context, window)]
    streams = _streams(gpu, window)
    for place, which in streams[: bounds.TIMELINE_STREAMS]:
        parts.append(_gpu(context, which, len(rows)))
        rows.append(place)
    lanes = [
        (what, lane, np.flatnonzero(_within(lane.start, lane.end, window)))
        for what, lane in (("annotations", context.lanes.annotations), ("ops", context.ops))
    ]
    threads = _threads(lanes, window)
    launching = marked(gpu.launch, len(trace) + 1)
    for code in threads[: bounds.TIMELINE_THREADS]:
        thread = thread_title(trace.ids_of(code)[1])
        for what, lane, inside in lanes:
            mine = inside[lane.thread[inside] == code]
            for depth in range(bounds.TIMELINE_DEPTH):
                some = mine[lane.depth[mine] == depth]
                if len(some):
                    parts.append(_host(trace, lane, some, launching, len(rows)))
                    rows.append(f"{thread} {what}" + (f" {depth + 1}" if depth else ""))
    left_out = max(len(streams) - bounds.TIMELINE_STREAMS, 0) + max(len(threads) - bounds.TIMELINE_THREADS, 0)
    spans = np.array(stacked(*parts))
    spans[1:3] = np.clip(spans[1:3], *window) - window[0]
    names = [*trace.names, *context.account.names]
    marks = _bounded(spans, names, window[1] - window[0], np.isin(spans[5], apart))
    return Timeline(
        step=int(context.steps.numbers[position]),
        start=window[0],
        end=window[1],
        rows=tuple(rows),
        marks=marks,
        left_out=left_out,
        memory=memory_of(trace, window),
    )


def _within(start: Int64, end: Int64, window: tuple[int, int]) -> Bools:
    return (start < window[1]) & (end > window[0])


def _streams(gpu: GpuEvents, window: tuple[int, int]) -> list[tuple[str, Int64]]:
    """(name, positions of the events in the window) of each stream, the busiest first."""
    some = np.flatnonzero(_within(gpu.start, gpu.end, window))
    streams = []
    for device, number in set(tuples(gpu.device[some], gpu.stream[some])):
        which = some[(gpu.device[some] == device) & (gpu.stream[some] == number)]
        streams.append((-int(gpu.ns[which].sum()), device, number, which))
    streams.sort(key=lambda f: f[:3])
    return [(numbered("GPU", device) + numbered(" stream", number), which) for _, device, number, which in streams]


def _threads(lanes: list[tuple[str, Lane, Int64]], window: tuple[int, int]) -> list[int]:
    """Codes of the threads with operators or annotations in the window, the busiest first."""
    busy: dict[int, int] = {}
    for _, lane, inside in lanes:
        roots = inside[lane.parent[inside] < 0]
        for code, start, end in tuples(lane.thread[roots], lane.start[roots], lane.end[roots]):
            busy[code] = busy.get(code, 0) + min(end, window[1]) - max(start, window[0])
    return sorted(busy, key=lambda code: (-busy[code], code))


def _states(context: Context, window: tuple[int, int]) -> Rows:
    """The state of each instant; times outside every step have none."""
    start, end = np.array(window).reshape(2, 1)
    _, *columns = context.account.painting.cut(start, end)
    states, start, end = (column[columns[0] >= 0] for column in columns)
    kind = np.where(states < len(STATES), states, STATES.index("op"))
    return 0, start, end, kind, states + len(context.trace.names), -1, -1


def _gpu(context: Context, which: Int64, row: int) -> Rows:
    trace, gpu, calls = context.trace, context.gpu, context.calls.table
    rows, node = gpu.rows[which], context.launching_node[which]
    operator = np.where((node >= 0) & (calls.kind[node] == OP), calls.name[node], -1)
    return row, gpu.start[which], gpu.end[which], gpu.state[which], trace.name[rows], rows, operator


def _host(trace: Trace, lane: Lane, which: Int64, launching: Bools, row: int) -> Rows:
    """Scopes of one thread at one depth; ``launching`` (bool[n]) marks the events of the trace that launch GPU work."""
    rows = lane.rows[which]
    category = trace.category[rows]
    waits = np.isin(category, cat.CALLS) & trace.name_matches(is_synchronising, rows)
    scope = np.isin(category, cat.OPS, invert=True)
    loads = scope & trace.name_matches(is_loading, rows)
    cases = [launching[rows], waits, loads, scope]
    kind = np.select(
        cases, [KINDS.index(k) for k in ("launching", "synchronising", "data_loading", ANNOTATION)], KINDS.index("op")
    )
    return row, lane.start[which], lane.end[which], kind, trace.name[rows], rows, -1


def _bounded(spans: UnmergedMarks, names: list[str], length: int, is_apart: Bools) -> Marks:
    """At most TIMELINE_MARKS marks: the pixel doubles until they are few enough."""
    pixel = max(length // bounds.TIMELINE_PIXELS, 1)
    while True:
        order, first = _cells(spans, pixel, is_apart)
        if len(first) <= bounds.TIMELINE_MARKS or pixel > length:
            return _merged(spans, names, order, first)
        pixel *= 2


def _cells(spans: UnmergedMarks, pixel: int, is_apart: Bools) -> tuple[Int64, Int64]:
    """(order of the spans, positions in it at which a mark begins): spans shorter than ``pixel`` (ns) that begin in the
    same pixel of a row, and are alike in ``is_apart`` (bool[n]), become one mark; the longest is its first.
    """
    row, start, end, *_ = spans
    duration = end - start
    cell = np.where(duration >= pixel, -1 - np.arange(len(row)), 2 * (start // pixel) + is_apart)
    order = np.lexsort((-duration, cell, row))
    return order, np.flatnonzero(changes(row[order], cell[order]))


def _merged(spans: UnmergedMarks, names: list[str], order: Int64, first: Int64) -> Marks:
    """The marks of ``spans`` in ``order``, each of which begins at one of ``first`` and is named after that span."""
    row, start, end, kind, name, event, operator = spans[:, order]
    duration = end - start
    start, end = np.minimum.reduceat(start, first), np.maximum.reduceat(end, first)
    count = np.diff(np.append(first, len(order)))
    busy = np.add.reduceat(duration, first)
    by_row = np.lexsort((start, row[first]))
    longest = first[by_row]
    covered = [dict.fromkeys(name[k : k + n].tolist()) for k, n in tuples(longest, count[by_row])]
    return Marks(
        row=row[longest],
        start=start[by_row],
        end=end[by_row],
        kind=kind[longest],
        names=tuple(tuple(names[c] for c in islice(codes, bounds.MARK_NAMES)) for codes in covered),
        count=count[by_row],
        busy=busy[by_row],
        event=event[longest],
        operator=tuple(names[c] if c >= 0 else "" for c in operator[longest].tolist()),
    )


def memory_of(trace: Trace, window: tuple[int, int]) -> tuple[Memory, ...]:
    """Bytes allocated on each device within ``window`` (ns on the trace's clock)."""
    curves = (_sampled(device, window) for device in allocations(trace))
    return tuple(m for m in curves if len(m.time))


def _sampled(device: Allocations, window: tuple[int, int]) -> Memory:
    """The amount at the window's start, then the largest and the last amount of each part of the window."""
    time, allocated = device.time, device.allocated[1:]
    inside = np.flatnonzero((time >= window[0]) & (time < window[1]))
    before = allocated[: np.searchsorted(time, window[0])]
    part = (time[inside] - window[0]) // max((window[1] - window[0]) // (bounds.MEMORY_POINTS // 2), 1)
    samples: list[int] = []
    for some in group_rows(part, inside):
        samples += sorted({int(some[np.argmax(allocated[some])]), int(some[-1])})
    times, amounts = time[samples] - window[0], allocated[samples]
    if len(before):
        times, amounts = np.insert(times, 0, 0), np.insert(amounts, 0, before[-1])
    return Memory(device.device, times, amounts, device.has_totals)


Linked = tuple[str, EventRecord]
"""What an event of a launch chain is (``GPU event``, ``launch`` or ``around``), and the event."""


def follow(context: Context, event: int) -> list[Linked]:
    """The launch chain of the event at row ``event``: GPU events, their launch, and the operators around it, innermost
    first.
    """
    gpu, lane = context.gpu, context.ops
    on_gpu = np.flatnonzero(gpu.rows == event)
    launch = int(gpu.launch[on_gpu[0]]) if len(on_gpu) else event
    work = [event] if len(on_gpu) else gpu.rows[gpu.launch == launch][: bounds.EVENTS_OF_LAUNCH].tolist()
    chain = [(row, "GPU event") for row in work]
    position = int(context.calls.position[launch])  # the last is of no launch
    if work and launch >= 0:
        chain.append((launch, "launch"))
        position = int(lane.parent[position]) if position >= 0 else -1
    while position >= 0:
        chain.append((int(lane.rows[position]), "around"))
        position = int(lane.parent[position])
    chain = chain or [(event, "event")]  # an annotation
    records = event_records(context.trace, [row for row, _ in chain])
    return [(what, record) for (_, what), record in zip(chain, records, strict=True)]
