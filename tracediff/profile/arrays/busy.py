"""Busy time: the union of events per step, so that leaving out first steps leaves the exact union of the rest."""

from __future__ import annotations

import numpy as np

from tracediff.ingest.times import Int64
from tracediff.profile.arrays.paint import BARE, edges_of, paint


def busy_ns(start: Int64, end: Int64, step: Int64, steps: int) -> Int64:
    """int64[steps]: what each step adds to the union of its own and all later steps' events.

    Args:
        start, end: int64[m] ns of events in one place (a GPU, a stream).
        step: int64[m] position of their step; events outside every step (below 0) add nothing.
        steps: number of steps.
    """
    out = np.zeros(steps, np.int64)
    mine = np.flatnonzero(step >= 0)
    edges = edges_of(start[mine], end[mine])
    earlier = paint(edges, start[mine], end[mine], -step[mine])  # the latest step in the lowest layer
    busy = np.flatnonzero(earlier != BARE)
    np.add.at(out, -earlier[busy], np.diff(edges)[busy])
    return out
