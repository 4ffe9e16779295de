"""How many of the operators that their names list two fused kernels share."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from tracediff.diff.matching.items import Item

Int64 = NDArray[np.int64]
Floats = NDArray[np.float64]

WORD = re.compile(r"[a-z0-9]+")
MOST_WORDS = 128
"""Words of a kernel that count; compilers cut their names much earlier."""


class FusedWords:
    """The words of both sides' fused kernels, as rows of numbers; work that is not fused has none.

    The second ``add`` of a name is a word of its own, so that rows are sets.
    """

    def __init__(self, control: Sequence[Item], test: Sequence[Item]) -> None:
        codes: dict[tuple[str, int], int] = {}
        known: dict[tuple[str, ...], list[int]] = {(): []}
        self._words, self._start, self._size = zip(
            *(_rows([_coded(i.fused, codes, known) for i in side]) for side in (control, test)), strict=True
        )
        self._marked = np.zeros(len(codes), bool)

    def row(self, i: int, j: Int64) -> Floats:
        """float64[len(j)]: the part of their words that the control's piece ``i`` and each of ``j`` share, 0 to 1."""
        mine = self._words[0][self._start[0][i] : self._start[0][i] + self._size[0][i]]
        self._marked[mine] = True
        words, pair = self._gathered(1, j)
        shared = np.bincount(pair[self._marked[words]], minlength=len(j))
        self._marked[mine] = False
        return _part(shared, self._size[0][i], self._size[1][j])

    def pairs(self, i: Int64, j: Int64) -> Floats:
        """float64[len(i)]: the same of ``i[k]`` and ``j[k]``."""
        mine, theirs = (
            pair * len(self._marked) + words
            for words, pair in (self._gathered(side, positions) for side, positions in ((0, i), (1, j)))
        )
        both = np.intersect1d(mine, theirs, assume_unique=True) // max(len(self._marked), 1)
        return _part(np.bincount(both, minlength=len(i)), self._size[0][i], self._size[1][j])

    def _gathered(self, side: int, positions: Int64) -> tuple[Int64, Int64]:
        """The words of all ``positions``, one after another, and which of the positions each is of."""
        sizes = self._size[side][positions]
        pair = np.repeat(np.arange(len(positions)), sizes)
        first = np.cumsum(sizes) - sizes
        return self._words[side][np.arange(len(pair)) + (self._start[side][positions] - first)[pair]], pair


def _coded(
    fused: tuple[str, ...], codes: dict[tuple[str, int], int], known: dict[tuple[str, ...], list[int]]
) -> list[int]:
    if fused not in known:
        words = (word for entry in fused for word in WORD.findall(entry.replace("_", " ")))
        counts = Counter(islice(words, MOST_WORDS))
        known[fused] = [codes.setdefault((w, k), len(codes)) for w, count in counts.items() for k in range(count)]
    return known[fused]


def _rows(rows: list[list[int]]) -> tuple[Int64, Int64, Int64]:
    """All rows in one array, where each begins, and its length."""
    sizes = np.array([len(row) for row in rows], np.int64)
    return np.array([code for row in rows for code in row], np.int64), np.cumsum(sizes) - sizes, sizes


def _part(shared: Int64, one: Int64, other: Int64) -> Floats:
    part: Floats = shared / np.maximum(one + other - shared, 1)
    return part
