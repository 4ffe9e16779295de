"""Idle: what the host does in each state of the step in which no GPU works; without a GPU, in every state."""

from __future__ import annotations

import numpy as np

from tracediff.ingest import categories as cat
from tracediff.ingest.times import Int64
from tracediff.profile.context import Context
from tracediff.profile.kernels.match_names import matched
from tracediff.profile.model import TableRows
from tracediff.profile.placement.innermost import NOTHING, Painting, Pieces, cut, overlaid, painted, pieces
from tracediff.profile.placement.nesting import Lane
from tracediff.profile.placement.python_callers import outside_torch
from tracediff.profile.step_states import GPU_STATES, thread_order
from tracediff.profile.tables.schema import Column, Key, TableSchema, summed

Chosen = np.ndarray[tuple[int], np.dtype[np.bool_]]
KINDS = ("operator", "Python", "annotation", "runtime call", "nothing recorded")
OTHER_THREADS = 4
"""Threads beside the one of the steps whose operators are considered."""

SCHEMA = TableSchema(
    "idle",
    "Host while no GPU works",
    "What the host does in the states of the step in which no GPU works (without GPU events: in all states): the "
    "innermost operator or runtime call, on the thread of the steps first; where none is open, the innermost Python "
    "function of that thread, or else its innermost annotation. The caller is the innermost "
    "function around it that is in a Python file outside of torch, on the same thread. The rows of a state add up to "
    "it.",
    keys=("state", "host", "kind", "caller"),
    columns=(Column("time", "time"),),
    kinds=("state",),
)


def table(context: Context) -> TableRows:
    """Rows by state and what the host does. Time counts in the period in which it lies."""
    account = context.account
    on_gpu = np.isin(account.painted, [account.names.index(state) for state in GPU_STATES])
    start, length = account.edges[:-1][~on_gpu], np.diff(account.edges)[~on_gpu]
    state = account.painted[~on_gpu]
    host, python, own = _host(context)
    interval, time, ns = cut(start, start + length, host.times)
    row = host.rows[time]
    step = np.searchsorted(context.completions, start, side="right")[interval] - 1
    caller = np.where(
        _on_thread(context, own)[row],
        outside_torch(context.trace, context.lanes["python"])[python.rows_at(host.times[time])],
        -1,
    )
    caller[caller == row] = -1
    name, text = np.append(context.trace.name, -1), matched(context.trace.names)
    keys: list[Key] = [
        (state[interval], account.names),
        (name[row], text),
        (_kind(context, row), KINDS),
        (name[caller], text),
    ]
    return summed(step, keys, [ns])


def _on_thread(context: Context, thread: int) -> Chosen:
    """bool[rows of the trace + 1]: whether Python or an operator or call of ``thread``; the last is of no row."""
    chosen = np.zeros(len(context.trace) + 1, bool)
    for lane in (context.lanes["ops"], context.lanes["python"]):
        chosen[lane.rows[lane.thread == thread]] = True
    return chosen


def _host(context: Context) -> tuple[Painting, Painting, int]:
    """The row that says best what the host does at each instant, the Python function on the thread of the steps, and
    that thread.
    """
    ops, python, annotations = (context.lanes[name] for name in ("ops", "python", "annotations"))
    threads = thread_order(context.trace, context.steps, ops)
    is_step = np.isin(annotations.start, context.steps.start) & (annotations.depth == 0)
    own = int(annotations.thread[is_step][0]) if is_step.any() else (threads[0] if threads else -1)
    host, of_ops = NOTHING, pieces(ops)
    for thread in list(dict.fromkeys((own, *threads)))[: 1 + OTHER_THREADS]:
        host = overlaid(host, _innermost(ops, of_ops, ops.thread == thread))
    functions = _innermost(python, pieces(python), python.thread == own)
    host = overlaid(host, functions)
    shown = (annotations.thread == own) & ~is_step
    return overlaid(host, _innermost(annotations, pieces(annotations), shown)), functions, own


def _innermost(lane: Lane, of_lane: Pieces, shown: Chosen) -> Painting:
    """The innermost of the scopes ``shown`` of ``lane``, which are of one thread; ``of_lane`` are its pieces."""
    begin, end, position = of_lane
    some = np.flatnonzero(shown[position])
    return painted(begin[some], end[some], lane.rows[position[some]])


def _kind(context: Context, row: Int64) -> Int64:
    kinds = np.full(len(context.trace) + 1, KINDS.index("nothing recorded"), np.int64)
    for kind, lane in zip(KINDS, ("ops", "python", "annotations"), strict=False):
        kinds[context.lanes[lane].rows] = KINDS.index(kind)
    kinds[:-1][np.isin(context.trace.category, cat.CALLS)] = KINDS.index("runtime call")
    return kinds[np.where(row >= 0, row, len(context.trace))]
