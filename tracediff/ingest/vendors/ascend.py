"""Huawei's Ascend, as torch_npu writes it (``trace_view.json``): device events have no category, but a process.

- "Ascend Hardware": tasks by stream. Those that wait or mark are not work. Those of a collective are a part of it.
- "HCCL": collectives as a whole, and below them the tasks of their planes.
- "CANN": calls of the host's threads. A task has the ``connection_id`` of the call that launched it.
- "Overlap Analysis": torch_npu's own sums, which we do not use.

An operator enqueues its work, and another thread dequeues and launches it. The operator's ``Enqueue`` counts as the
launch, so that a task belongs to the operator that asked for it. Level 0 records no calls of CANN; there, arrows lead
to tasks from where the calls were, and from operators.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from itertools import count

import numpy as np

from tracediff.arrays import MISSING, Bools, Int64, last_equal, tuples
from tracediff.ingest.json.arguments import FLOW_ID
from tracediff.ingest.model import categories as cat
from tracediff.ingest.model.health import Notes
from tracediff.ingest.model.names import process_labels
from tracediff.ingest.model.trace import Codes, Trace, category_code, integers, refile, set_integers, texts
from tracediff.ingest.vendors import note_marks
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
Launches = dict[int, int]
"""Row of a task → row of what launched it."""


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
    whole = collectives[trace.name_matches(WHOLE.match, collectives)]
    category[whole] = cat.KERNEL
    in_whole = np.isin(connection[tasks], connection[whole]) & (connection[tasks] != MISSING)
    category[tasks] = _of_tasks(trace, tasks, in_whole, category_code(trace, MARKS))
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
    note_marks(notes, ASCEND.name, np.count_nonzero(category == category_code(trace, MARKS)))


def _of_tasks(trace: Trace, tasks: Int64, in_whole: Bools, mark: int) -> Codes:
    """int32[n] category of each task on a stream."""
    kinds = [f"{a} {b}" for a, b in zip(texts(trace, "Task Type", tasks), trace.names_of(tasks), strict=True)]
    out = np.full(len(tasks), cat.KERNEL, np.int32)
    out[[COPY.match(kind) is not None for kind in kinds]] = cat.MEMCPY
    out[[MARK.match(kind) is not None for kind in kinds]] = mark
    out[(out == cat.MEMCPY) & in_whole] = mark
    return out


def _streams(of_whole: Int64, of_tasks: Int64, stream: Int64) -> Int64:
    """int64[n] of each collective: the stream of the first task with the same connection, MISSING without one."""
    order = len(of_tasks) - 1 - np.argsort(of_tasks[::-1], kind="stable")  # of equals the first is last
    return np.append(stream[order], MISSING)[last_equal(of_tasks[order], of_whole)]


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
    enqueues = enqueues[np.argsort(trace.ts[enqueues], kind="stable")]
    linked_calls = calls[connection[calls] != MISSING]
    from_calls, from_operators = (_arrows(trace, work, category) for category in ASCEND.flows)
    hosts = np.array([*linked_calls.tolist(), *from_calls.values()], np.int64)
    launch_of = _enqueued_behind(trace, hosts, enqueues, dequeues, queued)
    numbers = dict(tuples(linked_calls, connection[linked_calls]))
    by_number = dict.fromkeys(numbers.values(), -1)  # a call without a queue has the connection already
    by_number |= {numbers[call]: launch_of[call] for call in linked_calls.tolist() if call in launch_of}
    by_task = _enqueued_in(trace, from_operators, enqueues)
    by_task |= {task: launch_of[start] for task, start in from_calls.items() if start in launch_of}
    tasks = tuples(work, connection[work])
    launch = [by_number[number] if number in by_number else by_task.get(task, -1) for task, number in tasks]
    _correlate(trace, work, np.array(launch, np.int64), set(connection.tolist()))


def _enqueued_behind(trace: Trace, hosts: Int64, enqueues: Int64, dequeues: Int64, queued: Int64) -> Launches:
    """Row of ``hosts`` → row of the ``Enqueue`` of what its thread had dequeued when it began."""
    enqueue_of = dict(tuples(queued[enqueues], enqueues))
    latest = zip(hosts.tolist(), _last_by(trace, dequeues, hosts, trace.ts[hosts]), strict=True)
    numbers = {
        host: int(queued[dequeue])
        for host, dequeue in latest
        if dequeue >= 0 and trace.ts[host] <= trace.ts[dequeue] + trace.dur[dequeue]
    }
    return {host: enqueue_of[number] for host, number in numbers.items() if number in enqueue_of and number != MISSING}


def _enqueued_in(trace: Trace, arrows: Launches, enqueues: Int64) -> Launches:
    """Each task's ``Enqueue`` in the operator with which its arrow begins, or that operator where it has none."""
    operators = trace.complete((cat.CPU_OP,))
    operators = operators[np.argsort(-trace.dur[operators], kind="stable")]  # the innermost last
    operator_at = dict(zip(_points(trace, operators), operators.tolist(), strict=True))
    starts = _points(trace, np.array(list(arrows.values()), np.int64))
    of_task = {task: operator_at[p] for task, p in zip(arrows, starts, strict=True) if p in operator_at}
    rows = np.array(list(of_task.values()), np.int64)
    latest = _last_by(trace, enqueues, rows, trace.spans(rows)[1])
    return {
        task: enqueue if enqueue >= 0 and trace.ts[enqueue] >= trace.ts[operator] else operator
        for (task, operator), enqueue in zip(of_task.items(), latest, strict=True)
    }


