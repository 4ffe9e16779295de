"""How alike two pieces of work are that no operator distinguishes: names, fused operators, families, times, grids."""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from tracediff import bounds, thresholds
from tracediff.arrays import Floats, Int64, distinct
from tracediff.diff.matching.align import only_ones
from tracediff.diff.matching.items import Item
from tracediff.patterns import late
from tracediff.profile.kernels.families import OTHER

WORD = late(r"[a-z0-9]+")


class FusedWords:
    """The words of both sides' fused kernels, as rows of numbers; work that is not fused has none.

    The second ``add`` of a name is a word of its own, so that rows are sets.
    """

    def __init__(self, control: Sequence[Item], test: Sequence[Item]) -> None:
        codes: dict[tuple[str, int], int] = {}
        words_of_list: dict[tuple[str, ...], list[int]] = {(): []}
        self._words, self._start, self._size = zip(
            *(_rows([_words_of(i.fused, codes, words_of_list) for i in side]) for side in (control, test)), strict=True
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


def _words_of(
    fused: tuple[str, ...], codes: dict[tuple[str, int], int], words_of_list: dict[tuple[str, ...], list[int]]
) -> list[int]:
    if fused not in words_of_list:
        words = (word for entry in fused for word in WORD.findall(entry.replace("_", " ")))
        counts = Counter(islice(words, bounds.FUSED_WORDS))
        words_of_list[fused] = [
            codes.setdefault((w, k), len(codes)) for w, count in counts.items() for k in range(count)
        ]
    return words_of_list[fused]


def _rows(rows: list[list[int]]) -> tuple[Int64, Int64, Int64]:
    """All rows in one array, where each begins, and its length."""
    sizes = np.array([len(row) for row in rows], np.int64)
    return np.array([code for row in rows for code in row], np.int64), np.cumsum(sizes) - sizes, sizes


def _part(shared: Int64, one: Int64, other: Int64) -> Floats:
    part: Floats = shared / np.maximum(one + other - shared, 1)
    return part


STEADY = ("gemm", "conv", "attention")
"""Families whose kernels change their names with their sizes, so that the family says more of them."""


class Similarity:
    """The scores of pairs of two sequences of work, computed for those pairs that are asked for.

    Durations are compared after the factor that both sides' families have in common (`calibrate`) is taken off.

    Attributes:
        names: int64 of each side: codes of category and match name, the same on both sides.
        twin_of: int64 of each side: the other's position of the only piece of its name and launch shape, where it is
            the only one here, too, and launch shapes recur; −1 for none.
    """

    def __init__(self, control: Sequence[Item], test: Sequence[Item]) -> None:
        sides = control, test
        self.names = _coded(sides, lambda i: i.match[:2])
        self._kind = _coded(sides, lambda i: (i.family, i.match[0]) if i.family != OTHER else None)
        self._shape = _coded(sides, lambda i: i.launch_shape or None)
        self._family = _coded(sides, lambda i: i.family)
        self._of_family = np.array(
            [thresholds.SAME_STEADY_FAMILY if i.family in STEADY else thresholds.SAME_FAMILY for i in control]
        )
        self._fused = _flags(sides, lambda i: bool(i.fused))
        self._bare = _flags(sides, lambda i: i.op is None)
        self._words = FusedWords(control, test)
        self._log = _log_durations(control), _log_durations(test)
        self._expected = self._log[0]
        names = _coded(sides, lambda i: i.match[:2] if i.launch_shape else None)
        names_on_shapes = _coded(sides, lambda i: (i.match[:2], i.launch_shape) if i.launch_shape else None)
        recurring = _shared(names_on_shapes) / max(_shared(names), 1)  # of work whose name recurs on the other side
        self._grid = thresholds.OTHER_GRID * recurring
        self.twin_of = np.full(len(control), -1), np.full(len(test), -1)
        for i, j in only_ones(*(side.tolist() for side in names_on_shapes)) if recurring >= 0.5 else ():
            if names_on_shapes[0][i] >= 0 and (self._bare[0][i] or self._bare[1][j]):
                self.twin_of[0][i], self.twin_of[1][j] = j, i

    def row(self, i: int, j: Int64) -> Floats:
        """float64[len(j)]: scores of the control's ``i``-th piece with the pieces ``j`` of the test."""
        fused = self._words.row(i, j) if self._fused[0][i] and self._fused[1][j].any() else None
        return self._scores(i, j, fused)

    def pairs(self, i: Int64, j: Int64) -> Floats:
        """float64[len(i)]: scores of the control's ``i[k]`` with the test's ``j[k]``."""
        fused = self._words.pairs(i, j) if (self._fused[0][i] & self._fused[1][j]).any() else None
        return self._scores(i, j, fused)

    def _scores(self, i: int | Int64, j: Int64, fused: Floats | None) -> Floats:
        (shape, other_shape), (twin, other_twin) = (
            (self._shape[0][i], self._shape[1][j]),
            (self.twin_of[0][i], self.twin_of[1][j]),
        )
        names = np.where((self._kind[0][i] == self._kind[1][j]) & (self._kind[1][j] >= 0), self._of_family[i], 0.0)
        if fused is not None:
            by_words = thresholds.NONE_SHARED + (thresholds.ALL_SHARED - thresholds.NONE_SHARED) * fused
            names = np.where(self._fused[0][i] & self._fused[1][j], by_words, names)
        names = np.where(self.names[0][i] == self.names[1][j], 1.0, names)
        factor = np.abs(self._log[1][j] - self._expected[i])
        apart = np.minimum(thresholds.OTHER_DURATION * factor, thresholds.OTHER_DURATION_MOST)
        differs = (other_shape != shape) & (shape >= 0) & (other_shape >= 0)
        score: Floats = names - apart - self._grid * differs
        allowed = (score >= thresholds.LEAST_SCORE) & (self._bare[0][i] | self._bare[1][j]) & (other_twin < 0)
        return np.where(np.where(twin >= 0, twin == j, allowed), score, -1e9)

    def comparable(self) -> tuple[Int64, Int64]:
        """The positions of each side whose work any of the other side can be the same as: one of its name or family, or
        both fused.
        """
        positions = []
        for side, other in ((0, 1), (1, 0)):
            has_kind = (self._kind[side] >= 0) & np.isin(self._kind[side], self._kind[other])
            fused = self._fused[side] & self._fused[other].any()
            positions.append(np.flatnonzero(has_kind | fused | np.isin(self.names[side], self.names[other])))
        return positions[0], positions[1]

    def calibrate(self, i: Int64, j: Int64) -> None:
        """Take as each family's factor between the sides the median of the pairs of ``i`` and ``j``; that of all where
        it has few.
        """
        ratios = self._log[1][j] - self._log[0][i]
        families = self._family[0]
        common = _median(ratios) if len(ratios) >= 3 else 0.0
        factors = np.full(int(families.max(initial=0)) + 1, common)
        for family in distinct(families[i]):
            if np.count_nonzero(mine := families[i] == family) >= 3:
                factors[family] = _median(ratios[mine])
        self._expected = self._log[0] + factors[families]


def _median(values: Floats) -> float:
    """The median of some numbers: `np.median`, which imports numpy.ma for it."""
    ordered, middle = np.sort(values), len(values) // 2
    return float(ordered[~middle] + ordered[middle]) / 2


def _coded(sides: tuple[Sequence[Item], ...], key: Callable[[Item], Hashable]) -> tuple[Int64, Int64]:
    """int64 of each side: one number for each ``key``, −1 for None."""
    codes: dict[Hashable, int] = {None: -1}
    control, test = (np.array([codes.setdefault(key(i), len(codes) - 1) for i in side], np.int64) for side in sides)
    return control, test


def _flags(sides: tuple[Sequence[Item], ...], key: Callable[[Item], bool]) -> tuple[NDArray[np.bool_], ...]:
    return tuple(np.array([key(i) for i in side], bool) for side in sides)


def _log_durations(items: Sequence[Item]) -> Floats:
    """float64[n]: log of each item's mean duration as a share of all of its side."""
    means = np.array([max(i.ns, 1) / max(i.count, 1) for i in items], float)
    logs: Floats = np.log(means / max(means.sum(), 1e-9))
    return logs


def _shared(codes: Sequence[Int64]) -> int:
    """How many of one side's ``codes`` can each have an equal one of the other's; −1 has none."""
    counts = [Counter(side[side >= 0].tolist()) for side in codes]
    return (counts[0] & counts[1]).total()
