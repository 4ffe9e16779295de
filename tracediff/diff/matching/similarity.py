"""How alike two pieces of work are that no operator tells apart: names, fused operators, families, durations, grids.

Nothing here is a key: another batch size changes grids and durations, another capture the counters of generated
kernels,
another heuristic the algorithm of a matrix product. Each is evidence, and the order of the work decides between equals.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tracediff.diff.matching.items import Item
from tracediff.profile.kernels.families import OTHER

Floats = NDArray[np.float64]

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
WORD = re.compile(r"[a-z0-9]+")
STEADY = ("gemm", "conv", "attention")
"""Families whose kernels change their names with their sizes, so that the family says more of them."""
STEADY_FAMILY = 0.5


class Similarity:
    """The scores of all pairs of two sequences of work, row by row.

    Work of one name is scored once; durations are compared after the factor that both sides' families have in common
    (`calibrate`) is taken off.

    Attributes:
        twins: control → test, where a name occurs once on both sides with one launch shape, and launch shapes recur.
    """

    def __init__(self, control: Sequence[Item], test: Sequence[Item]) -> None:
        self._control, self._test = control, test
        self._kind = _kinds(control), _kinds(test)
        self._names = _name_scores(*(_first_of(*side) for side in zip((control, test), self._kind, strict=True)))
        self._log = _log_durations(control), _log_durations(test)
        self._factor: dict[str, float] = {}
        self._shape = _shapes(control, test)
        recurring = _recurring(control, test)
        self._grid = SAME_GRID + GRIDS_RECUR * recurring
        self.twins = _twins(control, test) if recurring >= 0.5 else {}
        self._single = np.isin(np.arange(len(test)), list(self.twins.values()), invert=True)
        self._bare = tuple(np.array([i.op is None for i in side], bool) for side in (control, test))

    def row(self, i: int) -> Floats:
        """float64[len(test)]: scores of the control's ``i``-th piece with every piece of the test."""
        names = self._names[self._kind[0][i]][self._kind[1]]
        expected = self._log[0][i] + self._factor.get(self._control[i].family, self._factor.get("", 0.0))
        apart = np.minimum(DURATION * np.abs(self._log[1] - expected), LARGEST_DURATION)
        differs = (self._shape[1] != self._shape[0][i]) & (self._shape[0][i] >= 0) & (self._shape[1] >= 0)
        score: Floats = names - apart - self._grid * differs
        allowed = (score >= LEAST) & (self._bare[0][i] | self._bare[1]) & self._single
        if i in self.twins:
            allowed = np.arange(len(allowed)) == self.twins[i]
        return np.where(allowed, score, FORBIDDEN)

    def score(self, i: int, j: int) -> float:
        """The score of one pair."""
        return float(self.row(i)[j])

    def calibrate(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Take as each family's factor between the sides the median of ``pairs``; that of all where it has few."""
        ratios: dict[str, list[float]] = {"": []}
        for i, j in pairs:
            ratio = float(self._log[1][j] - self._log[0][i])
            for family in ("", self._control[i].family):
                ratios.setdefault(family, []).append(ratio)
        self._factor = {family: float(np.median(found)) for family, found in ratios.items() if len(found) >= 3}


def _kinds(items: Sequence[Item]) -> NDArray[np.int64]:
    """int64[n]: the code of each item's name and family."""
    codes: dict[tuple[object, ...], int] = {}
    return np.array([codes.setdefault((i.match[:2], i.family, i.fused), len(codes)) for i in items], np.int64)


def _first_of(items: Sequence[Item], kind: NDArray[np.int64]) -> list[Item]:
    _, first = np.unique(kind, return_index=True)
    return [items[k] for k in first.tolist()]


def _name_scores(control: list[Item], test: list[Item]) -> Floats:
    """float64[kinds, kinds] by names, fused operators and families; 0 where two cannot be the same."""
    words = [[_words(i) for i in side] for side in (control, test)]
    out = np.zeros((len(control), len(test)))
    for x, a in enumerate(control):
        for y, b in enumerate(test):
            out[x, y] = _name_score(a, b, words[0][x], words[1][y])
    return out


def _name_score(a: Item, b: Item, a_words: Counter[str], b_words: Counter[str]) -> float:
    if a.match[:2] == b.match[:2]:
        return SAME_NAME
    if a.fused and b.fused:
        shared = sum((a_words & b_words).values()) / max(sum((a_words | b_words).values()), 1)
        return FUSED_LEAST + (FUSED_MOST - FUSED_LEAST) * shared
    if a.family == b.family != OTHER and a.match[0] == b.match[0]:
        return STEADY_FAMILY if a.family in STEADY else SAME_FAMILY
    return 0.0


def _words(item: Item) -> Counter[str]:
    return Counter(word for entry in item.fused for word in WORD.findall(entry.replace("_", " ")))


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


def _shapes(control: Sequence[Item], test: Sequence[Item]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    codes: dict[str, int] = {}

    def coded(items: Sequence[Item]) -> NDArray[np.int64]:
        shapes = (i.work.launch_shape for i in items)
        return np.array([codes.setdefault(s, len(codes)) if s else -1 for s in shapes], np.int64)

    return coded(control), coded(test)
