"""Small leaves: those far below what any line shows are added up before the tree is built, so that a million leaves
cost no more than what there is to say.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tracediff.explain.leaves import Chain
from tracediff.profile.arrays.factorize import combined

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SMALL = 0.005
"""Part of the step's change up to which leaves are added up; a line needs ten times as much."""
FEW = 10_000
"""Leaves of which a tree is built at once."""


def added_up(chains: Sequence[Chain], path: Floats, total: Floats, work: Floats) -> list[Ints]:
    """The leaves, each alone or with others that the tree need not tell apart: small ones of one parent with work on
    the same sides, whose work and times change in the same direction. What is together changes by SMALL at most, so
    sums over a parent's children, without regard to sign or not, stay as they are.

    Args:
        chains: of each leaf. path, total: float64[2, l] ns per step. work: float64[l] ns, see `Effects`.
    """
    count = len(chains)
    if count <= FEW:
        return list(np.arange(count)[:, None])
    scale = abs(float(path[1].sum() - path[0].sum()))
    has = total > 0
    change = np.maximum(np.abs(work), np.abs(path[1] - path[0]))
    change = np.where(has.all(axis=0), change, np.maximum(change, total.max(axis=0)))
    with np.errstate(divide="ignore", invalid="ignore"):
        size = change / (SMALL * scale)
    is_large = size >= 1  # where nothing changes, not even the step, the size is not a number
    small, large = np.flatnonzero(~is_large), np.flatnonzero(is_large)
    parents: dict[Chain, int] = {}
    parent = np.array([parents.setdefault(chains[i][:-1], len(parents)) for i in small.tolist()], np.int64)
    sides = has[:, small].astype(np.int64)
    longer = (total[1] > total[0])[small].astype(np.int64)
    kind, _ = combined(parent, sides[0], sides[1], longer, np.sign(work[small]).astype(np.int64))
    order = np.argsort(kind, kind="stable")
    passed = np.cumsum(np.nan_to_num(size[small[order]]))
    first = np.flatnonzero(np.diff(kind[order], prepend=-1))
    since = np.repeat(passed[first], np.diff(first, append=len(order)))
    part = np.floor(passed - since).astype(np.int64)
    borders = np.flatnonzero((np.diff(kind[order]) != 0) | (np.diff(part) != 0)) + 1
    pieces = np.split(small[order], borders) if len(small) else []
    together = [*large[:, None], *pieces]
    return sorted(together, key=lambda leaves: int(leaves[0]))  # as the leaves were
