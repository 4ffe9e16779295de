"""int64 arrays: intervals, painting (which of several covers each instant), codes and sums of equal rows, groups by a
key; and memory that no array needs any more.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tracediff import bounds
from tracediff.structs import FrozenStruct

Int64 = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
AnyArray = NDArray[Any]

MISSING = np.iinfo(np.int64).min
"""Marks a time, or an integer argument, that an event does not carry."""


class Spans(FrozenStruct):
    """What lasts from start to end: start int64[n], end int64[n] in ns."""

    start: Int64
    end: Int64

    @property
    def ns(self) -> Int64:
        """int64[n] durations in ns."""
        return self.end - self.start


class Intervals(Spans):
    """Intervals that are sorted, disjoint and not empty."""

    def covers(self, times: Int64) -> Bools:
        """bool[m]: which of ``times`` (ns) lie inside."""
        covered: Bools = times < np.append(self.end, MISSING)[last_up_to(self.start, times)]
        return covered

    def length_before(self, times: Int64) -> Int64:
        """int64[m]: how much of the set lies before each of ``times``, in ns."""
        position = last_up_to(self.start, times)
        begun = np.append(0, np.cumsum(self.ns))[position + 1]
        end = np.append(self.end, MISSING)[position]
        before: Int64 = begun - (np.maximum(end, times) - times)
        return before


def union(start: Int64, end: Int64) -> Intervals:
    """The union of any intervals, in any order; empty and reversed ones add nothing."""
    lasting = end > start
    start, end = start[lasting], end[lasting]
    if not len(start):
        return Intervals(start, end)
    order = stable_order(start)
    start, end = start[order], np.maximum.accumulate(end[order])
    first = np.concatenate(([True], start[1:] > end[:-1]))
    last = np.concatenate((first[1:], [True]))
    return Intervals(start[first], end[last])


def cut(start: Int64, end: Int64, borders: Int64) -> tuple[Int64, Int64, Int64, Int64]:
    """Any intervals cut at ``borders`` (ascending): of each piece (which interval, between which borders k and k + 1,
    start, end), each int64[m].

    What lies before the first border or from the last on is left out, and empty pieces are.
    """
    first = np.maximum(last_up_to(borders, start), 0)
    last = np.minimum(np.searchsorted(borders, end, side="left"), len(borders) - 1)
    pieces = np.maximum(last - first, 0)
    which = np.repeat(np.arange(len(start)), pieces)
    place = np.arange(len(which)) - np.repeat(np.cumsum(pieces) - pieces, pieces) + first[which]
    low, high = np.maximum(start[which], borders[place]), np.minimum(end[which], borders[place + 1])
    lasting = low < high
    if lasting.all():
        return which, place, low, high
    return which[lasting], place[lasting], low[lasting], high[lasting]


BARE = np.int64((1 << 63) - 1)
"""The layer of what no interval covers."""


def edges_of(*times: Int64) -> Int64:
    """int64[k + 1] ns: the distinct values of ``times``, ascending."""
    return distinct(np.concatenate(times))


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


def busy_ns(start: Int64, end: Int64, step: Int64, steps: int) -> Int64:
    """int64[steps]: what each step adds to the union of its own and all later steps' events.

    Args:
        start, end: int64[m] ns of events in one place (a GPU, a stream).
        step: int64[m] position of their step; events outside every step (below 0) add nothing.
        steps: number of steps.
    """
    mine = np.flatnonzero(step >= 0)
    edges = edges_of(start[mine], end[mine])
    earlier = paint(edges, start[mine], end[mine], -step[mine])  # the latest step in the lowest layer
    busy = np.flatnonzero(earlier != BARE)
    return sums(-earlier[busy], np.diff(edges)[busy], steps)


LARGEST = 1 << 62
"""Combinations that are packed into 64 bits."""


def combined(*columns: NDArray[Any]) -> tuple[Int64, Int64]:
    """(int64[n] code of each row's combination of values ≥ −1, in their order, int64[k] first row of each code)."""
    rows = len(columns[0])
    packed, values = zeros(rows), 1
    if not rows:
        return packed, packed
    limit = max(bounds.EMPTY_CELLS * rows, bounds.SMALL_TABLE)
    for column in columns:
        size = int(np.maximum.reduce(column)) + 2
        if values == 1:
            packed, values = column + np.int64(1), size
            continue
        if values * size > (limit if values <= limit else LARGEST):  # fewer are used than there are
            packed, values = _dense(packed, values, limit)
        packed *= size
        packed += column
        packed += 1
        values *= size
    packed, number = _dense(packed, values, limit)
    first = np.empty(number, np.int64)
    first[packed[::-1]] = np.arange(rows - 1, -1, -1, dtype=np.int32)
    return packed, first


def _dense(packed: Int64, values: int, limit: int) -> tuple[Int64, int]:
    """(``packed``, all below ``values``, as codes in the same order, their number); it is overwritten."""
    if values > limit:
        return _sorted(packed, values)
    used = np.flatnonzero(marked(packed, values))
    code = np.empty(values, np.int32)
    code[used] = np.arange(len(used), dtype=np.int32)
    packed[:] = code[packed]
    return packed, len(used)


def _sorted(packed: Int64, values: int) -> tuple[Int64, int]:
    bits = len(packed).bit_length()
    if values << bits > LARGEST:
        used, code = np.unique(packed, return_inverse=True)
        return code.astype(np.int64), len(used)
    packed <<= bits
    packed |= np.arange(len(packed), dtype=np.int32)
    packed.sort()  # numbers alone are sorted faster than their places
    new = changes(packed >> bits)
    packed &= (1 << bits) - 1
    code = np.empty(len(packed), np.int64)
    code[packed] = np.cumsum(new, dtype=np.int32) - np.int32(1)
    return code, int(new.sum())


def numbered_texts(texts: Iterable[str]) -> tuple[Int64, list[str]]:
    """(int64[n] place of each text among the distinct ones, these in order)."""
    texts = list(texts)
    ordered = sorted(set(texts))
    place = {text: k for k, text in enumerate(ordered)}
    return int64_of([place[text] for text in texts]), ordered


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """The different ones of ``values``, ascending: `np.unique`, which imports numpy.ma (a tenth of numpy) for it."""
    ordered = np.sort(values)
    return ordered[changes(ordered)]


def marked(places: Sequence[int] | Int64, size: int) -> Bools:
    """bool[size]: which positions are among ``places``, of which −1 is the last position."""
    is_marked = np.zeros(size, bool)
    is_marked[places] = True
    return is_marked


def changes(*columns: NDArray[Any]) -> Bools:
    """bool[n]: which rows of ``columns`` differ from the row before; the first one does."""
    new = np.zeros(len(columns[0]), bool)
    new[:1] = True
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return new


def int64_of(values: Any) -> Int64:
    """``values`` as int64, also if there are none."""
    return np.array(values, np.int64)


def zeros(shape: int | tuple[int, ...]) -> Int64:
    """int64 zeros of a length, or of several axes."""
    return np.zeros(shape, np.int64)


def all_none(length: int) -> Int64:
    """int64[length] of −1, for none."""
    return np.full(length, -1, np.int64)


def mapped(codes: NDArray[Any], value: Callable[[int], int]) -> Int64:
    """int64[n]: the ``value`` of each of ``codes`` (≥ −1), which is called once for each distinct one."""
    code, first = combined(codes)
    return int64_of([value(used) for used in codes[first].tolist()])[code]


def values_at(values: NDArray[Any], places: NDArray[Any]) -> Int64:
    """int64[m]: the value at each of ``places``, −1 where that is −1."""
    out: Int64 = np.concatenate((values, [-1]))[places]
    return out


def last_up_to(ordered: Int64, values: Int64) -> Int64:
    """int64[m]: position of the last one in ``ordered``, which ascends, up to each of ``values``, −1 for none."""
    return np.searchsorted(ordered, values, side="right") - 1


def last_equal(ordered: Int64, values: Int64) -> Int64:
    """int64[m]: position of the last one in ``ordered``, which ascends, that equals each of ``values``, −1 for none."""
    position = last_up_to(ordered, values)
    if len(ordered):
        position[ordered[position] != values] = -1
    return position


def rows_with(keys: Int64, rows: Int64, numbers: Int64) -> Int64:
    """int64[m]: the last of ``rows`` whose key is each of ``numbers``, −1 for none."""
    order = stable_order(keys)
    return values_at(rows[order], last_equal(keys[order], numbers))


def codes_of(*columns: AnyArray) -> Int64:
    """int64[n] codes of equal rows of ``columns``, whose values may be any: slower than `combined`."""
    return np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)[1].reshape(-1)


