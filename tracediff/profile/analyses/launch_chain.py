"""From a GPU event to the call that launched it and the operators around that call; from a call to what it launched."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tracediff.ingest import categories as cat
from tracediff.profile.context import Context

MOST = 50
"""GPU events listed per launch."""


@dataclass(frozen=True, kw_only=True)
class Linked:
    """One event of a launch chain.

    Attributes:
        event: its row of the trace. what: ``GPU event``, ``launch`` or ``around``.
        name: as recorded. place: its stream or thread.
        start, dur: ns on the trace's clock.
    """

    event: int
    what: str
    name: str
    place: str
    start: int
    dur: int


def follow(context: Context, event: int) -> list[Linked]:
    """The launch chain of the event at row ``event``: GPU events, their launch, and the operators around it, innermost
    first.
    """
    gpu, lane = context.gpu, context.lanes["ops"]
    on_gpu = np.flatnonzero(gpu.rows == event)
    launch = int(gpu.launch[on_gpu[0]]) if len(on_gpu) else event
    if len(on_gpu) and launch < 0:
        return [_linked(context, event, "GPU event")]
    work = [event] if len(on_gpu) else gpu.rows[gpu.launch == launch][:MOST].tolist()
    found = [_linked(context, row, "GPU event") for row in work]
    if work:
        found.append(_linked(context, launch, "launch"))
    in_lane = np.flatnonzero(lane.rows == launch)
    position = int(in_lane[0]) if len(in_lane) else -1
    position = int(lane.parent[position]) if position >= 0 and work else position
    while position >= 0:
        found.append(_linked(context, int(lane.rows[position]), "around"))
        position = int(lane.parent[position])
    return found


def _linked(context: Context, row: int, what: str) -> Linked:
    trace = context.trace
    pid, tid = (trace.ids[int(ids[row])] for ids in (trace.pid, trace.tid))
    place = (
        f"GPU {pid} {tid if str(tid).startswith('stream') else f'stream {tid}'}"
        if int(trace.category[row]) in cat.GPU
        else f"thread {tid}"
    )
    return Linked(
        event=row,
        what=what,
        name=trace.names[int(trace.name[row])],
        place=place,
        start=int(trace.ts[row]),
        dur=int(trace.dur[row]),
    )
