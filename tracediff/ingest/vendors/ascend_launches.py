"""What launched the work of an Ascend device.

An operator enqueues its work, and another thread dequeues and launches it. The operator's ``Enqueue`` counts as the
launch, so that a task belongs to the operator that asked for it. Level 0 records no calls of CANN; there, arrows lead
to tasks from where the calls were, and from operators.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from itertools import count

import numpy as np

from tracediff.ingest import categories as cat
from tracediff.ingest.arguments import FLOW_ID
from tracediff.ingest.refile import integers, set_integers
from tracediff.ingest.times import MISSING, Int64
from tracediff.ingest.trace import Trace
from tracediff.runtimes import ARGUMENT, ASCEND

Launches = dict[int, int]
"""Row of a task → row of what launched it."""


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
    called = calls[connection[calls] != MISSING]
    from_calls, from_operators = (_arrows(trace, work, category) for category in ASCEND.flows)
    hosts = np.array([*called.tolist(), *from_calls.values()], np.int64)
    behind = _enqueued_behind(trace, hosts, enqueues, dequeues, queued)
    numbers = dict(zip(called.tolist(), connection[called].tolist(), strict=True))
    by_number = dict.fromkeys(numbers.values(), -1)  # a call without a queue has the connection already
    by_number |= {numbers[call]: behind[call] for call in called.tolist() if call in behind}
    by_task = _enqueued_in(trace, from_operators, enqueues)
    by_task |= {task: behind[start] for task, start in from_calls.items() if start in behind}
    tasks = zip(work.tolist(), connection[work].tolist(), strict=True)
    launch = [by_number[number] if number in by_number else by_task.get(task, -1) for task, number in tasks]
    _correlate(trace, work, np.array(launch, np.int64), set(connection.tolist()))


def _enqueued_behind(trace: Trace, hosts: Int64, enqueues: Int64, dequeues: Int64, queued: Int64) -> Launches:
    """Row of ``hosts`` → row of the ``Enqueue`` of what its thread had dequeued when it began."""
    asked = dict(zip(queued[enqueues].tolist(), enqueues.tolist(), strict=True))
    latest = zip(hosts.tolist(), _last_by(trace, dequeues, hosts, trace.ts[hosts]), strict=True)
    numbers = {
        host: int(queued[dequeue])
        for host, dequeue in latest
        if dequeue >= 0 and trace.ts[host] <= trace.ts[dequeue] + trace.dur[dequeue]
    }
    return {host: asked[number] for host, number in numbers.items() if number in asked and number != MISSING}


def _enqueued_in(trace: Trace, arrows: Launches, enqueues: Int64) -> Launches:
    """Each task's ``Enqueue`` in the operator with which its arrow begins, or that operator where it has none."""
    operators = np.flatnonzero((trace.category == cat.CPU_OP) & (trace.dur >= 0))
    operators = operators[np.argsort(-trace.dur[operators], kind="stable")]  # the innermost last
    operator_at = dict(zip(_points(trace, operators), operators.tolist(), strict=True))
    starts = _points(trace, np.array(list(arrows.values()), np.int64))
    of_task = {task: operator_at[p] for task, p in zip(arrows, starts, strict=True) if p in operator_at}
    rows = np.array(list(of_task.values()), np.int64)
    latest = _last_by(trace, enqueues, rows, trace.ts[rows] + trace.dur[rows])
    return {
        task: enqueue if enqueue >= 0 and trace.ts[enqueue] >= trace.ts[operator] else operator
        for (task, operator), enqueue in zip(of_task.items(), latest, strict=True)
    }


def _last_by(trace: Trace, scopes: Int64, events: Int64, times: Int64) -> list[int]:
    """For each event the row of the last of ``scopes`` on its thread that had begun by its time (ns), −1 for none."""
    order = scopes[np.lexsort((trace.ts[scopes], trace.tid[scopes]))]
    begins = list(zip(trace.tid[order].tolist(), trace.ts[order].tolist(), strict=True))
    out = []
    for point in zip(trace.tid[events].tolist(), times.tolist(), strict=True):
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
    arrows = list(zip(trace.name[rows].tolist(), integers(trace, FLOW_ID)[rows].tolist(), strict=True))
    phases = [trace.phases[code] for code in trace.phase[rows].tolist()]
    begun = [(arrow, row) for arrow, phase, row in zip(arrows, phases, rows.tolist(), strict=True) if phase == "s"]
    alike = Counter(arrow for arrow, _ in begun)
    begin_of = {arrow: row for arrow, row in begun if alike[arrow] == 1}
    ends = zip(arrows, phases, _points(trace, rows), strict=True)
    return {task_at[p]: begin_of[a] for a, phase, p in ends if phase == "f" and p in task_at and a in begin_of}


def _points(trace: Trace, rows: Int64) -> list[tuple[int, int, int]]:
    """(process, thread, ns) where each of ``rows`` begins."""
    return list(zip(trace.pid[rows].tolist(), trace.tid[rows].tolist(), trace.ts[rows].tolist(), strict=True))


def _correlate(trace: Trace, work: Int64, launch: Int64, taken: set[int]) -> None:
    """Give ``work`` and its launches (int64[work] rows, −1 to leave a task as it is) correlations that are not
    ``taken``: queue and arrows have numberings of their own.
    """
    rows, place = np.unique(launch[launch >= 0], return_inverse=True)
    unused = (number for number in count(1) if number not in taken)
    numbers = np.array([next(unused) for _ in rows], np.int64)
    set_integers(trace, ARGUMENT.correlation, rows, numbers)
    set_integers(trace, ARGUMENT.correlation, work[launch >= 0], numbers[place])
