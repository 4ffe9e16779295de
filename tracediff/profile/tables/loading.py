"""Loading: DataLoader annotations, and how much of their time delays the step."""

from __future__ import annotations

import numpy as np

from tracediff.profile.arrays.intervals import Intervals, cut
from tracediff.profile.context import Context
from tracediff.profile.kernels.match_names import matched
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
    trace, lane, account = context.trace, context.lanes["annotations"], context.account
    loaders = np.flatnonzero(trace.named(lambda name: "DataLoader" in name, lane.rows))
    rows = lane.rows[loaders[np.argsort(lane.start[loaders], kind="stable")]]
    start, end = trace.ts[rows], trace.ts[rows] + trace.dur[rows]
    taken = np.concatenate((start[:1], np.maximum.accumulate(end)))[: len(rows)]
    held = np.flatnonzero(account.painted == STATES.index("data_loading"))
    waiting = Intervals(account.edges[held], account.edges[held + 1])
    which, period, low, high = cut(np.maximum(start, taken), end, context.completions)
    whole, none = np.arange(len(rows) + len(which)) < len(rows), np.zeros(len(rows), np.int64)
    which = np.concatenate((np.arange(len(rows)), which))
    exposed = np.concatenate((none, waiting.length_before(high) - waiting.length_before(low)))
    return summed(
        np.concatenate((context.steps.positions_at(start), period)),
        [(trace.name[rows[which]], matched(trace.names))],
        [exposed, np.where(whole, trace.dur[rows[which]], 0), whole],
    )
