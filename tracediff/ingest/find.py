"""Finds the events of a name in a trace, to locate them in Perfetto."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tracediff.ingest import categories as cat
from tracediff.ingest.source import TraceFile
from tracediff.ingest.trace import Trace


@dataclass(frozen=True, kw_only=True)
class Found:
    """One event.

    Attributes:
        file: its file.
        name, category: as recorded.
        at_ns: start after the file's first event, as Perfetto counts.
        ts_ns: start on the trace's own clock.
        dur_ns: duration.
        place: ``GPU 0 stream 7`` or ``thread 1234``.
    """

    file: TraceFile
    name: str
    category: str
    at_ns: int
    ts_ns: int
    dur_ns: int
    place: str


def longest_events(trace: Trace, name: str, most: int) -> list[Found]:
    """The ``most`` longest complete events called ``name``; if there are none, those whose name contains it,
    ignoring case.
    """
    codes = [i for i, n in enumerate(trace.names) if n == name] or [
        i for i, n in enumerate(trace.names) if name.lower() in n.lower()
    ]
    rows = np.flatnonzero(np.isin(trace.name, codes) & (trace.dur >= 0))
    rows = rows[np.lexsort((trace.ts[rows], -trace.dur[rows]))][:most]
    timed = trace.ts[trace.dur >= 0]  # metadata events have time 0
    first = int(timed.min()) if len(timed) else 0
    return [_found(trace, int(row), first) for row in rows]


def _found(trace: Trace, row: int, first: int) -> Found:
    code = int(trace.category[row])
    pid, tid = (trace.ids[int(ids[row])] for ids in (trace.pid, trace.tid))
    arguments = trace.arguments_of(row)
    place = (
        f"GPU {arguments.get('device', pid)} stream {arguments.get('stream', tid)}"
        if code in cat.GPU
        else f"thread {tid}"
    )
    ts = int(trace.ts[row])
    return Found(
        file=trace.file,
        name=trace.names[int(trace.name[row])],
        category=trace.categories[code],
        at_ns=ts - first,
        ts_ns=ts,
        dur_ns=int(trace.dur[row]),
        place=place,
    )
