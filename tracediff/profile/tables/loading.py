"""Loading: DataLoader annotations, and how much of their time delays the step."""

from __future__ import annotations

import numpy as np

from tracediff.profile.arrays.intervals import Intervals, cut
from tracediff.profile.context import Context
from tracediff.profile.kernels.match_names import match_name
from tracediff.profile.model import TableRows
from tracediff.profile.step_states import STATES
from tracediff.profile.tables.schema import Column, Rate, TableSchema, summed

SCHEMA = TableSchema(
    "loading",
    "Data loading",
    "DataLoader annotations: how long they are open, and for how much of that time the step's state is data_loading. "
    "Exposed: the GPU runs nothing and has no launched work.",
    keys=("annotation",),
    columns=(Column("exposed", "exposed"), Column("time", "time"), Column("calls", "calls", "count")),
    rates=(Rate("mean_us", "mean µs", "time", "calls", 1e-3),),
)  # fmt: skip


def table(context: Context) -> TableRows:
    """Rows by annotation. Time and calls count in the step in which the annotation begins, exposed time in the period
    in which it lies; where several annotations are open, it counts for the first.
    """
    trace, lane = context.trace, context.lanes["annotations"]
    loaders = np.flatnonzero(trace.named(lambda name: "DataLoader" in name)[lane.rows])
    loaders = loaders[np.argsort(lane.start[loaders], kind="stable")]
    start, end, name = (
        trace.ts[lane.rows[loaders]],
        trace.ts[lane.rows[loaders]] + trace.dur[lane.rows[loaders]],
        trace.name[lane.rows[loaders]].astype(np.int64),
    )
    taken = np.concatenate((start[:1], np.maximum.accumulate(end)))[: len(loaders)]
    account = context.account
    held = np.flatnonzero(account.painted == STATES.index("data_loading"))
    waiting = Intervals(account.edges[held], account.edges[held + 1])
    which, period, low, high = cut(np.maximum(start, taken), end, context.completions)
    exposed = waiting.length_before(high) - waiting.length_before(low)
    zeros, ones = np.zeros(len(loaders), np.int64), np.ones(len(loaders), np.int64)
    columns = [np.concatenate(pair) for pair in ((zeros, exposed), (end - start, 0 * exposed), (ones, 0 * exposed))]
    return summed(
        np.concatenate((context.steps.positions_at(start), period)),
        [(np.concatenate((name, name[which])), [match_name(n) for n in trace.names])],
        columns,
    )
