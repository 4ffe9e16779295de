"""The pairs in order that are as alike together as can be, of two sequences of work.

Short sequences are scored whole. Of longer ones each piece is scored with those of the other side around the place that
equal names give it, so that the cost grows with the length and not with its square.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracediff.diff.matching.align import Pairs, align, ascending
from tracediff.diff.matching.fused_words import Int64
from tracediff.diff.matching.similarity import Similarity

MOST_CELLS = 4_000_000
"""Pairs that are scored at once, one byte each."""
LEAST_WIDTH = 256
"""Pieces of the other side that each piece is scored with, however long the sequences are."""
UP, LEFT, PAIRED = range(3)


class Band(NamedTuple):
    """Which of the test's pieces each of the control's is scored with: ``width`` from ``first[k]`` on."""

    first: Int64
    width: int


def in_order(similarity: Similarity) -> Pairs:
    """The pairs in order whose scores add up to most (Needleman and Wunsch, 1970, without a price for gaps)."""
    of_a, of_b = similarity.comparable()
    if not len(of_a) or not len(of_b):
        return []
    band = _band(similarity.names[0][of_a], similarity.names[1][of_b])
    came_from = _scored(similarity, of_a, of_b, band)
    pairs: Pairs = []
    x, y = len(of_a), len(of_b)
    while x and y:
        first = int(band.first[x - 1])
        y = min(y, first + band.width)
        step = came_from[x - 1, y - first - 1] if y > first else UP
        if step == PAIRED:
            pairs.append((int(of_a[x - 1]), int(of_b[y - 1])))
        x, y = x - (step != LEFT), y - (step != UP)
    return pairs[::-1]


def _scored(similarity: Similarity, of_a: Int64, of_b: Int64, band: Band) -> NDArray[np.int8]:
    """int8[control, width]: how the best of each prefix is reached."""
    came_from = np.empty((len(of_a), band.width), np.int8)
    best, before = np.zeros(band.width + 1), 0
    for k, first in enumerate(band.first.tolist()):
        moved = first - before
        if moved:  # beyond its last place, a row stays as good as there
            best = np.concatenate((best[moved:], np.full(min(moved, len(best)), best[-1])))
        paired = best[:-1] + similarity.row(int(of_a[k]), of_b[first : first + band.width])
        now = best.copy()
        np.maximum(best[1:], paired, out=now[1:])
        np.maximum.accumulate(now, out=now)
        came_from[k] = np.where(now[1:] == best[1:], UP, np.where(now[1:] == now[:-1], LEFT, PAIRED))
        best, before = now, first
    return came_from


def _band(a: Int64, b: Int64) -> Band:
    """Everything with everything, or, where that is too much, what lies around equal names in order."""
    width = min(len(b), max(MOST_CELLS // len(a), LEAST_WIDTH))
    if width == len(b):
        return Band(np.zeros(len(a), np.int64), width)
    anchors = _anchors(a.tolist(), b.tolist())
    x, y = zip((-1, -1), *anchors, (len(a), len(b)), strict=True)
    middle = np.interp(np.arange(len(a)), x, y).astype(np.int64)
    return Band(np.clip(middle - width // 2, 0, len(b) - width), width)


def _anchors(a: list[int], b: list[int]) -> Pairs:
    """Equal names in order: those that both sides have once; where there are none, of all."""
    counts = Counter(a), Counter(b)
    place = {name: j for j, name in enumerate(b) if counts[1][name] == 1}
    return ascending([(i, place[name]) for i, name in enumerate(a) if counts[0][name] == 1 and name in place]) or align(
        a, b
    )
