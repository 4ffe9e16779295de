"""The critical path of each step: what the step's completion waited for at each instant of its period
(docs/tables/critical.md).

The walk goes backward from the completion of the last step to the start of the first, or where it comes to the end of
the step before on the host, from the host's end of the last step. The path is charged to a GPU event back to its start,
then continues at the event it waited for last: another GPU event or, through its launch, the host. It is charged to the
host back to the last synchronising call in which the host waited for a GPU event. The spans tile the period.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct, field

from tracediff.arrays import (
    Bools,
    Int64,
    Intervals,
    Spans,
    all_none,
    concatenated,
    cut,
    distinct,
    int64_of,
    last_equal,
    marked,
    stacked,
    tuples,
    union,
)
from tracediff.ingest.model import categories as cat
from tracediff.profile.analyses.critical_path_gpu import (
    DeviceEvents,
    awaited_copies,
    device_of,
    emptying_calls,
    recorded_syncs,
    waiting_calls,
)
from tracediff.profile.analyses.unrecorded_waits import unrecorded_waits
from tracediff.profile.events.context import Context
from tracediff.profile.model.columns import rows_of
from tracediff.profile.placement.nesting import ALWAYS, NOTHING, Lane, Painting, overlaid, painted, thread_ranks
from tracediff.profile.placement.scopes import BACKWARD_OP
from tracediff.runtimes import CALL_WAITS
from tracediff.structs import FrozenStruct

WHOLE = ON_HOST = -1
"""Used as a thread code for the host as one thread, and as a source, or a GPU event, where the path is on the host."""


class SourceNumbers(Struct, dict=True):
    """What time can be charged to, as one number: a row of the trace, and from these numbers on nothing recorded, a GPU
    event, its time in the queue (from the launch to the start), the gap before it (from the end of the event that it
    waited for), time before a GPU event whose launch is not in the file, time in which the file's first GPU event has
    been launched and does not start, and what comes after these.
    """

    context: Context

    def __post_init__(self) -> None:
        events = len(self.context.gpu.rows)
        self.nothing = len(self.context.trace)
        self.event = self.nothing + 1
        self.queue = self.event + events
        self.between = self.queue + events
        self.unknown = self.between + events
        self.start = self.unknown + 1
        self.further = self.start + 1


class CriticalPath(Spans, kw_only=True):
    """The path of all steps, p spans that tile their periods.

    Attributes:
        step: int64[p] position. source: int64[p] see `SourceNumbers`, −1 on the host.
        thread: int64[p] on the host the thread's code or WHOLE.
        start, end: int64[p] ns.
        host: where the walk came to the host.
        queued: int64[g] since when each GPU event waited in its queue.
        blocked: int64[b] positions in the ops lane of what waited for the GPU: calls, launches that found the queue
            full, operators whose calls are not recorded.
    """

    step: Int64
    source: Int64
    thread: Int64
    host: Host
    queued: Int64
    blocked: Int64

    def parts(self, spans: Int64) -> list[Int64]:
        """[span, source, begin and length in ns], each int64[m], of the parts of ``spans`` (int64[k] positions): on the
        host by the innermost scope, others as they are.
        """
        is_on_host, nothing = self.source[spans] < 0, len(self.host.context.trace)
        others, spans = spans[~is_on_host], spans[is_on_host]
        parts = [(others, self.source[others], self.start[others], self.ns[others])]
        for thread in distinct(self.thread[spans]).tolist():
            mine = spans[self.thread[spans] == thread]
            start, end = self.start[mine], self.end[mine]
            which, row, low, high = self.host.painting(thread, union(start, end)).cut(start, end)
            parts.append((mine[which], np.where(row >= 0, row, nothing), low, high - low))
        return concatenated(parts)


class Host(FrozenStruct, kw_only=True, dict=True):
    """The host side of a walk.

    Attributes:
        layers: threads that the host as one is made of, those that come first first; the last is the one of the steps.
        waited: int64[w] positions in the ops lane of calls, or operators, that waited for a GPU event.
        waits: when it waited for one while no operator or call was open, as if one was, which is no work of Python.
        returns: thread, or WHOLE → (time, the GPU event (of `Device`) that ended then and that a call of the thread
            waited for) in ascending order.
    """

    context: Context
    layers: list[int]
    waited: Int64
    waits: Painting
    returns: dict[int, list[tuple[int, int]]] = field(default_factory=dict)

    def root_start(self, position: int) -> int:
        """ns at which the outermost scope around a position in the ops lane starts."""
        return int(self.context.ops.start[self._roots[np.searchsorted(self._roots, position, side="right") - 1]])

    @cached_property
    def _roots(self) -> Int64:
        return self.context.ops.roots

    @cached_property
    def outermost(self) -> dict[int, Int64]:
        """Thread of `layers` → positions of its outermost operators and calls that have a duration."""
        ops = self.context.ops
        some = np.flatnonzero((ops.depth == 0) & (ops.end > ops.start))
        return {thread: some[ops.thread[some] == thread] for thread in self.layers}

    def awaited(self, thread: int, time: int, jumped: int) -> tuple[int, int]:
        """(when, which): the last GPU event that a call waited for and that ended at ``time`` or before; only before
        where the walk has ``jumped`` to one at that time, since an event without duration leads back to its call.
        """
        waits = self.returns.get(thread, [])
        position = bisect_left(waits, (time if jumped == time else time + 1,)) - 1
        return waits[position] if position >= 0 else (0, -1)

    def is_collective(self, sources: Int64) -> Bools:
        """bool[m]: which of ``sources``, rows of the trace, are collectives that it waits for."""
        rows = self.context.collectives.rows
        return last_equal(distinct(rows[rows >= 0]), sources) >= 0

    def threads_before(self, times: Int64) -> Int64:
        """int64[m]: the thread in whose operator or call the host as one is just before each of ``times``, −1 for
        none.
        """
        out = all_none(len(times))
        for thread in reversed(self.layers):
            scopes = rows_of(self.context.ops, self.outermost[thread])
            position = np.searchsorted(scopes.start, times, side="left") - 1
            out[np.append(scopes.end, ALWAYS)[position] >= times] = thread
        return out

    @cached_property
    def outside_ops(self) -> Painting:
        """What the host as one did while no operator or call was open: a Python function or an annotation; while one
        was, the outermost.
        """
        scopes = (rows_of(self.context.ops, self.outermost[thread]) for thread in self.layers)
        outlines = [painted(lane.start, lane.end, lane.rows) for lane in scopes]
        return _layered([self.waits, *outlines, self.context.collectives, self._beneath])

    def painting(self, thread: int, during: Intervals) -> Painting:
        """What a thread, or the host as one for WHOLE, does at each instant of ``during``, and anything elsewhere."""
        ops = self.context.ops.part_of(during.start, during.end)
        if thread != WHOLE:
            return _of_thread(ops, thread)
        beneath = [part.within(during.start[0], during.end[-1]) for part in (self.context.collectives, self._beneath)]
        return _layered([*(_of_thread(ops, layer) for layer in self.layers), *beneath])

    @cached_property
    def _beneath(self) -> Painting:
        """Python on the thread of the steps, and where it is nothing its annotations."""
        main = self.layers[-1]
        return overlaid(_of_thread(self.context.lanes.python, main), _of_thread(self.context.lanes.annotations, main))


def _layered(layers: list[Painting]) -> Painting:
    """The first of ``layers``; where it is nothing, the next."""
    whole = NOTHING
    while layers:  # each may be as large as a lane, and is needed no more once it is laid
        whole = overlaid(whole, layers.pop(0))
    return whole


_HostSpans = list[tuple[int, int, int, int]]
"""Spans beside GPU events: source, thread, start, end; see `CriticalPath`."""


def critical_path(context: Context) -> CriticalPath:
    """The path of every step of a file: the spans of the walk, cut at the ends of their periods."""
    rank = thread_ranks(context.lanes)
    device = device_of(context, rank)
    host = _host(context, rank, device)
    first, *before_last, last = context.completions.tolist()
    source, thread, begin, stop = _path(device, host, first, last, _completing(context, device, last))
    if before_last and (source[(begin < before_last[-1]) & (before_last[-1] <= stop)] == ON_HOST).any():
        ended = max(int(context.steps.end[-1]), before_last[-1])
        late = stop > ended  # of the last step only that is left to the GPU, as the host limits those before
        tail = source[late], thread[late], np.maximum(begin[late], ended), stop[late]
        source, thread, begin, stop = concatenated([_path(device, host, first, ended, ON_HOST), tail])
    span, step, begin, stop = cut(begin, stop, context.completions)
    free = np.where(device.before >= 0, device.end[device.before], device.start)
    queued = np.empty(len(free), np.int64)
    queued[device.event] = np.where(device.returned == ALWAYS, free, device.returned)
    return CriticalPath(
        step=step,
        source=source[span],
        thread=thread[span],
        start=begin,
        end=stop,
        host=host,
        queued=queued,
        blocked=distinct(np.append(device.launch[device.full], host.waited)),
    )


def _completing(context: Context, device: DeviceEvents, time: int) -> int:
    """The event of the last step that ends at ``time``, of several the last in order; −1 for none."""
    first, last = (int(np.searchsorted(device.end, time, side=side)) for side in ("left", "right"))
    is_of_step = context.steps.whole_file | (context.gpu.step[device.event[first:last]] == len(context.completions) - 2)
    mine = np.flatnonzero(is_of_step)
    return first + int(mine[-1]) if len(mine) else -1


def _path(device: DeviceEvents, host: Host, low: int, high: int, last: int) -> Sequence[Int64]:
    """(source, thread, start, end), each int64[m], of the walk from ``high`` (ns), at the GPU event ``last`` or on the
    host, back to ``low``.
    """
    events, others = _walk(device, host, low, high, last)
    start, end, returned, numbers = device.start, device.end, device.returned, SourceNumbers(host.context)
    k, departure, before = int64_of(events).reshape(-1, 3).T
    ready = np.where(before >= 0, end[before], np.where(returned[k] == ALWAYS, start[k], returned[k]))
    event = device.event[k]
    waiting = np.where(before >= 0, numbers.between, numbers.queue) + event
    which, running, begin, stop = device.while_waiting(k, ready)
    sources = np.where(running >= 0, numbers.event + running, waiting[which])
    source, thread, begin, stop = stacked(
        (numbers.event + event, WHOLE, start[k], departure),
        (sources, WHOLE, begin, stop),
        tuple(int64_of(others).reshape(-1, 4).T),
    )
    return source, thread, np.maximum(begin, low), stop


def _walk(device: DeviceEvents, host: Host, low: int, time: int, k: int) -> tuple[list[int], _HostSpans]:
    """Walk back from ``time``, at the GPU event ``k`` or on the host, to ``low``.

    Returns:
        (GPU event, time at which the walk came to it, the event that it waited for or −1, one after the other,
        since there may be as many as GPU events; the other spans)
    """
    events, others, unknown = list[int](), _HostSpans(), SourceNumbers(host.context).unknown
    start, end, cause, crossed = (c.tolist() for c in (device.start, device.end, device.cause, device.crossed))
    threads, extend = host.context.ops.thread, events.extend
    launch = WHOLE  # on the host: whose thread, up to the start of the outermost scope around it
    jumped = -1  # when the walk came from the host to a GPU event
    while time > low:
        if k < 0:
            thread, until = WHOLE, low
            if launch != WHOLE:
                thread, until = int(threads[launch]), min(host.root_start(launch), time)
            when, which = host.awaited(thread, time, jumped)
            if which >= 0 and when > until:
                until, k, jumped = when, which, when
            others.append((ON_HOST, thread, until, time))
            time, launch = until, WHOLE
            continue
        before = device.waited_for(k) if crossed[k] else cause[k]
        extend((k, time, before))
        if before >= 0:
            time = min(end[before], start[k])
        elif (time := start[k]) > low:
            launch = int(device.launch[k])
            if launch >= 0:
                time = int(device.returned[k])
            else:
                others.append((unknown, WHOLE, low, time))
                time = low
        k = before
    return events, others


def _host(context: Context, rank: dict[int, int], device: DeviceEvents) -> Host:
    trace, ops = context.trace, context.ops
    is_backward = (ops.depth == 0) & (ops.category == cat.CPU_OP) & ops.matches(BACKWARD_OP.search)
    engine = set(distinct(ops.thread[is_backward]).tolist())
    main = _step_thread(context, rank, engine)
    layers = [*sorted(engine - {main}, key=rank.__getitem__), main]
    own, copies = (_latest(waits) for waits in (_awaited_own(ops, device), awaited_copies(context, device)))
    awaited = sorted((*own, *copies, *_awaited_others(context, device), *_awaited_room(ops, device)))
    calls = int64_of([call for _, _, call in awaited])
    outside = unrecorded_waits(context, device)
    waits = painted(outside.start, outside.end, np.full(len(outside.event), ops.rows[:1]))
    host = Host(context=context, layers=layers, waited=distinct(calls), waits=waits)
    current_threads = host.threads_before(ops.end[calls])  # what the host as one did when the call returned
    collective = context.collectives.rows_at(ops.end[calls] - 1)
    inside = np.flatnonzero((current_threads < 0) & (collective >= 0))
    current_threads[inside] = trace.thread(collective[inside])
    codes = ops.thread[calls].tolist()
    for (time, k, _), code, current_thread in zip(awaited, codes, current_threads.tolist(), strict=True):
        for key in (code, WHOLE) if current_thread == code else (code,):
            host.returns.setdefault(key, []).append((time, k))
    host.returns[WHOLE] = sorted([*host.returns.get(WHOLE, []), *tuples(outside.end, outside.event)])
    return host


def _of_thread(lane: Lane, thread: int) -> Painting:
    """The innermost scope of ``lane`` on a thread."""
    return lane.innermost(lane.thread == thread)


def _step_thread(context: Context, rank: dict[int, int], engine: set[int]) -> int:
    """The thread that runs the step annotations, else the one with most time in operators and calls without autograd's
    threads; −1 if there is none.
    """
    ops = context.ops
    steps_run: Counter[int] = Counter(context.trace.thread(context.steps.rows).tolist())
    if steps_run:
        return min(steps_run, key=lambda t: (-steps_run[t], rank[t]))
    roots, busy = ops.roots, Counter[int]()
    for thread, ns in tuples(ops.thread[roots], ops.ns[roots]):
        busy[thread] += ns
    return min(busy, key=lambda t: (t in engine, -busy[t], rank[t])) if busy else -1


Wait = tuple[int, int, int]
"""When a GPU event ended, the event, and the position in the ops lane of the call that waited for it until then."""


def _latest(waits: Iterator[Wait]) -> Iterable[Wait]:
    """The last wait of each call."""
    return {call: (when, k, call) for when, k, call in sorted(waits)}.values()


def _awaited_own(ops: Lane, device: DeviceEvents) -> Iterator[Wait]:
    """Of calls that wait for what they launch: until it ends or, as the clocks differ and a copy may go on after its
    source is free, until they return.
    """
    own = np.flatnonzero(device.own_wait & (device.start < device.end))
    own = own[device.start[own] < ops.end[device.launch[own]]]
    call = device.launch[own]
    return tuples(np.minimum(device.end[own], ops.end[call]), own, call)


def _awaited_others(context: Context, device: DeviceEvents) -> Iterator[Wait]:
    """Of calls that wait and launch nothing: the event that ended last within them."""
    ops = context.ops
    syncs = {sync.call: sync for sync in recorded_syncs(context.trace, CALL_WAITS, device.streams)}
    calls = np.append(waiting_calls(context), emptying_calls(context, device))
    launches = marked(device.launch, len(ops.rows) + 1)
    for call in calls[~launches[calls]].tolist():
        sync = syncs.get(int(ops.rows[call]))
        yield from _ended_last(ops, device, call, *((sync.awaited, sync.recorded) if sync else ()))


def _awaited_room(ops: Lane, device: DeviceEvents) -> Iterator[Wait]:
    """Of launches into a full queue: the event of the queue that ended last within them."""
    for k in np.flatnonzero(device.full).tolist():
        yield from _ended_last(ops, device, int(device.launch[k]), int(device.stream[k]))


def _ended_last(
    ops: Lane, device: DeviceEvents, call: int, stream: int | None = None, recorded: int = -ALWAYS
) -> Iterator[Wait]:
    """The wait of ``call`` for the event that ended last within it, of those launched before it and before ``recorded``
    (ns), on ``stream`` if it is given; none where there is no such event.
    """
    start = int(ops.start[call])
    for k in device.ended_events(start, int(ops.end[call])):
        if device.launched[k] < min(start, recorded) and stream in (None, device.stream[k]):
            yield int(device.end[k]), k, call
            return
