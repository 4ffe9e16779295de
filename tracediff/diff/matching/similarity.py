"""How alike two pieces of work are that no operator tells apart: names, fused operators, families, durations, grids.

Nothing here is a key: another batch size changes grids and durations, another capture the counters of generated
kernels,
another heuristic the algorithm of a matrix product. Each is evidence, and the order of the work decides between equals.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from tracediff.diff.matching.fused_words import Floats, FusedWords, Int64
from tracediff.diff.matching.items import Item
from tracediff.profile.kernels.families import OTHER

FORBIDDEN, LEAST = -1e9, 0.04
"""Score of two pieces of work that cannot be the same, and the least of those that can."""
SAME_NAME, SAME_FAMILY = 1.0, 0.35
FUSED_LEAST, FUSED_MOST = 0.2, 0.85
"""Of two generated kernels by the operators that they list: none shared, all shared."""
DURATION = 0.12
"""Weight of a difference of durations by a factor of e, beyond the factor that their family has in common."""
LARGEST_DURATION = 0.3
SAME_GRID, GRIDS_RECUR = 0.05, 0.6
"""Weight of an equal launch shape; what is added to it as far as the launch shapes of one side recur on the other."""
STEADY = ("gemm", "conv", "attention")
"""Families whose kernels change their names with their sizes, so that the family says more of them."""
STEADY_FAMILY = 0.5
NONE = -1
"""The code of what work does not have: a family, a launch shape, a twin."""


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
        self._shape = _coded(sides, lambda i: i.work.launch_shape or None)
        self._family = _coded(sides, lambda i: i.family)
        self._of_family = np.array([STEADY_FAMILY if i.family in STEADY else SAME_FAMILY for i in control])
        self._fused = _flags(sides, lambda i: bool(i.fused))
        self._bare = _flags(sides, lambda i: i.op is None)
        self._words = FusedWords(control, test)
        self._log = _log_durations(control), _log_durations(test)
        self._expected = self._log[0]
        recurring = _recurring(control, test)
        self._grid = SAME_GRID + GRIDS_RECUR * recurring
        self.twin_of = np.full(len(control), NONE), np.full(len(test), NONE)
        for i, j in (_twins(control, test) if recurring >= 0.5 else {}).items():
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
            by_words = FUSED_LEAST + (FUSED_MOST - FUSED_LEAST) * fused
            names = np.where(self._fused[0][i] & self._fused[1][j], by_words, names)
        names = np.where(self.names[0][i] == self.names[1][j], SAME_NAME, names)
        apart = np.minimum(DURATION * np.abs(self._log[1][j] - self._expected[i]), LARGEST_DURATION)
        differs = (other_shape != shape) & (shape >= 0) & (other_shape >= 0)
        score: Floats = names - apart - self._grid * differs
        allowed = (score >= LEAST) & (self._bare[0][i] | self._bare[1][j]) & (other_twin < 0)
        return np.where(np.where(twin >= 0, twin == j, allowed), score, FORBIDDEN)

    def comparable(self) -> tuple[Int64, Int64]:
        """The positions of each side whose work any of the other side can be the same as: one of its name or family, or
        both fused.
        """
        found = []
        for side, other in ((0, 1), (1, 0)):
            has_kind = (self._kind[side] >= 0) & np.isin(self._kind[side], self._kind[other])
            fused = self._fused[side] & self._fused[other].any()
            found.append(np.flatnonzero(has_kind | fused | np.isin(self.names[side], self.names[other])))
        return found[0], found[1]

    def calibrate(self, i: Int64, j: Int64) -> None:
        """Take as each family's factor between the sides the median of the pairs of ``i`` and ``j``; that of all where
        it has few.
        """
        ratios = self._log[1][j] - self._log[0][i]
        families = self._family[0]
        common = float(np.median(ratios)) if len(ratios) >= 3 else 0.0
        factors = np.full(int(families.max(initial=0)) + 1, common)
        for family in np.unique(families[i]):
            if np.count_nonzero(mine := families[i] == family) >= 3:
                factors[family] = np.median(ratios[mine])
        self._expected = self._log[0] + factors[families]


def _coded(sides: tuple[Sequence[Item], ...], key: Callable[[Item], Hashable]) -> tuple[Int64, Int64]:
    """int64 of each side: one number for each ``key``, −1 for None."""
    codes: dict[Hashable, int] = {None: NONE}
    control, test = (np.array([codes.setdefault(key(i), len(codes) - 1) for i in side], np.int64) for side in sides)
    return control, test


def _flags(sides: tuple[Sequence[Item], ...], key: Callable[[Item], bool]) -> tuple[NDArray[np.bool_], ...]:
    return tuple(np.array([key(i) for i in side], bool) for side in sides)


def _log_durations(items: Sequence[Item]) -> Floats:
    """float64[n]: log of each item's mean duration as a share of all of its side."""
    means = np.array([max(i.ns, 1) / max(i.count, 1) for i in items], float)
    logs: Floats = np.log(means / max(means.sum(), 1e-9))
    return logs


def _recurring(control: Sequence[Item], test: Sequence[Item]) -> float:
    """Which part of the work whose name recurs on the other side recurs there with its launch shape, 0 to 1."""
    named = [Counter(i.match[:2] for i in side if i.work.launch_shape) for side in (control, test)]
    shaped = [
        Counter((i.match[:2], i.work.launch_shape) for i in side if i.work.launch_shape) for side in (control, test)
    ]
    return sum((shaped[0] & shaped[1]).values()) / max(sum((named[0] & named[1]).values()), 1)


def _twins(control: Sequence[Item], test: Sequence[Item]) -> dict[int, int]:
    """The positions of names that both sides have exactly once on the same launch shape."""
    places: list[dict[object, list[int]]] = [defaultdict(list), defaultdict(list)]
    for place, side in zip(places, (control, test), strict=True):
        for k, item in enumerate(side):
            if item.work.launch_shape:
                place[item.match[:2], item.work.launch_shape].append(k)
    both = places[0].keys() & places[1].keys()
    found = {places[0][key][0]: places[1][key][0] for key in both if len(places[0][key]) == len(places[1][key]) == 1}
    return {i: j for i, j in found.items() if control[i].op is None or test[j].op is None}
