"""The last cause of each GPU event: an event before it on its stream, one on another stream, or its launch
(docs/tables/critical.md).
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tracediff import thresholds
from tracediff.arrays import (
    MISSING,
    Bools,
    Int64,
    Spans,
    all_none,
    changes,
    combined,
    concatenated,
    distinct,
    group_by,
    group_rows,
    last_up_to,
    marked,
    sorted_by,
    stable_order,
    tuples,
    values_at,
)
from tracediff.ingest.model import categories as cat
from tracediff.ingest.model.trace import Trace
from tracediff.profile.events.context import Context
from tracediff.profile.placement.gpu_events import GpuEvents
from tracediff.profile.placement.nesting import ALWAYS, Lane, Painting, name_order, painted, tied
from tracediff.runtimes import (
    ARGUMENT,
    STREAM_WAIT,
    SYNC_CATEGORIES,
    copies_tensor,
    is_awaited_copy,
    is_release,
    is_stream_wait,
    reads_number,
)


class Sync(NamedTuple):
    """A record of a wait (category cuda_sync) of a stream or of the host.

    Attributes:
        call: row of its call, −1 where not in the file. time: ns, of the call where there is one.
        stream: code of the stream that waits. awaited: of that of the awaited CUDA event, without one the same; −1 for
            streams without events.
        recorded: ns at which the CUDA event was recorded: later work is not waited for. −ALWAYS if unknown.
    """

    call: int
    time: int
    stream: int
    awaited: int
    recorded: int


class DeviceEvents(Spans, kw_only=True, dict=True):
    """The GPU events of a file in an order that does not depend on that of the file: by end, start, stream, name and
    launch.

    Attributes:
        event: int64[g] positions in `GpuEvents`. start, end: ns. stream: code of (device, stream).
        engine: code of (device, whether it is a kernel): events of one take the GPU from each other.
        launch: position in the ops lane, −1 where spilled. launched: start of the launch, ALWAYS where spilled.
        returned: when the launch returned or, if sooner, the event began; ALWAYS where spilled. A launch that waits for
            the event itself is taken to have submitted it SUBMITTED_NS after its start if the event begins as another
            ends, else when it begins: the call was preparing it (it copies pageable memory to a buffer first).
        own_wait: whether its launch waits for it (synchronous copies, copies of pageable memory).
        before: the event of its stream that it follows, −1 for none (`_before`).
        full: whether its launch found FULL_QUEUE others of its stream that had not begun.
        cause: what it waited for last, judged by its own stream and its launch: ``before``, or −1.
        crossed: whether an event ended while it waited: on another stream, and perhaps what it waited for.
        wait_call: time of the last call between the launch of ``before`` and its own that makes a stream wait for
            another, ALWAYS for none; None where no event has one.
        waits: stream → its waits for other streams in order of time, those recorded in full; then ``wait_call`` is
            None.
        streams: (device, stream) → its code.
    """

    event: Int64
    stream: Int64
    engine: Int64
    launch: Int64
    launched: Int64
    returned: Int64
    own_wait: Bools
    full: Bools
    before: Int64
    cause: Int64
    crossed: Bools
    wait_call: Int64 | None
    waits: dict[int, list[Sync]]
    streams: dict[tuple[int, int], int]

    @cached_property
    def shared(self) -> Bools:
        """bool[g]: whether its launch started several events, like a graph launch."""
        events_of_launch = np.bincount(self.launch[self.launch >= 0], minlength=1)
        return np.append(events_of_launch > 1, False)[self.launch]

    @cached_property
    def lasting(self) -> Int64:
        """The events with a duration: nothing waits for an event of 0 ns."""
        return np.flatnonzero(self.end > self.start)

    @cached_property
    def _lasting_end(self) -> Int64:
        return self.end[self.lasting]

    def waited_for(self, k: int) -> int:
        """The event that ``k`` waited for last; −1 where its launch came later, or nothing is known."""
        if self.crossed[k] and self.launch[k] >= 0:
            for other in self.ended_events(self._ready(k), int(self.start[k])):
                if self._held_back(k, other):
                    return other
        return int(self.cause[k])

    def _ready(self, k: int) -> int:
        """ns from which ``k`` could begin, by its own stream and its launch."""
        before = self.before[k]
        return max(int(self.end[before]) if before >= 0 else ALWAYS, int(self.returned[k]))

    def _held_back(self, k: int, other: int) -> bool:
        """Whether ``k`` may not begin before ``other``, of another stream, has ended."""
        if self.shared[k] or self.shared[other]:
            return bool(self.launched[other] <= self.launched[k])
        return self._recorded_wait(k, other) or self._follows_at_once(k, other)

    def _recorded_wait(self, k: int, other: int) -> bool:
        if self.wait_call is not None and self.wait_call[k] != ALWAYS:
            return bool(self.launched[other] < self.wait_call[k])
        waits = self.waits.get(int(self.stream[k]), [])
        since = int(self.launched[self.before[k]]) if self.before[k] >= 0 else ALWAYS
        low, high = (bisect_left(waits, time, key=lambda w: w.time) for time in (since, int(self.launched[k])))
        return any(w.awaited == self.stream[other] and self.launched[other] < w.recorded for w in waits[low:high])

    def _follows_at_once(self, k: int, other: int) -> bool:
        start = int(self.start[k])
        waited_long = start - self._ready(k) > thresholds.UNRECORDED_WAIT_NS
        follows = start - int(self.end[other]) <= thresholds.FOLLOWS_NS
        return waited_long and follows and bool(self.launched[other] <= self.launched[k])

    def ended_events(self, after: int, time: int) -> Iterator[int]:
        """The events that have a duration and end in (``after``, ``time``], the last first."""
        j = int(np.searchsorted(self._lasting_end, time, side="right")) - 1
        while j >= 0 and self._lasting_end[j] > after:
            yield int(self.lasting[j])
            j -= 1

    def while_waiting(self, k: Int64, ready: Int64) -> list[Int64]:
        """What occupies the GPU while events ``k`` wait from ``ready`` to their start, where that is long.

        Returns:
            [which of ``k``, the event of `GpuEvents` that runs or −1, start, end] of parts of these times, each int64.
        """
        start = self.start[k]
        is_long = start - ready > thresholds.UNRECORDED_WAIT_NS
        short = np.flatnonzero(~is_long)
        parts = [(short, all_none(len(short)), ready[short], start[short])]
        for engine in distinct(self.engine[k[is_long]]).tolist():
            long = np.flatnonzero(is_long & (self.engine[k] == engine))
            which, running, begin, end = self._occupation(engine).cut(ready[long], start[long])
            parts.append((long[which], running, begin, end))
        return concatenated(parts)

    def _occupation(self, engine: int) -> Painting:
        """The event of `GpuEvents` that runs on ``engine``, of several the first to begin."""
        mine = np.flatnonzero(self.engine == engine)
        mine = sorted_by(mine, self.start)
        end = np.maximum.accumulate(self.end[mine])
        start = np.maximum(self.start[mine], np.append(ALWAYS, end[:-1]))
        lasting = np.flatnonzero(end > start)
        return painted(start[lasting], end[lasting], self.event[mine[lasting]])


def device_of(context: Context, rank: dict[int, int]) -> DeviceEvents:
    """The device side of a walk.

    Args:
        rank: thread → its place in an order that does not depend on that of the file.
    """
    trace, gpu, ops = context.trace, context.gpu, context.ops
    launch = context.calls.position[gpu.launch].astype(np.int64)
    order = _order(gpu, ops, launch, rank)
    start, end, launch = gpu.start[order], gpu.end[order], launch[order]
    launched, returned = (np.append(times, ALWAYS)[launch] for times in (ops.start, ops.end))
    codes = [np.unique(ids, return_inverse=True)[1].astype(np.int64) for ids in (gpu.device[order], gpu.stream[order])]
    stream, first = combined(*codes)
    places = tuples(gpu.device[order[first]], gpu.stream[order[first]])
    streams = {place: code for code, place in enumerate(places)}
    before = _before(start, end, stream)
    freed = np.where(before >= 0, np.minimum(end[before], start), ALWAYS)
    lasting = np.flatnonzero(end > start)
    latest = np.concatenate(([ALWAYS], end[lasting]))[np.searchsorted(end[lasting], start, side="right")]
    own_wait = gpu.matches(is_awaited_copy)[order] | np.append(context.calls.waits, False)[launch]
    own_wait &= launch >= 0
    follows = start - np.maximum(freed, latest) <= thresholds.FOLLOWS_NS
    submitted = np.where(follows, launched + thresholds.SUBMITTED_NS, start)
    returned = np.minimum(np.where(own_wait, submitted, returned), start)
    syncs = sorted(recorded_syncs(trace, (STREAM_WAIT,), streams), key=lambda sync: sync.time)
    in_full = (sync for sync in syncs if sync.stream >= 0 and sync.awaited >= 0 and sync.recorded != -ALWAYS)
    waits = group_by(in_full, lambda sync: sync.stream)
    return DeviceEvents(
        event=order,
        start=start,
        end=end,
        stream=stream,
        engine=2 * codes[0] + (gpu.category[order] == cat.KERNEL),
        launch=launch,
        launched=launched,
        returned=returned,
        own_wait=own_wait,
        full=_finds_full_queue(start, launch, launched, stream),
        before=before,
        cause=np.where(freed >= returned, before, -1),
        crossed=latest > np.maximum(freed, returned),
        wait_call=None if waits else _last_wait_calls(trace, launched, before),
        waits=waits,
        streams=streams,
    )


def _order(gpu: GpuEvents, ops: Lane, launch: Int64, rank: dict[int, int]) -> Int64:
    """int64[g]: the positions of GPU events in the order of `DeviceEvents`."""
    order = stable_order(gpu.end)
    ties = tied(gpu.end[order])
    if len(ties):
        some = order[ties]
        by_name = name_order(gpu.trace, gpu.rows[some])
        place = launch[some].copy()
        place[place >= 0] = [rank[thread] for thread in ops.thread[place[place >= 0]].tolist()]
        keys = (launch[some], place, by_name, gpu.stream[some], gpu.device[some], gpu.start[some], gpu.end[some])
        order[ties] = some[np.lexsort(keys)]
    return order


def waiting_calls(context: Context) -> Int64:
    """Positions in the ops lane of the calls in which the host always waits; in a file without the calls of the runtime
    that may wait, of the operators that do: those that read a number of the device, which takes them longer than one of
    the host.
    """
    if context.calls.may_wait.any():
        return np.flatnonzero(context.calls.waits)
    return _long_operators(context, reads_number)


def emptying_calls(context: Context, device: DeviceEvents) -> Int64:
    """Positions in the ops lane of the calls that give memory back and return when all that was launched before them
    has ended: they wait for that, though not by their name.
    """
    ops = context.ops
    calls = np.flatnonzero((ops.category != cat.CPU_OP) & ops.matches(is_release))
    by_launch = stable_order(device.launched)
    ended = np.append(ALWAYS, np.maximum.accumulate(device.end[by_launch]))
    before = np.searchsorted(device.launched[by_launch], ops.start[calls])
    return calls[ended[before] <= ops.end[calls]]


def awaited_copies(context: Context, device: DeviceEvents) -> Iterator[tuple[int, int, int]]:
    """(end, copy, position in the ops lane of the operator that copies and has launched it) of the copies that ended
    within the operator, in a file without the calls of the runtime that may wait; of operators that take longer than to
    submit the copy.
    """
    if context.calls.may_wait.any():
        return iter(())
    ops = context.ops
    copying = marked(_long_operators(context, copies_tensor), len(ops.rows))
    copies = np.flatnonzero(context.gpu.category[device.event] == cat.MEMCPY)
    operators = values_at(ops.nearest(copying), device.launch[copies])
    ended = np.append(ops.end, ALWAYS)[operators] >= device.end[copies]
    return tuples(device.end[copies[ended]], copies[ended], operators[ended])


def _long_operators(context: Context, matches: Callable[[str], bool]) -> Int64:
    """Positions of the operators of a name that take longer than to submit something."""
    ops = context.ops
    return np.flatnonzero((ops.category == cat.CPU_OP) & (ops.ns > thresholds.SUBMITTED_NS) & ops.matches(matches))


def _before(start: Int64, end: Int64, stream: Int64) -> Int64:
    """int64[g]: of events in order of their end, the one of the same stream that each follows, −1 for none.

    That is the one that began last before it, if that has not ended yet (a dependent launch, which overlaps what it
    depends on), else the one that ended last. Nothing follows an event of 0 ns.
    """
    out = all_none(len(start))
    by_stream = stable_order(stream)
    for mine in group_rows(stream[by_stream], by_stream):
        lasting = mine[end[mine] > start[mine]]
        by_start = sorted_by(lasting, start)
        ended_last = last_up_to(end[lasting], start[mine])
        began_last = np.searchsorted(start[by_start], start[mine], side="left") - 1
        before = values_at(lasting, ended_last)
        running = np.flatnonzero(began_last >= 0)
        running = running[end[by_start[began_last[running]]] > start[mine[running]]]
        before[running] = by_start[began_last[running]]
        out[mine] = before
    return out


def _finds_full_queue(start: Int64, launch: Int64, launched: Int64, stream: Int64) -> Bools:
    """bool[g]: see `Device.full`; the events of one launch count once, from the start of their first."""
    full = np.zeros(len(start), bool)
    with_launch = np.flatnonzero(launch >= 0)
    if len(with_launch) <= thresholds.FULL_QUEUE:
        return full
    with_launch = sorted_by(with_launch, start, launch, stream)
    first = with_launch[changes(stream[with_launch], launch[with_launch])]
    for mine in group_rows(stream[first], first):
        issued = np.searchsorted(np.sort(launched[mine]), launched[mine], side="left")
        started = np.searchsorted(np.sort(start[mine]), launched[mine], side="right")
        full[mine] = issued - started >= thresholds.FULL_QUEUE
    return full


def _last_wait_calls(trace: Trace, launched: Int64, before: Int64) -> Int64 | None:
    """See `Device.wait_call`."""
    rows = trace.rows_named(is_stream_wait, np.flatnonzero(trace.is_of(cat.CALLS)))
    calls = np.append(ALWAYS, np.sort(trace.ts[rows]))
    if len(calls) == 1:
        return None
    latest = calls[np.maximum(np.searchsorted(calls, launched, side="left") - 1, 0)]
    return np.where(latest >= np.where(before >= 0, launched[before], ALWAYS), latest, ALWAYS)


def recorded_syncs(trace: Trace, names: tuple[str, ...], streams: dict[tuple[int, int], int]) -> list[Sync]:
    """The records of waits of these names, in their order.

    In a file with one device they are of that one: nsys writes device 0 in the records of every rank.

    Args:
        streams: those of the file's events, by (device, stream).
    """
    categories = tuple(trace.categories.index(name) for name in SYNC_CATEGORIES if name in trace.categories)
    if not categories:
        return []
    candidates = np.flatnonzero(trace.is_of(categories))
    rows = np.concatenate([trace.rows_named(name.__eq__, candidates) for name in names])
    arguments = (
        ARGUMENT.correlation,
        ARGUMENT.device,
        ARGUMENT.stream,
        ARGUMENT.awaited_stream,
        ARGUMENT.awaited_record,
    )
    columns = [trace.integer_column(argument, *categories)[rows] for argument in arguments]
    devices = {device for device, _ in streams}
    if len(devices) == 1:
        columns[1][:] = devices.pop()
    numbers = trace.integer_column(ARGUMENT.correlation, *cat.CALLS)
    named_calls = np.flatnonzero((numbers != MISSING) & np.isin(numbers, (columns[0], columns[-1])))
    named_calls = sorted_by(named_calls, trace.category)  # of equals the driver's last
    calls = dict(tuples(numbers[named_calls], named_calls))
    out = []
    for row, correlation, device, stream, target, record in tuples(rows, *columns):
        call, recording = calls.get(correlation, -1), calls.get(record, -1)
        time = int(trace.ts[call if call >= 0 else row])
        awaited = streams.get((device, stream if target == MISSING else target), -1)
        recorded = int(trace.ts[recording]) if recording >= 0 else -ALWAYS
        out.append(Sync(call, time, streams.get((device, stream), -1), awaited, recorded))
    return out
