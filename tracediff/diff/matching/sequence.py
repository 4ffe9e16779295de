"""Level sequence: work that no operator launched (graph replays), by the order in which it ran.

Both sides' work of a phase is aligned as a whole, so that the pairs in order are as alike together as can be
(`ordered`). Order is a hint, not a law: node order moves between captures, so neighbours may exchange their partners,
and what is left over pairs a few places away where names agree. What then lies between the same two pairs is grouped by
family.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable

import numpy as np

from tracediff.diff.matching.fused_words import Floats, Int64
from tracediff.diff.matching.items import Item
from tracediff.diff.matching.joined import Joined
from tracediff.diff.matching.match import Leftover, Match
from tracediff.diff.matching.ordered import in_order
from tracediff.diff.matching.similarity import NONE, SAME_NAME, Similarity
from tracediff.profile.kernels.families import OTHER

NEAR = 4
"""Pairs that may lie between two places of work that moved."""
MOST_NEAR, MOST_PARTNERS = 1024, 32
"""Pieces of work around such a place that are scored, and of those the most alike that are kept."""
WINDOW = 3
"""Pairs within which partners are exchanged."""
BETTER = 0.05
"""By how much an exchange of partners must be more alike."""
STRONG = 0.6 * SAME_NAME
"""Least score of partners that do not stand in order."""
NOTHING = 0.02
"""Difference of scores that separates nothing."""
MOST_BETWEEN = 8
"""Pieces of work of one family between two pairs beyond which their place says nothing."""

Partners = tuple[Int64, Int64]
"""int64 of each side: the other's position of each piece's partner, −1 for none."""


def by_sequence(left: Leftover) -> list[Match]:
    """Pairs and small groups of which at least one side has no operator, phase by phase."""
    matches: list[Match] = []
    for phase in dict.fromkeys(i.phase for i in (*left.control, *left.test)):
        a, b = ([i for i in items if i.phase == phase] for items in (left.control, left.test))
        if a and b and any(i.op is None for i in (*a, *b)):
            matches += _in_phase(a, b)
    return matches


def _in_phase(a: list[Item], b: list[Item]) -> list[Match]:
    similarity = Similarity(a, b)
    for _ in range(2):  # the second time with what the families' durations have in common
        i, j = _columns(in_order(similarity))
        similarity.calibrate(i, j)
    j = _exchanged(similarity, i, j)
    partners = np.full(len(a), NONE), np.full(len(b), NONE)
    partners[0][i], partners[1][j] = j, i
    gaps = np.searchsorted(i, np.arange(len(a))), np.searchsorted(np.sort(j), np.arange(len(b)))
    for x, y in _moved(similarity, gaps, partners):
        partners[0][x], partners[1][y] = y, x
    runs = _unseparated(similarity, partners)
    taken = tuple(np.flatnonzero(side >= 0) for side in partners)
    in_runs = {x for run in runs for x in run[0]}
    matches: list[Match] = [
        ("sequence", [a[x]], [b[partners[0][x]]], None) for x in taken[0].tolist() if x not in in_runs
    ]
    matches += [("sequence~family", [a[x] for x in run[0]], [b[y] for y in run[1]], None) for run in runs]
    placed = tuple(set(of_side.tolist()).union(*(run[side] for run in runs)) for side, of_side in enumerate(taken))
    return matches + _between((a, b), gaps, placed)


def _columns(pairs: list[tuple[int, int]]) -> tuple[Int64, Int64]:
    return np.array([i for i, _ in pairs], np.int64), np.array([j for _, j in pairs], np.int64)


def _exchanged(similarity: Similarity, i: Int64, j: Int64) -> Int64:
    """``j``, the partners of ``i``, with those of near ones exchanged where both together are more alike: dW and dX
    change places.
    """
    j = j.copy()
    own = similarity.pairs(i, j)
    waiting = np.zeros(len(i), bool)  # of pairs that no exchange has touched, those that gain by one
    for apart in range(1, min(WINDOW + 1, len(i))):
        crossed = similarity.pairs(i[:-apart], j[apart:]) + similarity.pairs(i[apart:], j[:-apart])
        waiting[:-apart] |= crossed > own[:-apart] + own[apart:] + BETTER
    moved = np.zeros(len(i), bool)
    for k in range(len(i)):
        if not waiting[k] and not moved[k : k + WINDOW + 1].any():
            continue
        for n in range(k + 1, min(k + WINDOW + 1, len(i))):
            kept_k, kept_n, new_k, new_n = similarity.pairs(i[[k, n, k, n]], j[[k, n, n, k]])
            if new_k + new_n > kept_k + kept_n + BETTER:
                j[k], j[n] = j[n], j[k]
                moved[[k, n]] = True
    return j


def _moved(similarity: Similarity, gaps: Partners, partners: Partners) -> list[tuple[int, int]]:
    """What is left over on both sides and alike, at most NEAR pairs apart (twins: anywhere); the most alike first, then
    the nearest.
    """
    left = tuple(np.flatnonzero(side < 0) for side in partners)
    gap = gaps[1][left[1]]
    here = gaps[0][left[0]]
    middle = np.searchsorted(gap, here)
    first = np.maximum(np.searchsorted(gap, here - NEAR), middle - MOST_NEAR // 2)
    end = np.minimum(np.searchsorted(gap, here + NEAR, "right"), middle + MOST_NEAR // 2)
    near: list[tuple[Int64, Int64, Floats]] = []
    for place, begin, stop in zip(left[0].tolist(), first.tolist(), end.tolist(), strict=True):
        twin = similarity.twin_of[0][place]
        others = left[1][begin:stop] if twin < 0 else left[1][left[1] == twin]
        if not len(others):
            continue
        alike = similarity.row(place, others)
        kept = np.argsort(-alike, kind="stable")[:MOST_PARTNERS]
        kept = kept[alike[kept] >= STRONG]
        near.append((np.full(len(kept), place), others[kept], alike[kept]))
    if not near:
        return []
    i, j, score = (np.concatenate(column) for column in zip(*near, strict=True))
    order = np.lexsort((j, i, np.abs(gaps[0][i] - gaps[1][j]), -score))
    return _one_each(i[order].tolist(), j[order].tolist())


def _one_each(i: list[int], j: list[int]) -> list[tuple[int, int]]:
    """The pairs, first come first served."""
    taken: tuple[set[int], set[int]] = (set(), set())
    found = []
    for x, y in zip(i, j, strict=True):
        if x not in taken[0] and y not in taken[1]:
            found.append((x, y))
            taken[0].add(x)
            taken[1].add(y)
    return found


def _unseparated(similarity: Similarity, partners: Partners) -> list[tuple[list[int], list[int]]]:
    """Neighbouring pairs and what is left over beside them where nothing says which of several equals has no partner:
    (positions in the control, in the test) of each such run.
    """
    joined: Joined[tuple[int, int]] = Joined()
    for side in (0, 1):
        free = np.flatnonzero(partners[side] < 0)
        first, last = (_reach(similarity, partners, side, way)[free] for way in (-1, 1))
        end = -1
        for place, begin, stop in zip(free.tolist(), first.tolist(), last.tolist(), strict=True):
            if begin == stop or begin <= end:
                continue
            end = stop
            for near in range(begin, stop + 1):
                joined.join((side, place), (side, near))
                if near != place:
                    joined.join((side, place), (1 - side, int(partners[side][near])))
    return [(sorted(k for of, k in run if of == 0), sorted(k for of, k in run if of == 1)) for run in joined.groups()]


def _reach(similarity: Similarity, partners: Partners, side: int, way: int) -> Int64:
    """For each piece of work without a partner how far its neighbours go whose partners are as much like it as like
    them, all but for chance.
    """
    partner = partners[side]
    far = np.arange(len(partner))
    place = np.flatnonzero(partner < 0)
    near = place + way
    while len(place):
        inside = (near >= 0) & (near < len(partner))
        place, near = place[inside], near[inside]
        paired = partner[near] >= 0
        place, near = place[paired], near[paired]
        scores = [similarity.pairs(*((k, partner[near]) if side == 0 else (partner[near], k))) for k in (place, near)]
        equal = np.abs(scores[0] - scores[1]) < NOTHING
        place, near = place[equal], near[equal]
        far[place] = near
        near = near + way
    return far


def _between(sides: tuple[list[Item], list[Item]], gaps: Partners, placed: tuple[set[int], ...]) -> list[Match]:
    """What is left between the same two pairs, by family; little enough for its place to say something."""
    rest: dict[Hashable, tuple[list[Item], list[Item]]] = defaultdict(lambda: ([], []))
    for side, items in enumerate(sides):
        gap = gaps[side].tolist()
        for position, item in enumerate(items):
            if position not in placed[side] and item.family != OTHER:
                rest[gap[position], item.family][side].append(item)
    return [
        ("sequence~family", *between, None)
        for between in rest.values()
        if all(between)
        and max(map(len, between)) <= MOST_BETWEEN
        and any(i.op is None for i in (*between[0], *between[1]))
    ]
