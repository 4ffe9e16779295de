"""Huawei's Ascend, as torch_npu writes it (``trace_view.json``): device events have no category, but a process.

- "Ascend Hardware": tasks by stream. Those that wait or mark are no work. Those of a collective are a part of it.
- "HCCL": collectives as a whole, and below them the tasks of their planes.
- "CANN": calls of the host's threads. A task has the ``connection_id`` of the call that launched it.
- "Overlap Analysis": torch_npu's own sums, which we do not use.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from tracediff.ingest import categories as cat
from tracediff.ingest.health import Notes
from tracediff.ingest.processes import process_labels
from tracediff.ingest.refile import category_code, integers, refile, set_integers, texts
from tracediff.ingest.times import MISSING, Int64
from tracediff.ingest.trace import Codes, Trace
from tracediff.ingest.vendors.ascend_launches import join_to_launches
from tracediff.ingest.vendors.marks import note_marks
from tracediff.runtimes import ARGUMENT, ASCEND

HARDWARE, COLLECTIVES, ANALYSIS, CALLS = ASCEND.processes
MARKS = f"{ASCEND.prefix}marks"
"""Category of events that are no work."""
ENQUEUE, DEQUEUE = "enqueue", "dequeue"
"""Categories of the two ends of the queue between an operator and the thread that launches."""
MARK = re.compile(r"(?i).*(?:wait|record|place_?holder|write[ _]value|profiling_(?:en|dis)able)")
COPY = re.compile(r"(?i)MEMCPY|.*(?:PCIE_DMA|SDMA|RDMA)")
WHOLE = re.compile(r"(?i)hcom_|hccl\w*_")
"""A collective as a whole; its tasks have other names."""


def translate_ascend(trace: Trace, notes: Notes) -> None:
    """Categories, streams and correlations of calls and tasks."""
    process = np.array([next((n for n in names if n in ASCEND.processes), "") for names in process_labels(trace)])
    if HARDWARE not in process:
        return
    rows = np.flatnonzero((trace.dur >= 0) & (trace.category >= len(cat.KNOWN)))
    where = process[trace.pid[rows]] if len(rows) else process[:0]
    tasks, collectives, calls = (rows[where == name] for name in (HARDWARE, COLLECTIVES, CALLS))
    enqueues, dequeues = (rows[trace.category[rows] == category_code(trace, name)] for name in (ENQUEUE, DEQUEUE))
    connection, queued = integers(trace, ARGUMENT.correlation), integers(trace, "correlation_id")
    category = trace.category.copy()
    category[rows[np.isin(where, ASCEND.processes)]] = category_code(trace, MARKS)
    category[np.concatenate((calls, enqueues, dequeues))] = cat.KNOWN.index(ASCEND.calls[0])
    whole = collectives[trace.named_among(collectives, WHOLE.match)]
    category[whole] = cat.KERNEL
    category[tasks] = _of_tasks(trace, tasks, whole, category_code(trace, MARKS))
    refile(trace, category)
    _to_thread_of_operators(trace, calls)
    work = tasks[np.isin(category[tasks], cat.GPU)]
    stream = integers(trace, ARGUMENT.stream)
    stream[whole] = _streams(connection[whole], connection[tasks], stream[tasks])
    device_rows = np.sort(np.concatenate((work, whole)))
    set_integers(trace, ARGUMENT.stream, device_rows, stream[device_rows])
    set_integers(trace, ARGUMENT.device, device_rows, np.zeros(len(device_rows), np.int64))
    join_to_launches(trace, device_rows, calls, enqueues, dequeues, connection, queued)
    if not len(calls):
        notes.add("calls-not-recorded", f"{ASCEND.name}: calls of CANN are not recorded (level 0), nor waits in them")
    note_marks(notes, ASCEND.name, int((category == category_code(trace, MARKS)).sum()))


def _of_tasks(trace: Trace, tasks: Int64, whole: Int64, mark: int) -> Codes:
    """int32[n] category of each task on a stream."""
    kinds = [f"{a} {b}" for a, b in zip(texts(trace, "Task Type", tasks), trace.names_of(tasks), strict=True)]
    out = np.full(len(tasks), cat.KERNEL, np.int32)
    out[[COPY.match(kind) is not None for kind in kinds]] = cat.MEMCPY
    out[[MARK.match(kind) is not None for kind in kinds]] = mark
    out[(out == cat.MEMCPY) & _inside(trace, tasks, whole)] = mark
    return out


def _inside(trace: Trace, tasks: Int64, whole: Int64) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """bool[n]: which tasks have the connection of a collective, and so are a part of it."""
    connection = integers(trace, ARGUMENT.correlation)
    inside: np.ndarray[Any, np.dtype[np.bool_]] = np.isin(
        connection[tasks], connection[whole][connection[whole] != MISSING]
    )
    return inside


def _streams(of_whole: Int64, of_tasks: Int64, stream: Int64) -> Int64:
    """int64[n] of each collective: the stream of a task with the same connection, MISSING without one."""
    order = np.argsort(of_tasks, kind="stable")
    place = np.searchsorted(of_tasks[order], of_whole)
    found = (
        (place < len(order)) & (of_tasks[order[np.minimum(place, len(order) - 1)]] == of_whole) if len(order) else []
    )
    out = np.full(len(of_whole), MISSING, np.int64)
    out[found] = stream[order[place[found]]]
    return out


def _to_thread_of_operators(trace: Trace, calls: Int64) -> None:
    """CANN's calls are filed below a process of their own; their threads are those of the operators' process."""
    operators = trace.pid[trace.category == cat.CPU_OP]
    if len(operators):
        codes, first, counts = np.unique(operators, return_index=True, return_counts=True)
        trace.pid = trace.pid.copy()
        trace.pid[calls] = codes[np.lexsort((first, -counts))[0]]  # of equals the first, whatever its code
