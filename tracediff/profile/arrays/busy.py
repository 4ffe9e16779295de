"""Busy time: the union of events per step, so that leaving out first steps leaves the exact union of the rest."""

from __future__ import annotations

import numpy as np

from tracediff.ingest.times import Int64
from tracediff.profile.arrays.intervals import union


def busy_ns(start: Int64, end: Int64, step: Int64, steps: int) -> Int64:
    """int64[steps]: what each step adds to the union of its own and all later steps' events.

    Args:
        start, end: int64[m] ns of events in one place (a GPU, a stream).
        step: int64[m] position of their step; events outside every step (below 0) add nothing.
        steps: number of steps.
    """
    out = np.zeros(steps, np.int64)
    mine = np.flatnonzero(step >= 0)
    mine = mine[np.argsort(step[mine], kind="stable")]
    borders = np.searchsorted(step[mine], np.arange(steps + 1))
    earlier_start = np.minimum.accumulate(start[mine])
    later = union(start[:0], end[:0])
    for s in range(steps - 1, -1, -1):
        step_events = mine[borders[s] : borders[s + 1]]
        both = union(np.concatenate((later.start, start[step_events])), np.concatenate((later.end, end[step_events])))
        out[s] = both.total - later.total
        if borders[s]:
            near = both.end > earlier_start[borders[s] - 1]  # the rest cannot meet an earlier step's events
            later = union(both.start[near], both.end[near])
    return out
