"""Lanes: the scopes of one thread that nest in each other, their parents and self times; and paintings, the innermost
scope at each instant, on one thread or on several taken as one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tracediff import bounds
from tracediff.arrays import (
    MISSING,
    AnyArray,
    Bools,
    Int64,
    all_none,
    changes,
    concatenated,
    cut,
    distinct,
    group_rows,
    int64_of,
    last_up_to,
    sorted_by,
    stable_order,
    values_at,
    zeros,
)
from tracediff.ingest.model import categories as cat
from tracediff.ingest.model.health import Notes
from tracediff.ingest.model.trace import EventSpans, Trace
from tracediff.profile.model.columns import no_rows, rows_of
from tracediff.structs import FrozenStruct

BLOCK = 1 << 16


class Lane(EventSpans, kw_only=True):
    """All scopes of one kind, thread by thread, outer before inner.

    Attributes:
        thread: int32[n], or int64[n] of many ids, code of (process, thread).
        start, end: int64[n] in ns; an end beyond the parent's is cut there.
        parent: int32[n] position in this lane of the enclosing scope, −1 for roots.
        depth: int16[n], 0 for roots.
        self_ns: int64[n] duration less direct children; over a lane Σ self = Σ roots.
    """

    thread: Int64
    parent: Int64
    depth: AnyArray
    self_ns: Int64

    @property
    def roots(self) -> Int64:
        """Positions of the scopes that are in no other."""
        return np.flatnonzero(self.depth == 0)

    def part_of(self, start: Int64, end: Int64) -> Lane:
        """The scopes that are open at some time within the intervals from ``start`` to ``end`` (ns, ascending and
        disjoint); what they hold at other times may be missing.
        """
        near = np.flatnonzero((self.start < end[-1:]) & (self.end > start[:1])) if len(start) else zeros(0)
        following = np.searchsorted(end, self.start[near], side="right")
        is_open = np.zeros(len(self.rows), bool)
        is_open[near] = np.append(start, np.iinfo(np.int64).max)[following] < self.end[near]
        if 2 * np.count_nonzero(is_open) > len(is_open):  # a copy would cost more than it spares
            return self
        part = rows_of(self, is_open)
        return part.replace(parent=values_at(np.cumsum(is_open) - 1, part.parent))

    def nearest(self, mask: Bools) -> Int64:
        """int64[n]: position of the innermost scope of ``mask`` (bool[n]) that each scope is or is in, −1 for none."""
        place = np.where(mask, np.arange(len(mask)), self.parent)
        while True:  # each round looks twice as far
            further = values_at(place, place)
            if np.array_equal(further, place):
                return place
            place = further

    def nearest_around(self, mask: Bools) -> Int64:
        """int64[n]: position of the innermost scope of ``mask`` (bool[n]) that each scope is in, −1 for none."""
        return values_at(self.nearest(mask), self.parent)

    def by_depth(self) -> list[Int64]:
        """The positions at each depth, from the roots on."""
        order = stable_order(self.depth)
        return group_rows(self.depth[order], order)

    def pieces(self, mask: Bools | None = None) -> Pieces:
        """(start, end, position) of the parts of each scope, or of those in ``mask``, that lie in none of its children:
        per scope they add up to its self time.
        """
        inner = np.flatnonzero(self.parent >= 0)
        scopes = np.arange(len(self.rows))
        if mask is not None:
            inner, scopes = inner[mask[self.parent[inner]]], np.flatnonzero(mask)
        return concatenated((_before(self, inner), _after(self, inner, scopes)))

    def innermost(self, mask: Bools) -> Painting:
        """The innermost of the scopes in ``mask``, which are of one thread."""
        start, end, position = self.pieces(mask)
        return painted(start, end, self.rows[position])

    def enclosing(self, thread: Int64, time: Int64) -> Int64:
        """int64[m]: position of the innermost scope of the thread that is open at each time, −1 for none."""
        out = all_none(len(time))
        for scopes in group_rows(self.thread, np.arange(len(self.rows))):
            mine = np.flatnonzero(thread == self.thread[scopes[0]])
            position = values_at(scopes, last_up_to(self.start[scopes], time[mine]))
            while (over := (position >= 0) & (self.end[position] <= time[mine])).any():
                position[over] = self.parent[position[over]]
            out[mine] = position
        return out


class Lanes(NamedTuple):
    """The lanes of one file: operators and calls, annotations, Python functions."""

    ops: Lane
    annotations: Lane
    python: Lane


def thread_ranks(lanes: Lanes) -> dict[int, int]:
    """Code of a thread with scopes → its place in order of process and thread ids."""
    codes = {code for lane in lanes for code in lane.thread[changes(lane.thread)].tolist()}

    def place(code: int) -> list[tuple[bool, int, str]]:
        return [*map(_id_order, lanes.ops.trace.ids_of(code))]

    return {code: rank for rank, code in enumerate(sorted(codes, key=place))}


def _id_order(identity: int | str | None) -> tuple[bool, int, str]:
    """The place of the id of a process or thread in order: ids that are or spell a number by that, then others."""
    number = identity
    if isinstance(identity, str):
        number = int(identity) if identity.isdecimal() and len(identity) <= 18 else None
    return number is None, int(number or 0), str(identity)


def build_lanes(trace: Trace, notes: Notes) -> Lanes:
    """The lanes of the complete events of ``trace``."""
    lanes = (lane_of(trace, trace.complete(kind), notes) for kind in (cat.OPS, (cat.ANNOTATION,), (cat.PYTHON,)))
    return Lanes(*lanes)


def lane_of(trace: Trace, rows: Int64, notes: Notes | None = None) -> Lane:
    """The lane made of the complete events ``rows``; what is wrong with those of a whole category is added to
    ``notes``.
    """
    if not len(rows):
        return no_rows(Lane, trace=trace)
    notes = notes or Notes()
    rows, thread = _outer_first(trace, rows, trace.thread(rows))
    start, recorded = trace.spans(rows)
    parent, end, depth = _nest(thread, start, recorded)
    is_included = depth < bounds.SCOPES
    if not is_included.all():  # what is in a scope that is left out is deeper still
        notes.add(
            "deep-scopes",
            f"scopes that are nested deeper than {bounds.SCOPES} count in the self time of the scope around them",
            np.count_nonzero(~is_included),
        )
        parent = values_at(np.cumsum(is_included) - 1, parent)
        rows, thread, start, recorded, end, depth, parent = (
            x[is_included] for x in (rows, thread, start, recorded, end, depth, parent)
        )
    cut = recorded > end
    notes.add(
        "overlapping-scopes",
        "scopes end after the scope around them; the time after its end counts in no self time",
        cut.sum(),
    )
    self_ns = end - start
    inner = parent >= 0
    np.subtract.at(self_ns, parent[inner], (end - start)[inner])
    return Lane(
        trace=trace,
        rows=rows,
        thread=thread,
        start=start,
        end=end,
        parent=parent.astype(np.int32),
        depth=depth.astype(np.int16),  # narrow numbers are sorted in linear time
        self_ns=self_ns,
    )


def _outer_first(trace: Trace, rows: Int64, thread: Int64) -> tuple[Int64, Int64]:
    """Sort by thread and start; of scopes that start together the longer, then operators before calls, then the earlier
    recorded id.
    """
    order = np.lexsort((trace.ts[rows], thread))
    rows, thread = rows[order], thread[order]
    ties = tied(thread, trace.ts[rows])
    if len(ties):
        some = rows[ties]
        recorded = np.full(len(some), MISSING, np.int64)
        for name in ("External id", "Ev Idx", "Python id"):
            recorded = np.where(recorded == MISSING, trace.integer_column(name, *cat.HOST)[some], recorded)
        keys = (name_order(trace, some), recorded, trace.category[some], -trace.dur[some], trace.ts[some], thread[ties])
        rows[ties] = some[np.lexsort(keys)]
    return rows, thread


def tied(*columns: Int64) -> Int64:
    """Positions of the rows of ``columns`` that equal the one before or after them."""
    same = ~changes(*columns)
    return np.flatnonzero(same | np.append(same[1:], False))


def name_order(trace: Trace, rows: Int64) -> Int64:
    """int64[m]: the place in the alphabet of the name of each of the events at ``rows``."""
    place = np.empty(len(trace.names), np.int64)
    place[sorted(range(len(place)), key=trace.names.__getitem__)] = np.arange(len(place))
    return place[trace.name[rows]]


def _nest(thread: Int64, start: Int64, recorded_end: Int64) -> tuple[Int64, Int64, Int64]:
    """(parent, end cut at the parent's, depth), each int64[n], of scopes sorted outer first."""
    n = len(start)
    threads = np.append(np.flatnonzero(changes(thread)), n)
    low = int(start.min())
    span = int(recorded_end.max()) - low + 1
    if span < (1 << 62) // len(threads):
        apart = np.repeat(np.arange(len(threads) - 1), np.diff(threads)) * span  # one thread after the other
        parent, depth = _nest_within(start - low + apart, recorded_end - low + apart)
        overhanging = np.flatnonzero((parent >= 0) & (recorded_end > recorded_end[parent]))
        crossing = distinct(last_up_to(threads, overhanging)).tolist()
    else:
        parent, depth = all_none(n), zeros(n)
        crossing = list(range(len(threads) - 1))
    end = recorded_end.copy()
    for k in crossing:
        _nest_crossing(int(threads[k]), int(threads[k + 1]), start, recorded_end, parent, end, depth)
    return parent, end, depth


def _nest_within(start: Int64, end: Int64) -> tuple[Int64, Int64]:
    """(parent, depth) of scopes in order of their start, each of which ends before the one around it does.

    Where one ends later, the first such scope of a thread has a parent that ends before it; what comes after is void.
    """
    n = len(start)
    index = np.arange(n)
    empty = np.concatenate(([0], np.cumsum(start == end)))
    closed = np.searchsorted(np.sort(end), start, side="right")
    closed -= empty[np.searchsorted(start, start, side="right")] - empty[:-1]  # empty ones that come only now or later
    depth = index - closed
    key = depth * n + index
    order = np.argsort(key)
    parent = order[np.searchsorted(key[order], key - n) - 1]  # the last one before, one level up
    return np.where(depth > 0, parent, -1), depth


def _nest_crossing(
    first: int, last: int, start: Int64, recorded_end: Int64, parent: Int64, end: Int64, depth: Int64
) -> None:
    """Set parent, end and depth of the scopes ``first`` to ``last`` of one thread, some of which end after the one
    around them.
    """
    open_ends, open_at = [int(np.iinfo(np.int64).max)], [-1]
    for block in range(first, last, BLOCK):  # blocks bound the Python objects alive at a time
        stop = min(block + BLOCK, last)
        parents, ends, depths = [], [], []
        for i, s, e in zip(
            range(block, stop), start[block:stop].tolist(), recorded_end[block:stop].tolist(), strict=True
        ):
            while open_ends[-1] <= s:
                open_ends.pop()
                open_at.pop()
            parents.append(open_at[-1])
            depths.append(len(open_at) - 1)
            if e > open_ends[-1]:
                e = open_ends[-1]
            ends.append(e)
            open_ends.append(e)
            open_at.append(i)
        parent[block:stop], end[block:stop], depth[block:stop] = parents, ends, depths


ALWAYS = -(1 << 62)
"""Before every time: where every painting begins."""


Pieces = list[Int64]
"""Start and end in ns of disjoint parts of scopes, and their positions in the lane."""


class Painting(FrozenStruct):
    """The row that applies from each time to the next; the first time is ALWAYS.

    Attributes:
        times: int64[n] ns, ascending. rows: int64[n] row of the trace, −1 for nothing.
    """

    times: Int64
    rows: Int64

    def rows_at(self, times: Int64) -> Int64:
        """int64[m]: the row that applies from each of ``times`` on."""
        return self.rows[last_up_to(self.times, times)]

    def within(self, start: int, end: int) -> Painting:
        """The same from ``start`` to ``end``; before and after that what is there may go on."""
        first = int(np.searchsorted(self.times, start, side="right")) - 1
        last = int(np.searchsorted(self.times, end, side="left"))
        times = self.times[first : last + 1].copy()  # with where the last row ends, since one row alone is nothing
        times[:1] = ALWAYS
        return Painting(times, self.rows[first : last + 1])

    def cut(self, start: Int64, end: Int64) -> tuple[Int64, Int64, Int64, Int64]:
        """Any intervals, cut where the row changes: (which interval, row, start, end) of each piece, each int64[m]."""
        which, place, low, high = cut(start, end, np.append(self.times, -ALWAYS))
        return which, self.rows[place], low, high


NOTHING = Painting(int64_of([ALWAYS]), int64_of([-1]))


def _before(lane: Lane, inner: Int64) -> Pieces:
    """The parts of scopes before each of their children ``inner``."""
    siblings = sorted_by(inner, lane.parent)
    parent = lane.parent[siblings]
    since = np.where(changes(parent), lane.start[parent], np.roll(lane.end[siblings], 1))
    return _lasting(since, lane.start[siblings], parent)


def _after(lane: Lane, inner: Int64, scopes: Int64) -> Pieces:
    """The parts of ``scopes`` after all their children, which are among ``inner``."""
    since = lane.start.copy()
    np.maximum.at(since, lane.parent[inner], lane.end[inner])
    return _lasting(since[scopes], lane.end[scopes], scopes)


def _lasting(start: Int64, end: Int64, position: Int64) -> Pieces:
    lasting = np.flatnonzero(end > start)
    return [start[lasting], end[lasting], position[lasting]]


def painted(start: Int64, end: Int64, rows: Int64) -> Painting:
    """The painting of disjoint pieces."""
    if not len(start):
        return NOTHING
    order = stable_order(start)
    start, end, rows = start[order], end[order], rows[order]
    is_last = np.append(start[1:] > end[:-1], True)  # where nothing follows at once
    place = np.arange(1, len(start) + 1) + np.cumsum(is_last) - is_last
    size = 1 + len(start) + np.count_nonzero(is_last)
    times, then = np.full(size, ALWAYS), np.full(size, -1)
    times[place], then[place] = start, rows
    times[place[is_last] + 1] = end[is_last]
    return Painting(times, then)


def overlaid(upper: Painting, lower: Painting) -> Painting:
    """``upper``, and where it is nothing ``lower``."""
    if len(upper.times) == 1 or len(lower.times) == 1:
        return lower if len(upper.times) == 1 else upper
    times = np.concatenate((upper.times, lower.times))
    order = stable_order(times)  # in linear time: both are sorted
    times, reached = times[order], np.cumsum(order < len(upper.times), dtype=np.int32)
    del order
    last = np.flatnonzero(np.append(times[1:] > times[:-1], True))
    times, reached = times[last], reached[last]
    rows = upper.rows[reached - 1]
    bare = np.flatnonzero(rows < 0)
    rows[bare] = lower.rows[(last - reached)[bare]]
    return Painting(times, rows)