def last_begun(lane: AnyArray, begin: Int64, lanes: AnyArray, times: Int64) -> Int64:
    """int64[m]: position of the last of the scopes on ``lane`` from ``begin`` on that had begun on each of ``lanes`` by
    each of ``times``, −1 for none; of those that begin together the last.
    """
    scopes, every = len(lane), np.concatenate((lane, lanes))
    order = np.lexsort((np.concatenate((begin, times)), every))  # of equals the scopes first
    latest = np.maximum.accumulate(np.where(order < scopes, np.arange(len(order)), -1))
    is_on_lane = (latest >= 0) & (every[order[latest]] == every[order])
    out = np.empty(len(order), np.int64)
    out[order] = np.where(is_on_lane, order[latest], -1)
    return out[scopes:]


def tuples(*columns: NDArray[Any]) -> Iterator[tuple[Any, ...]]:
    """The rows of ``columns`` as tuples of Python's own numbers."""
    return zip(*(column.tolist() for column in columns), strict=True)


def concatenated(parts: Iterable[Sequence[NDArray[Any]]]) -> list[Int64]:
    """The columns of several groups of rows, one after the other."""
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


Rows = tuple[AnyArray | int, ...]
"""The columns of some rows; a number is the value of all."""


def stacked(*parts: Rows) -> list[Int64]:
    """The columns of several groups of rows, one after the other."""
    return concatenated([np.broadcast_arrays(*part) for part in parts])


