"""Paintings: the innermost scope at each instant, on one thread or on several threads taken as one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracediff.ingest.times import Int64
from tracediff.profile.placement.nesting import Lane

ALWAYS = -(1 << 62)
"""Before every time: where every painting begins."""


Pieces = tuple[Int64, Int64, Int64]
"""Start and end in ns of disjoint parts of scopes, and their positions in the lane."""


@dataclass(frozen=True)
class Painting:
    """The row that applies from each time to the next; the first time is ALWAYS.

    Attributes:
        times: int64[n] ns, ascending. rows: int64[n] row of the trace, −1 for nothing.
    """

    times: Int64
    rows: Int64

    def rows_at(self, times: Int64) -> Int64:
        """int64[m]: the row that applies from each of ``times`` on."""
        return self.rows[np.searchsorted(self.times, times, side="right") - 1]


NOTHING = Painting(np.array([ALWAYS], np.int64), np.array([-1], np.int64))


def pieces(lane: Lane, chosen: NDArray[np.bool_] | None = None) -> Pieces:
    """(start, end, position) of the parts of each scope of ``lane``, or of those ``chosen`` (bool[n]), that lie in none
    of its children: per scope they add up to its self time.
    """
    inner = np.flatnonzero(lane.parent >= 0)
    of = np.arange(len(lane.rows))
    if chosen is not None:
        inner, of = inner[chosen[lane.parent[inner]]], np.flatnonzero(chosen)
    siblings = inner[np.argsort(lane.parent[inner], kind="stable")]
    parent = lane.parent[siblings]
    first = np.ones(len(siblings), bool)
    first[1:] = parent[1:] != parent[:-1]
    since = np.empty(len(siblings), np.int64)
    since[1:] = lane.end[siblings[:-1]]
    since[first] = lane.start[parent[first]]
    tail = lane.start.copy()
    np.maximum.at(tail, lane.parent[inner], lane.end[inner])
    start, end = np.concatenate((since, tail[of])), np.concatenate((lane.start[siblings], lane.end[of]))
    lasting = np.flatnonzero(end > start)
    return start[lasting], end[lasting], np.concatenate((parent, of))[lasting]


def painted(start: Int64, end: Int64, rows: Int64) -> Painting:
    """The painting of disjoint pieces."""
    order = np.argsort(start, kind="stable")
    start, end, rows = start[order], end[order], rows[order]
    over = end[np.append(start[1:] > end[:-1], True)] if len(end) else end  # where nothing follows at once
    times = np.concatenate((NOTHING.times, start, over))
    then = np.concatenate((NOTHING.rows, rows, np.full(len(over), -1, np.int64)))
    order = np.argsort(times, kind="stable")
    return Painting(times[order], then[order])


def overlaid(over: Painting, under: Painting) -> Painting:
    """``over``, and where it is nothing ``under``."""
    if len(over.times) == 1 or len(under.times) == 1:
        return under if len(over.times) == 1 else over
    times = np.concatenate((over.times, under.times))
    order = np.argsort(times, kind="stable")  # in linear time: both are sorted
    of_over = order < len(over.times)
    last = np.append(np.diff(times[order]) > 0, True)
    above, below = over.rows[np.cumsum(of_over)[last] - 1], under.rows[np.cumsum(~of_over)[last] - 1]
    return Painting(times[order][last], np.where(above >= 0, above, below))


def cut(start: Int64, end: Int64, edges: Int64) -> tuple[Int64, Int64, Int64]:
    """Spans cut at ascending ``edges``: (position of the span, of the edge before the part (−1 for none), ns of the
    part) of every part.
    """
    first = np.searchsorted(edges, start, side="right") - 1
    last = np.searchsorted(edges, end, side="left") - 1
    count = np.where(end > start, last - first + 1, 0)
    span = np.repeat(np.arange(len(start)), count)
    edge = np.arange(len(span)) + np.repeat(first - (np.cumsum(count) - count), count)
    borders = np.concatenate((edges, [-ALWAYS]))
    begin = np.where(edge >= 0, np.maximum(start[span], borders[np.maximum(edge, 0)]), start[span])
    ns = np.minimum(end[span], borders[edge + 1]) - begin
    lasting = ns > 0  # edges may be equal
    return span[lasting], edge[lasting], ns[lasting]


def innermost_scopes(lane: Lane, scopes: Int64) -> tuple[Int64, Int64]:
    """(times int64[m], positions int64[m]): the innermost open scope of ``scopes`` (one thread) from each time on, −1
    for none.
    """
    scopes = scopes[lane.end[scopes] > lane.start[scopes]]
    times = np.concatenate((lane.start[scopes], lane.end[scopes]))
    then = np.concatenate((scopes, lane.parent[scopes]))
    depth = lane.depth[scopes]
    order = np.lexsort((np.concatenate((depth, -depth)), np.repeat([1, 0], len(scopes)), times))
    times, then = times[order], then[order]
    last = np.concatenate((times[1:] != times[:-1], [True])) if len(times) else np.empty(0, bool)
    return times[last], then[last]
