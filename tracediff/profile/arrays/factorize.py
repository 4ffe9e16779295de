"""Integer codes for combinations of columns, vectorised."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracediff.ingest.times import Int64

MOST_EMPTY, LEAST = 4, 1 << 12
"""Values per row, or in all, up to which codes are looked up in a table of all values instead of sorted."""
LARGEST = 1 << 62
"""Combinations that are packed into 64 bits."""


def combined(*columns: Int64) -> tuple[Int64, Int64]:
    """(int64[n] code of each row's combination of values ≥ −1, in their order, int64[k] first row of each code)."""
    rows = len(columns[0])
    packed, values = np.zeros(rows, np.int64), 1
    limit = max(MOST_EMPTY * rows, LEAST)
    for column in columns:
        size = int(column.max()) + 2 if rows else 1
        if values * size > (limit if values <= limit else LARGEST):  # fewer are used than there are
            packed, values = _dense(packed, values, limit)
        packed = packed * size + column + 1
        values *= size
    packed, distinct = _dense(packed, values, limit)
    first = np.empty(distinct, np.int64)
    first[packed[::-1]] = np.arange(rows)[::-1]
    return packed, first


def _dense(packed: Int64, values: int, limit: int) -> tuple[Int64, int]:
    """(``packed``, all below ``values``, as codes in the same order, their number)."""
    if values > limit:
        return _sorted(packed, values)
    present = np.zeros(values, bool)
    present[packed] = True
    code = np.cumsum(present, dtype=np.int32)
    return code[packed] - np.int64(1), int(code[-1])


def _sorted(packed: Int64, values: int) -> tuple[Int64, int]:
    bits = len(packed).bit_length()
    if values << bits > LARGEST:
        used, code = np.unique(packed, return_inverse=True)
        return code.astype(np.int64), len(used)
    placed = np.sort(packed << bits | np.arange(len(packed)))  # numbers alone are sorted faster than their places
    ordered = placed >> bits
    new = np.append(True, ordered[1:] != ordered[:-1])
    code = np.empty(len(packed), np.int64)
    code[placed & ((1 << bits) - 1)] = np.cumsum(new) - 1
    return code, int(new.sum())


def numbered_texts(texts: Iterable[str]) -> tuple[Int64, list[str]]:
    """(int64[n] place of each text among the distinct ones, these in order)."""
    texts = list(texts)
    distinct = sorted(set(texts))
    place = {text: k for k, text in enumerate(distinct)}
    return np.array([place[text] for text in texts], np.int64), distinct


def group_rows(key: Int64, rows: Int64) -> list[Int64]:
    """``rows`` in groups of equal ``key``, which is sorted."""
    if not len(rows):
        return []
    return np.split(rows, np.flatnonzero(np.diff(key)) + 1)


def ordinals(group: Int64) -> Int64:
    """int64[n]: how many earlier rows have the same value in ``group``."""
    order = np.argsort(group, kind="stable")
    ordered = group[order]
    starts = (
        np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1]))) if len(group) else np.zeros(0, np.int64)
    )
    lengths = np.diff(np.concatenate((starts, [len(group)])))
    out = np.empty(len(group), np.int64)
    out[order] = np.arange(len(group)) - np.repeat(starts, lengths)
    return out


def sums(place: Int64, values: NDArray[Any], size: int) -> Int64:
    """int64[size]: the sum of the values at each place."""
    out = np.zeros(size, np.int64)
    np.add.at(out, place, values)
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


def grouped(keys: list[Int64], sums: list[Int64]) -> tuple[list[Int64], list[Int64]]:
    """Sum rows with equal keys: (the distinct keys in ascending order, the sums), every array int64."""
    if not len(keys[0]):
        return keys, sums
    order = np.lexsort(keys[::-1])
    new = np.zeros(len(order), bool)
    new[0] = True
    for k in keys:
        ordered = k[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    first = np.flatnonzero(new)
    return [k[order[first]] for k in keys], [np.add.reduceat(s[order], first) for s in sums]
