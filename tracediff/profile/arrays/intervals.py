"""Sets of half-open intervals [start, end) of int64 nanoseconds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tracediff.ingest.times import Int64


@dataclass(frozen=True)
class Intervals:
    """Intervals that are sorted, disjoint and not empty: start int64[n], end int64[n] in ns."""

    start: Int64
    end: Int64

    @property
    def total(self) -> int:
        """Sum of the lengths in ns."""
        return int((self.end - self.start).sum())

    def covers(self, times: Int64) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """bool[m]: which of ``times`` (ns) lie inside."""
        if not len(self.start):
            return np.zeros(len(times), bool)
        position = np.searchsorted(self.start, times, side="right") - 1
        return (position >= 0) & (times < self.end[np.maximum(position, 0)])

    def length_before(self, times: Int64) -> Int64:
        """int64[m]: how much of the set lies before each of ``times``, in ns."""
        if not len(self.start):
            return np.zeros(len(times), np.int64)
        length = self.end - self.start
        position = np.searchsorted(self.start, times, side="right") - 1
        inside = np.clip(times - self.start[position], 0, length[position])
        return np.where(position >= 0, np.cumsum(length)[position] - length[position] + inside, 0)

    def clipped(self, low: int, high: int) -> Intervals:
        """The part inside [low, high)."""
        start, end = np.maximum(self.start, low), np.minimum(self.end, high)
        lasting = start < end
        return Intervals(start[lasting], end[lasting])


def union(start: Int64, end: Int64) -> Intervals:
    """The union of any intervals, in any order; empty and reversed ones add nothing."""
    lasting = end > start
    start, end = start[lasting], end[lasting]
    if not len(start):
        return Intervals(start, end)
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum.accumulate(end[order])
    first = np.concatenate(([True], start[1:] > end[:-1]))
    last = np.concatenate((first[1:], [True]))
    return Intervals(start[first], end[last])


def cut(start: Int64, end: Int64, borders: Int64) -> tuple[Int64, Int64, Int64, Int64]:
    """Any intervals cut at ``borders`` (ascending): of each piece (which interval, between which borders k and k + 1,
    start, end), each int64[m].

    What lies before the first border or from the last on is left out, and empty pieces are.
    """
    first = np.maximum(np.searchsorted(borders, start, side="right") - 1, 0)
    last = np.minimum(np.searchsorted(borders, end, side="left"), len(borders) - 1)
    pieces = np.maximum(last - first, 0)
    which = np.repeat(np.arange(len(start)), pieces)
    place = np.arange(len(which)) - np.repeat(np.cumsum(pieces) - pieces, pieces) + first[which]
    low, high = np.maximum(start[which], borders[place]), np.minimum(end[which], borders[place + 1])
    lasting = low < high
    return which[lasting], place[lasting], low[lasting], high[lasting]
