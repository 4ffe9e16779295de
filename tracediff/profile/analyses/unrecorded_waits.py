"""When the host waits for the GPU although no call says so, as where Python polls an event."""

import numpy as np

from tracediff import thresholds
from tracediff.arrays import Int64, Spans, all_none, group_rows, sorted_by, stable_order, union
from tracediff.profile.analyses.critical_path_gpu import DeviceEvents
from tracediff.profile.events.context import Context
from tracediff.profile.placement.nesting import ALWAYS
from tracediff.runtimes import is_query


class OutsideCalls(Spans, kw_only=True):
    """Waits while no operator or call was open: start and end in ns.

    Attributes:
        event: int64[w] the event of `DeviceEvents` that each waits for, and ends with.
    """

    event: Int64


def unrecorded_waits(context: Context, device: DeviceEvents) -> OutsideCalls:
    """The waits before calls of one name, where most are filled by the GPU's work and what follows that work varies by
    half of what the whole does or less, as it does where the host waits, and does not where it works; and what is
    filled elsewhere, if no more than twice as much follows.
    """
    begin, end, name = _between_calls(context)
    event = _filled_by(begin, end, device)
    after = end - np.append(device.end, ALWAYS)[event]
    longest = -1
    for here in group_rows(name, np.arange(len(name))):
        some = here[event[here] >= 0]
        if len(some) > max(1, thresholds.MOSTLY * len(here)) and 2 * np.std(after[some]) <= np.std((end - begin)[some]):
            longest = max(longest, int(after[some].max()))
    waits = sorted_by(np.flatnonzero((event >= 0) & (after <= 2 * longest)), begin)
    return OutsideCalls(start=begin[waits], end=device.end[event[waits]], event=event[waits])


def _between_calls(context: Context) -> tuple[Int64, Int64, Int64]:
    """(begin, end in ns, code of the name of the next call, −1 at the end of the last step), each int64[g], of long
    times without an operator or call, but for calls that ask whether the GPU is done.
    """
    ops, trace = context.ops, context.trace
    roots = sorted_by(ops.roots, ops.start)
    roots = roots[~trace.name_matches(is_query, ops.rows[roots])]
    over = np.maximum.accumulate(ops.end[roots])
    begins = np.append(ops.start[roots[1:]], context.steps.end.max())[: len(over)]
    long = np.flatnonzero(begins - over >= thresholds.UNRECORDED_WAIT_NS)
    name = np.append(trace.name[ops.rows[roots[1:]]].astype(np.int64), -1)[long]
    order = stable_order(name)
    return over[long][order], begins[long][order], name[order]


def _filled_by(begin: Int64, end: Int64, device: DeviceEvents) -> Int64:
    """int64[g]: the event that ended last in each of these times, if the GPU worked nearly all of it and had nothing
    left to do at its end; else −1.
    """
    work, out = union(device.start, device.end), all_none(len(begin))
    first, last = np.searchsorted(work.end, begin, side="right"), np.searchsorted(work.start, end)
    for i, (low, high) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
        busy = np.minimum(work.end[low:high], end[i]) - np.maximum(work.start[low:high], begin[i])
        is_over = low < high and work.end[high - 1] < end[i]
        if is_over and busy.sum() >= thresholds.WAITS_WHILE_BUSY * (end[i] - begin[i]):
            out[i] = next(device.ended_events(int(begin[i]), int(end[i])), -1)
    return out
