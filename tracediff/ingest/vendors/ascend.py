"""Huawei's Ascend, as torch_npu writes it (``trace_view.json``): device events have no category, but a process.

- "Ascend Hardware": tasks by stream. Those that wait or mark are not work. Those of a collective are a part of it.
- "HCCL": collectives as a whole, and below them the tasks of their planes.
- "CANN": calls of the host's threads. A task has the ``connection_id`` of the call that launched it.
- "Overlap Analysis": torch_npu's own sums, which we do not use.

An operator enqueues its work, and another thread dequeues and launches it. The operator's ``Enqueue`` counts as the
launch, so that a task belongs to the operator that asked for it. Level 0 records no calls of CANN; there, arrows lead
to tasks from where the calls were, and from operators.
"""

import re

import numpy as np

from tracediff.arrays import (
    MISSING,
    Bools,
    Int64,
    all_none,
    codes_of,
    last_begun,
    rows_with,
    sorted_by,
    values_at,
    zeros,
)
from tracediff.ingest.json.arguments import FLOW_ID
from tracediff.ingest.model import categories as cat
from tracediff.ingest.model.health import Notes
from tracediff.ingest.model.names import process_labels
from tracediff.ingest.model.trace import Codes, Trace
from tracediff.ingest.vendors import note_marks, rows_apart
from tracediff.runtimes import ARGUMENT, ASCEND

HARDWARE, COLLECTIVES, ANALYSIS, CALLS = ASCEND.processes
MARKS = f"{ASCEND.prefix}marks"
"""Category of events that are not work."""
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
    rows = rows_apart(trace)
    where = process[trace.pid[rows]] if len(rows) else process[:0]
    tasks, collectives, calls = (rows[where == name] for name in (HARDWARE, COLLECTIVES, CALLS))
    enqueues, dequeues = (rows[trace.category[rows] == trace.category_code(name)] for name in (ENQUEUE, DEQUEUE))
    connection, queued = trace.integers(ARGUMENT.correlation), trace.integers("correlation_id")
    category, mark = trace.category.copy(), trace.category_code(MARKS)
    category[rows[np.isin(where, ASCEND.processes)]] = mark
    category[np.concatenate((calls, enqueues, dequeues))] = cat.KNOWN.index(ASCEND.calls[0])
    whole = trace.rows_named(WHOLE.match, collectives)
    category[whole] = cat.KERNEL
    in_whole = np.isin(connection[tasks], connection[whole]) & (connection[tasks] != MISSING)
    category[tasks] = _of_tasks(trace, tasks, in_whole, mark)
    trace.refile(category)
    _to_thread_of_operators(trace, calls)
    work = tasks[np.isin(category[tasks], cat.GPU)]
    stream = trace.integers(ARGUMENT.stream)
    first_task = rows_with(connection[tasks][::-1], tasks[::-1], connection[whole])
    stream[whole] = np.where(first_task >= 0, stream[first_task], MISSING)
    device_rows = np.sort(np.concatenate((work, whole)))
    trace.set_integers(ARGUMENT.stream, device_rows, stream[device_rows])
    trace.set_integers(ARGUMENT.device, device_rows, zeros(len(device_rows)))
    join_to_launches(trace, device_rows, calls, enqueues, dequeues, connection, queued)
    if not len(calls):
        notes.add("calls-not-recorded", f"{ASCEND.name}: calls of CANN are not recorded (level 0), nor waits in them")
    note_marks(notes, ASCEND.name, np.count_nonzero(category == mark))


def _of_tasks(trace: Trace, tasks: Int64, in_whole: Bools, mark: int) -> Codes:
    """int32[n] category of each task on a stream."""
    kinds = [f"{a} {b}" for a, b in zip(trace.texts_of("Task Type", tasks), trace.names_of(tasks), strict=True)]
    out = np.full(len(tasks), cat.KERNEL, np.int32)
    out[[COPY.match(kind) is not None for kind in kinds]] = cat.MEMCPY
    out[[MARK.match(kind) is not None for kind in kinds]] = mark
    out[(out == cat.MEMCPY) & in_whole] = mark
    return out


def _to_thread_of_operators(trace: Trace, calls: Int64) -> None:
    """CANN's calls are filed below a process of their own; their threads are those of the operators' process."""
    operators = trace.pid[trace.category == cat.CPU_OP]
    if len(operators):
        codes, first, counts = np.unique(operators, return_index=True, return_counts=True)
        trace.pid = trace.pid.copy()
        trace.pid[calls] = codes[np.lexsort((first, -counts))[0]]  # of equals the first, whatever its code