def with_ancestors(parent: Int64, node: Int64) -> list[Int64]:
    """[position in ``node``, a node around it or itself], int64[m] each; −1 has none.

    Args:
        parent: int64[k] of every node, −1 for roots.
    """
    inside = np.flatnonzero(node >= 0)
    parts = [(inside, node[inside])]
    while len(inside):
        around = parent[parts[-1][1]]
        inside = np.flatnonzero(around >= 0)
        parts.append((parts[-1][0][inside], around[inside]))
    return concatenated(parts)


def group_rows(key: AnyArray, rows: Int64) -> list[Int64]:
    """``rows`` in groups of equal ``key``, which is sorted."""
    return np.split(rows, np.flatnonzero(changes(key))[1:]) if len(rows) else []


def stable_order(values: AnyArray) -> Int64:
    """int64[n]: the positions of ``values`` in ascending order; equals keep their order."""
    return np.argsort(values, kind="stable")


def ordinals(group: Int64) -> Int64:
    """int64[n]: how many earlier rows have the same value in ``group``."""
    order = stable_order(group)
    ordered, out = group[order], np.empty(len(group), np.int64)
    out[order] = np.arange(len(group)) - np.searchsorted(ordered, ordered)
    return out


def sorted_by(rows: Int64, *keys: AnyArray) -> Int64:
    """``rows`` in the order of their values in ``keys``, the last of which decides first; equals keep their order."""
    ordered: Int64 = rows[np.lexsort([key[rows] for key in keys])]
    return ordered


def sums(place: Int64, values: NDArray[Any] | int, size: int) -> Int64:
    """int64[size]: the sum of the values at each place; a number is the value of all."""
    out = zeros(size)
    np.add.at(out, place, np.asarray(values, np.int64))  # of one type, else numpy adds them up one by one
    return out


def least(place: Int64, values: Int64, size: int) -> Int64:
    """int64[size]: the least of the values at each place; the largest integer where there is none."""
    out = np.full(size, np.iinfo(np.int64).max)
    np.minimum.at(out, place, values)
    return out


def most(place: Int64, values: Int64, size: int) -> Int64:
    """int64[size]: the largest of the values at each place; the least integer where there is none."""
    out = np.full(size, np.iinfo(np.int64).min)
    np.maximum.at(out, place, values)
    return out


def grouped(keys: Sequence[NDArray[Any]], amounts: Sequence[NDArray[Any] | int]) -> tuple[list[Int64], list[Int64]]:
    """Sum rows with equal ``keys`` ≥ −1: (the distinct keys in ascending order, the sums of ``amounts``, of which a
    number is that of each row), every array int64.
    """
    code, first = combined(*keys)
    return [key[first].astype(np.int64) for key in keys], [sums(code, amount, len(first)) for amount in amounts]


def return_freed(events: int) -> None:
    """Return freed memory to the system, between parts of work on a file of so many events. glibc keeps what lies below
    something that is still used, a third of what a large file takes; other C libraries are left alone.
    """
    if events < bounds.EVENTS_TRIMMED or sys.platform != "linux":
        return
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


Thing = TypeVar("Thing")
Key = TypeVar("Key", bound=Hashable)


def shared_value(values: Iterable[Key]) -> Key | None:
    """What all of ``values`` are; None where they differ, or there are none."""
    different = {*values}
    return different.pop() if len(different) == 1 else None


def group_by(things: Iterable[Thing], key: Callable[[Thing], Key]) -> defaultdict[Key, list[Thing]]:
    """``key`` → those of ``things`` that have it, in their order; an empty list for a key that none has."""
    groups: defaultdict[Key, list[Thing]] = defaultdict(list)
    for thing in things:
        groups[key(thing)].append(thing)
    return groups
