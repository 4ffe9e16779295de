"""Integer codes for combinations of columns, vectorised."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tracediff.ingest.times import Int64


def combined(*columns: Int64) -> tuple[Int64, Int64]:
    """(int64[n] code of each row's combination of values ≥ −1, int64[k] first row of each code)."""
    packed = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        size = int(column.max()) + 2 if len(column) else 1
        if len(packed) and int(packed.max()) >= (1 << 62) // size:
            packed = np.unique(packed, return_inverse=True)[1].astype(np.int64)
        packed = packed * size + column + 1
    _, first, inverse = np.unique(packed, return_index=True, return_inverse=True)
    return inverse.astype(np.int64), first.astype(np.int64)


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