def join_to_launches(
    trace: Trace, work: Int64, calls: Int64, enqueues: Int64, dequeues: Int64, connection: Int64, queued: Int64
) -> None:
    """Give each of ``work`` the correlation of its launch.

    That is the ``Enqueue`` behind the call that launched it, or that call. Where no call is recorded, it is the
    ``Enqueue`` in the operator from which an arrow leads to it, or that operator.

    Args:
        work, calls, enqueues, dequeues: ascending rows of the trace. connection, queued: int64[n] the numbers that join
            calls to tasks, and enqueuing to dequeuing; MISSING for none.
    """
    enqueues = sorted_by(enqueues, trace.ts)
    calls = calls[connection[calls] != MISSING]
    has_call = np.isin(connection[work], connection[calls])
    from_calls, from_operators = (_arrows(trace, work, category) for category in ASCEND.flows)
    behind_call, behind_arrow = (
        _enqueued_behind(trace, hosts, enqueues, dequeues, queued) for hosts in (calls, from_calls)
    )
    is_queued = behind_call >= 0  # a call without a queue has the connection already
    by_call = rows_with(connection[calls[is_queued]], behind_call[is_queued], connection[work])
    by_arrow = np.where(behind_arrow >= 0, behind_arrow, _enqueued_in(trace, from_operators, enqueues))
    _correlate(trace, work, np.where(has_call, by_call, by_arrow), connection)


def _enqueued_behind(trace: Trace, hosts: Int64, enqueues: Int64, dequeues: Int64, queued: Int64) -> Int64:
    """int64[m]: row of the ``Enqueue`` of what the thread of each of ``hosts`` had dequeued when it began, −1 for none
    and where there is no host (−1).
    """
    dequeue = _last_by(trace, dequeues, hosts, trace.ts[hosts])
    is_running = (hosts >= 0) & (dequeue >= 0) & (trace.ts[hosts] <= trace.spans(dequeue)[1])
    enqueue = rows_with(queued[enqueues], enqueues, queued[dequeue])
    return np.where(is_running & (queued[dequeue] != MISSING), enqueue, -1)


def _enqueued_in(trace: Trace, starts: Int64, enqueues: Int64) -> Int64:
    """int64[m]: row of the last ``Enqueue`` in the operator with which each arrow begins, or of that operator where it
    has none; −1 where there is no arrow or operator.
    """
    operators = sorted_by(trace.complete((cat.CPU_OP,)), -trace.dur)  # the innermost last
    place = _places(trace, np.concatenate((operators, starts)))
    operator = rows_with(place[: len(operators)], operators, place[len(operators) :])
    enqueue = _last_by(trace, enqueues, operator, trace.spans(operator)[1])
    is_inside = (enqueue >= 0) & (trace.ts[enqueue] >= trace.ts[operator])
    return np.where((starts < 0) | (operator < 0), -1, np.where(is_inside, enqueue, operator))


def _last_by(trace: Trace, scopes: Int64, events: Int64, times: Int64) -> Int64:
    """int64[m]: row of the last of ``scopes`` on each event's thread that had begun by its time (ns), −1 for none."""
    return values_at(scopes, last_begun(trace.tid[scopes], trace.ts[scopes], trace.tid[events], times))


def _arrows(trace: Trace, work: Int64, category: str) -> Int64:
    """int64[m] row of the arrow's beginning that leads to each task, −1 for none.

    Both ends of an arrow have the same name and number; arrows that share them are left out.
    """
    code = trace.categories.index(category) if category in trace.categories else -1
    rows = np.flatnonzero(trace.category == code)
    phase, number = np.array(trace.phases)[trace.phase[rows]], trace.integers(FLOW_ID)[rows]
    arrow = codes_of(trace.name[rows], number)
    is_begin, is_end = phase == "s", phase == "f"
    is_begin &= np.bincount(arrow[is_begin], minlength=len(rows))[arrow] == 1
    begin = rows_with(arrow[is_begin], rows[is_begin], arrow[is_end])
    place = _places(trace, np.concatenate((work, rows[is_end])))
    task = rows_with(place[: len(work)], np.arange(len(work)), place[len(work) :])
    leads = (begin >= 0) & (task >= 0)
    out = all_none(len(work))
    out[task[leads]] = begin[leads]
    return out


def _places(trace: Trace, rows: Int64) -> Int64:
    """int64[n] codes of (process, thread, ns) where each of ``rows`` begins."""
    return codes_of(trace.pid[rows], trace.tid[rows], trace.ts[rows])


def _correlate(trace: Trace, work: Int64, launch: Int64, used_numbers: Int64) -> None:
    """Give ``work`` and its launches (int64[work] rows, −1 to leave a task as it is) correlations that are not
    ``used_numbers``: queue and arrows have numberings of their own.
    """
    rows, place = np.unique(launch[launch >= 0], return_inverse=True)
    numbers = np.setdiff1d(np.arange(1, len(used_numbers) + len(rows) + 1), used_numbers)
    trace.set_integers(ARGUMENT.correlation, rows, numbers[: len(rows)])
    trace.set_integers(ARGUMENT.correlation, work[launch >= 0], numbers[place])