def _last_by(trace: Trace, scopes: Int64, events: Int64, times: Int64) -> list[int]:
    """For each event the row of the last of ``scopes`` on its thread that had begun by its time (ns), −1 for none."""
    order = scopes[np.lexsort((trace.ts[scopes], trace.tid[scopes]))]
    begins = list(tuples(trace.tid[order], trace.ts[order]))
    out = []
    for point in tuples(trace.tid[events], times):
        place = bisect_right(begins, point) - 1
        out.append(int(order[place]) if place >= 0 and begins[place][0] == point[0] else -1)
    return out


def _arrows(trace: Trace, work: Int64, category: str) -> Launches:
    """Row of a task → row of the arrow's beginning that leads to it.

    Both ends of an arrow have the same name and number; arrows that share them are left out.
    """
    if category not in trace.categories:
        return {}
    rows = np.flatnonzero(trace.category == trace.categories.index(category))
    task_at = dict(zip(_points(trace, work), work.tolist(), strict=True))
    arrows = list(tuples(trace.name[rows], integers(trace, FLOW_ID)[rows]))
    phases = [trace.phases[code] for code in trace.phase[rows].tolist()]
    starts = [(arrow, row) for arrow, phase, row in zip(arrows, phases, rows.tolist(), strict=True) if phase == "s"]
    alike = Counter(arrow for arrow, _ in starts)
    begin_of = {arrow: row for arrow, row in starts if alike[arrow] == 1}
    ends = zip(arrows, phases, _points(trace, rows), strict=True)
    return {task_at[p]: begin_of[a] for a, phase, p in ends if phase == "f" and p in task_at and a in begin_of}


def _points(trace: Trace, rows: Int64) -> list[tuple[int, int, int]]:
    """(process, thread, ns) where each of ``rows`` begins."""
    return list(tuples(trace.pid[rows], trace.tid[rows], trace.ts[rows]))


def _correlate(trace: Trace, work: Int64, launch: Int64, used_numbers: set[int]) -> None:
    """Give ``work`` and its launches (int64[work] rows, −1 to leave a task as it is) correlations that are not
    ``used_numbers``: queue and arrows have numberings of their own.
    """
    rows, place = np.unique(launch[launch >= 0], return_inverse=True)
    unused = (number for number in count(1) if number not in used_numbers)
    numbers = np.array([next(unused) for _ in rows], np.int64)
    set_integers(trace, ARGUMENT.correlation, rows, numbers)
    set_integers(trace, ARGUMENT.correlation, work[launch >= 0], numbers[place])
