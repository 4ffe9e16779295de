"""Painting: which of the intervals that cover an instant lies in the lowest layer."""

from __future__ import annotations

import numpy as np

from tracediff.ingest.times import Int64

BARE = np.int64((1 << 63) - 1)
"""The layer of what no interval covers."""


def edges_of(*times: Int64) -> Int64:
    """int64[k + 1] ns: the distinct values of ``times``, ascending."""
    edges: Int64 = np.sort(np.concatenate(times))
    new: Int64 = np.flatnonzero(np.concatenate((np.ones(min(1, len(edges)), bool), edges[1:] != edges[:-1])))
    return np.take(edges, new)


def paint(edges: Int64, start: Int64, end: Int64, layer: Int64) -> Int64:
    """int64[k]: from each edge to the next, the lowest ``layer`` of the intervals that cover it, BARE where none does.

    Each interval is covered by two overlapping blocks of 2ⁿ pieces; blocks hand their layer down to their halves, from
    the largest to single pieces. Cost: pieces × log of the pieces in the longest interval.

    Args:
        edges: int64[k + 1] ns, ascending.
        start, end: int64[m] ns of intervals, each an edge or outside of all; empty and reversed ones cover nothing.
        layer: int64[m].
    """
    pieces = max(len(edges) - 1, 0)
    painted = np.full(pieces, BARE, np.int64)
    first, last = np.searchsorted(edges, start), np.minimum(np.searchsorted(edges, end), pieces)
    covers = np.flatnonzero(first < last)
    first, last, layer = first[covers], last[covers], layer[covers]
    size = np.frexp((last - first).astype(np.float64))[1] - 1  # block of 2**size ≤ pieces < 2 * block
    for n in range(int(size.max(initial=-1)), -1, -1):
        fitting = np.flatnonzero(size == n)
        np.minimum.at(painted, first[fitting], layer[fitting])
        np.minimum.at(painted, last[fitting] - (1 << n), layer[fitting])
        if n:
            half = 1 << (n - 1)
            painted[half:] = np.minimum(painted[half:], painted[:-half])
    return painted
