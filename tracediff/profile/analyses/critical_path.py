"""The critical path of each step: what the step's completion waited for at each instant of its period
(docs/tables/critical.md).

The walk goes backward from completion(s) to completion(s − 1). The path is charged to a GPU event back to its start,
then continues at the event it waited for last: another GPU event or, through its launch, the host. It is charged to the
host back to the last synchronising call in which the host waited for a GPU event. The spans tile the period.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from tracediff.ingest import categories as cat
from tracediff.ingest.times import Int64
from tracediff.ingest.trace import Trace
from tracediff.profile.analyses.critical_path_gpu import Device, device_of, recorded_syncs, waiting_calls
from tracediff.profile.placement.gpu_events import GpuEvents
from tracediff.profile.placement.innermost import ALWAYS, NOTHING, Painting, Pieces, overlaid, painted, pieces
from tracediff.profile.placement.nesting import Lane, thread_number, threads_of
from tracediff.profile.placement.scopes import BACKWARD_OP
from tracediff.profile.placement.steps import Steps
from tracediff.runtimes import CALL_WAITS

EVENT, QUEUED, HOST, UNKNOWN = range(4)
WHOLE = -1
"""Used as a thread code for the host as one thread."""


@dataclass(frozen=True, kw_only=True)
class CriticalPath:
    """The path of all steps, p spans that tile their periods.

    Attributes:
        step: int64[p] position. what: int64[p] EVENT, QUEUED, HOST or UNKNOWN.
        owner: int64[p] position in `GpuEvents` of the event, or of the event that waits in its queue; of the host the
            thread's code or WHOLE; −1 where unknown.
        start, end: int64[p] ns.
        paintings: thread, or WHOLE → what the host did.
        queued: int64[g] since when each GPU event waited in its queue.
    """

    step: Int64
    what: Int64
    owner: Int64
    start: Int64
    end: Int64
    paintings: dict[int, Painting]
    queued: Int64


@dataclass(frozen=True)
class Host:
    """The host side of a walk.

    Attributes:
        paintings: thread → its operators and calls; WHOLE → what the host as one does.
        thread: int64[n] code by position in the ops lane. root: int64[n] start of the outermost scope.
        returns: thread, or WHOLE → (times in ascending order, the GPU event (of `Device`) that ended then and that a
            call of the thread waited for).
    """

    paintings: dict[int, Painting]
    thread: list[int]
    root: list[int]
    returns: dict[int, tuple[list[int], list[int]]]

    def awaited(self, thread: int, time: int) -> tuple[int, int]:
        """(when, which): the last GPU event that a call waited for and that ended at ``time`` or before."""
        times, events = self.returns.get(thread, ([], []))
        position = bisect_right(times, time) - 1
        return (times[position], events[position]) if position >= 0 else (0, -1)


@dataclass
class _Path:
    """The walk so far.

    Attributes:
        events: (step, GPU event, what it waited for or −1, time at which the walk came to it).
        host: (step, thread or WHOLE, start, end). unknown: (step, start, end).
    """

    events: list[tuple[int, int, int, int]] = field(default_factory=list)
    host: list[tuple[int, int, int, int]] = field(default_factory=list)
    unknown: list[tuple[int, int, int]] = field(default_factory=list)


def critical_path(
    trace: Trace, steps: Steps, completions: Int64, *, gpu: GpuEvents, lanes: dict[str, Lane], of_ops: Pieces
) -> CriticalPath:
    """The path of every step of a file; ``of_ops`` are the `pieces` of its operators and calls."""
    ops = lanes["ops"]
    rank = _thread_rank(trace, lanes)
    codes = np.array(sorted(rank), np.int64)
    device = device_of(
        trace, gpu, ops, np.array([rank[c] for c in codes.tolist()], np.int64)[np.searchsorted(codes, ops.thread)]
    )
    host = _host(trace, steps, lanes, of_ops=of_ops, rank=rank, gpu=gpu, device=device)
    ends: dict[
        tuple[int, int], int
    ] = {}  # (step, end) → the event of that step that ends then, of several the last in order
    for k, s in enumerate(gpu.step[device.event].tolist()):
        ends[0 if steps.whole_file else s, device.end[k]] = k
    path = _Path()
    for step, (low, high) in enumerate(pairwise(completions.tolist())):
        _walk(path, step=step, low=low, time=high, k=ends.get((step, high), -1), device=device, host=host)
    return _spans(path, completions, device, host)


def _walk(path: _Path, *, step: int, low: int, time: int, k: int, device: Device, host: Host) -> None:
    """Walk back from ``time``, at the GPU event ``k`` or where that is −1 on the host, to the start ``low`` of the
    period.
    """
    launch = WHOLE  # on the host: whose thread, up to the start of the outermost scope around it
    start, cause, crossed = device.start, device.cause, device.crossed
    while time > low:
        if k < 0:
            thread, until = (host.thread[launch], min(host.root[launch], time)) if launch != WHOLE else (WHOLE, low)
            when, which = host.awaited(thread, time)
            if which >= 0 and when > until:
                until, k = when, which
            path.host.append((step, thread, until, time))
            time, launch = until, WHOLE
        while k >= 0 and time > low:
            before = device.waited_for(k) if crossed[k] else cause[k]
            path.events.append((step, k, before, time))
            time = start[k]
            if before >= 0:
                time = min(device.end[before], time)
            elif time > low and device.launch[k] >= 0:
                time, launch = device.returned[k], device.launch[k]
            elif time > low:
                path.unknown.append((step, low, time))
                time = low
            k = before


def _spans(path: _Path, completions: Int64, device: Device, host: Host) -> CriticalPath:
    """The spans of a walk, clipped to their periods."""
    step, k, before, left = np.array(path.events, np.int64).reshape(-1, 4).T
    start, end, returned = (np.array(c, np.int64) for c in (device.start, device.end, device.returned))
    ready = np.where(before >= 0, end[before], np.where(returned[k] == ALWAYS, start[k], returned[k])) if len(k) else k
    event = device.event[k]
    host_step, thread, since, until = np.array(path.host, np.int64).reshape(-1, 4).T
    unknown_step, unknown, known = np.array(path.unknown, np.int64).reshape(-1, 3).T
    parts = [
        (step, EVENT, event, start[k], left),
        (step, QUEUED, event, ready, start[k]),
        (host_step, HOST, thread, since, until),
    ]
    parts.append((unknown_step, UNKNOWN, np.full(len(unknown_step), -1), unknown, known))
    steps, what, owner, begin, stop = (
        np.concatenate([np.broadcast_to(part[i], len(part[0])) for part in parts]) for i in range(5)
    )
    begin = np.maximum(begin, completions[steps])
    lasting = stop > begin
    last = np.array([end[b] if b >= 0 else s for b, s in zip(device.before, device.start, strict=True)], np.int64)
    queued = np.empty(len(start), np.int64)
    queued[device.event] = np.where(returned == ALWAYS, last, returned)
    return CriticalPath(
        step=steps[lasting],
        what=what[lasting],
        owner=owner[lasting],
        start=begin[lasting],
        end=stop[lasting],
        paintings=host.paintings,
        queued=queued,
    )


def _thread_rank(trace: Trace, lanes: dict[str, Lane]) -> dict[int, int]:
    """Code of a thread → its place in order of process and thread ids; numbers first."""
    size = len(trace.ids) + 1
    codes = {code for lane in lanes.values() for code in lane.thread[np.diff(lane.thread, append=-1) != 0].tolist()}

    def place(code: int) -> list[tuple[bool, int, str]]:
        ids = trace.ids[code // size], trace.ids[code % size]
        numbers = [thread_number(raw) for raw in ids]
        return [(n is None, n or 0, str(raw)) for n, raw in zip(numbers, ids, strict=True)]

    return {code: i for i, code in enumerate(sorted(codes, key=place))}


def _host(
    trace: Trace,
    steps: Steps,
    lanes: dict[str, Lane],
    *,
    of_ops: Pieces,
    rank: dict[int, int],
    gpu: GpuEvents,
    device: Device,
) -> Host:
    ops = lanes["ops"]
    start, end, position = of_ops
    thread = ops.thread[position]
    outermost = ops.depth == 0
    launching = set(ops.thread[[k for k in device.launch if k >= 0]].tolist())
    engine = {
        int(t)
        for t in np.unique(
            ops.thread[outermost & trace.named(BACKWARD_OP.search)[ops.rows] & (trace.category[ops.rows] == cat.CPU_OP)]
        )
    }
    main = _step_thread(trace, steps, ops, rank, engine)
    helpers = sorted(engine - {main}, key=rank.__getitem__)
    paintings = {
        int(t): painted(start[pieces_of_thread], end[pieces_of_thread], ops.rows[position[pieces_of_thread]])
        for t in {*launching, *helpers, main}
        for pieces_of_thread in [np.flatnonzero(thread == t)]
    }
    layers = (
        [paintings[t] for t in helpers]
        + [paintings[main]]
        + [_of_thread(lanes[name], main) for name in ("python", "annotations")]
    )
    whole = NOTHING
    for layer in layers:
        whole = overlaid(whole, layer)
    root = (
        ops.start[np.maximum.accumulate(np.where(outermost, np.arange(len(ops.rows)), 0))]
        if len(ops.rows)
        else ops.start
    )
    host = Host({**paintings, WHOLE: whole}, ops.thread.tolist(), root.tolist(), {})
    for time, k, call in sorted(_awaited(trace, ops, gpu, device)):
        code = host.thread[call]
        shown = int(
            whole.rows[np.searchsorted(whole.times, ops.end[call], side="left") - 1]
        )  # what the host as one did when the call returned
        is_in_whole = (
            shown >= 0
            and trace.category[shown] in cat.OPS
            and int(trace.pid[shown]) * (len(trace.ids) + 1) + int(trace.tid[shown]) == code
        )
        for key in (code, WHOLE) if is_in_whole else (code,):
            times, events = host.returns.setdefault(key, ([], []))
            times.append(time)
            events.append(k)
    return host


def _of_thread(lane: Lane, thread: int) -> Painting:
    start, end, position = pieces(lane)
    on_thread = lane.thread[position] == thread
    return painted(start[on_thread], end[on_thread], lane.rows[position[on_thread]])


def _step_thread(trace: Trace, steps: Steps, ops: Lane, rank: dict[int, int], engine: set[int]) -> int:
    """The thread that runs the step annotations, else the one with most time in operators and calls without autograd's
    threads; −1 if there is none.
    """
    if not steps.whole_file:
        some = np.flatnonzero(np.isin(trace.ts, steps.start) & (trace.category == cat.ANNOTATION))
        some = some[np.isin(trace.ts[some] + trace.dur[some], steps.end)]
        if len(some):
            threads, counts = np.unique(threads_of(trace)[some], return_counts=True)
            found = dict(zip(threads.tolist(), counts.tolist(), strict=True))
            return int(min(found, key=lambda t: (-found[t], rank[t])))
    roots = np.flatnonzero(ops.depth == 0)
    busy: dict[int, int] = {}
    for thread, ns in zip(ops.thread[roots].tolist(), (ops.end - ops.start)[roots].tolist(), strict=True):
        busy[thread] = busy.get(thread, 0) + ns
    return min(busy, key=lambda t: (t in engine, -busy[t], rank[t])) if busy else -1


def _awaited(trace: Trace, ops: Lane, gpu: GpuEvents, device: Device) -> list[tuple[int, int, int]]:
    """(when, GPU event, position in the ops lane of the call that waited for it until then) of every call that waited
    for one.
    """
    return [*_awaited_own(ops, device), *_awaited_others(trace, ops, device), *_awaited_room(ops, device)]


def _awaited_own(ops: Lane, device: Device) -> list[tuple[int, int, int]]:
    """Of calls that wait for what they launch: until it ends or, as the clocks differ and a copy may go on after its
    source is free, until they return.
    """
    last: dict[int, tuple[int, int]] = {}
    for k in np.flatnonzero(device.own_wait).tolist():
        call = device.launch[k]
        if device.start[k] < device.end[k] and device.start[k] < int(ops.end[call]):
            last[call] = max(last.get(call, (ALWAYS, -1)), (min(device.end[k], int(ops.end[call])), k))
    return [(when, k, call) for call, (when, k) in last.items()]


def _awaited_others(trace: Trace, ops: Lane, device: Device) -> list[tuple[int, int, int]]:
    """Of synchronising calls that launch nothing: the event that ended last within them."""
    launches = set(device.launch)
    syncs = {sync.call: sync for sync in recorded_syncs(trace, CALL_WAITS, device.streams)}
    found = []
    for call in np.flatnonzero(waiting_calls(trace, ops)).tolist():
        if call in launches:
            continue
        start, sync = int(ops.start[call]), syncs.get(int(ops.rows[call]))
        for k in device.ended(start, int(ops.end[call])):
            if device.launched[k] < start and (sync is None or device.awaited_by(sync, k)):
                found.append((device.end[k], k, call))
                break
    return found


def _awaited_room(ops: Lane, device: Device) -> list[tuple[int, int, int]]:
    """Of launches into a full queue: the event of the queue that ended last within them."""
    found = []
    for k in np.flatnonzero(device.full).tolist():
        call = device.launch[k]
        start = int(ops.start[call])
        for other in device.ended(start, int(ops.end[call])):
            if device.stream[other] == device.stream[k] and device.launched[other] < start:
                found.append((device.end[other], other, call))
                break
    return found
