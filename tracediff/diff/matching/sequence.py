"""Level sequence: work that no operator launched (graph replays), by the order in which it ran.

Both sides' work of a phase is aligned as a whole, so that the pairs in order are as alike together as can be
(`similarity`). Order is a hint, not a law: node order moves between captures, so neighbours may exchange their
partners,
and what is left over pairs a few places away where names agree. What then lies between the same two pairs is grouped by
family.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from itertools import pairwise

import numpy as np

from tracediff.diff.matching.align import Pairs, align
from tracediff.diff.matching.items import Item
from tracediff.diff.matching.match import Leftover, Match
from tracediff.diff.matching.similarity import SAME_NAME, Similarity
from tracediff.profile.kernels.families import OTHER

MOST_CELLS = 16_000_000
"""Pairs of two sequences that are scored at once; longer ones are first cut where equal names stand in order."""
NEAR = 4
"""Pairs that may lie between two places of work that moved."""
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
    pairs: Pairs = []
    for _ in range(2):  # the second time with what the families' durations have in common
        pairs = [pair for cell in _cells(a, b) for pair in _aligned(similarity, *cell)]
        similarity.calibrate(pairs)
    pairs = _exchanged(similarity, pairs)
    gaps = _gaps([i for i, _ in pairs], len(a)), _gaps(sorted(j for _, j in pairs), len(b))
    pairs += _moved(similarity, gaps, pairs)
    runs = _unseparated(similarity, sorted(pairs), len(a), len(b))
    in_runs = {i for run in runs for i in run[0]}
    matches: list[Match] = [("sequence", [a[i]], [b[j]], None) for i, j in sorted(pairs) if i not in in_runs]
    matches += [("sequence~family", [a[i] for i in run[0]], [b[j] for j in run[1]], None) for run in runs]
    for run in runs:
        pairs += [(i, j) for i in run[0] for j in run[1]]
    return matches + _between(a, b, gaps, pairs)


def _cells(a: list[Item], b: list[Item]) -> list[tuple[range, range]]:
    """Where to align: everything with everything, or, where that is too much, between equal names in order."""
    if len(a) * len(b) <= MOST_CELLS:
        return [(range(len(a)), range(len(b)))]
    anchors = align([i.match[:2] for i in a], [j.match[:2] for j in b])
    borders = [(0, 0), *anchors, (len(a), len(b))]
    return [
        (range(i0, i1), range(j0, j1))
        for (i0, j0), (i1, j1) in pairwise(borders)
        if (i1 - i0) * (j1 - j0) <= MOST_CELLS
    ]


def _aligned(similarity: Similarity, of_a: range, of_b: range) -> Pairs:
    """The pairs in order whose scores add up to most (Needleman and Wunsch, 1970, without a price for gaps)."""
    best = np.zeros((len(of_a) + 1, len(of_b) + 1))
    for k, i in enumerate(of_a):
        paired = best[k, :-1] + similarity.row(i)[of_b.start : of_b.stop]
        best[k + 1, 1:] = np.maximum.accumulate(np.maximum(best[k, 1:], paired))
    pairs: Pairs = []
    x, y = len(of_a), len(of_b)
    while x and y:
        if best[x, y] == best[x - 1, y]:
            x -= 1
        elif best[x, y] == best[x, y - 1]:
            y -= 1
        else:
            x, y = x - 1, y - 1
            pairs.append((of_a[x], of_b[y]))
    return pairs[::-1]


def _exchanged(similarity: Similarity, pairs: Pairs) -> Pairs:
    """``pairs`` with the partners of near ones exchanged where both together are more alike: dW and dX change
    places.
    """
    a, b = [i for i, _ in pairs], [j for _, j in pairs]
    rows = {i: similarity.row(i) for i in a[:WINDOW]}
    for k in range(len(a)):
        if k + WINDOW < len(a):
            rows[a[k + WINDOW]] = similarity.row(a[k + WINDOW])
        for n in range(k + 1, min(k + WINDOW + 1, len(a))):
            now = rows[a[k]][b[k]] + rows[a[n]][b[n]]
            if rows[a[k]][b[n]] + rows[a[n]][b[k]] > now + BETTER:
                b[k], b[n] = b[n], b[k]
        rows.pop(a[k], None)
    return list(zip(a, b, strict=True))


def _gaps(anchors: list[int], size: int) -> list[int]:
    """For each place in a sequence, how many ``anchors`` lie before it."""
    return np.searchsorted(anchors, np.arange(size)).tolist() if anchors else [0] * size


def _moved(similarity: Similarity, gaps: tuple[list[int], list[int]], pairs: Pairs) -> Pairs:
    """What is left over on both sides and alike, at most NEAR pairs apart (twins: anywhere); the most alike first, then
    the nearest.
    """
    taken = {i for i, _ in pairs}, {j for _, j in pairs}
    free = [j for j in range(len(gaps[1])) if j not in taken[1]]
    near = []
    for i in (i for i in range(len(gaps[0])) if i not in taken[0]):
        row = similarity.row(i)
        for j in free:
            apart = abs(gaps[0][i] - gaps[1][j])
            if row[j] >= STRONG and (apart <= NEAR or similarity.twins.get(i) == j):
                near.append((-row[j], apart, i, j))
    found: Pairs = []
    for *_, i, j in sorted(near):
        if i not in taken[0] and j not in taken[1]:
            found.append((i, j))
            taken[0].add(i)
            taken[1].add(j)
    return found


def _unseparated(similarity: Similarity, pairs: Pairs, size_a: int, size_b: int) -> list[tuple[list[int], list[int]]]:
    """Neighbouring pairs and what is left over beside them where nothing says which of several equals has no partner:
    (positions in the control, in the test) of each such run.
    """
    partner = dict(pairs), {j: i for i, j in pairs}
    runs: list[tuple[set[int], set[int]]] = []
    for side, size in enumerate((size_a, size_b)):
        taken: set[int] = set()
        for position in range(size):
            if position in partner[side] or position in taken:
                continue
            run = {position}
            for way in (-1, 1):
                near = position + way
                while near in partner[side] and _equal(similarity, side, position, near, partner[side][near]):
                    run.add(near)
                    near += way
            others = {partner[side][k] for k in run if k in partner[side]}
            if others and not run & taken:
                taken |= run
                runs.append((run, others) if side == 0 else (others, run))
    return [(sorted(x), sorted(y)) for x, y in _disjoint(runs)]


def _equal(similarity: Similarity, side: int, position: int, near: int, other: int) -> bool:
    """Whether ``position`` is as much like ``other`` as its partner ``near``, all but for chance."""
    pairs = ((position, other), (near, other)) if side == 0 else ((other, position), (other, near))
    scores = [similarity.score(*pair) for pair in pairs]
    return abs(scores[0] - scores[1]) < NOTHING


def _disjoint(runs: list[tuple[set[int], set[int]]]) -> list[tuple[set[int], set[int]]]:
    """``runs`` with those that share a position joined."""
    out: list[tuple[set[int], set[int]]] = []
    for run in runs:
        for known in [k for k in out if k[0] & run[0] or k[1] & run[1]]:
            out.remove(known)
            run = (run[0] | known[0], run[1] | known[1])
        out.append(run)
    return out


def _between(a: list[Item], b: list[Item], gaps: tuple[list[int], list[int]], pairs: Pairs) -> list[Match]:
    """What is left between the same two pairs, by family; little enough for its place to say something."""
    taken = {i for i, _ in pairs}, {j for _, j in pairs}
    rest: dict[Hashable, tuple[list[Item], list[Item]]] = defaultdict(lambda: ([], []))
    for side, items in enumerate((a, b)):
        for position, item in enumerate(items):
            if position not in taken[side] and item.family != OTHER:
                rest[gaps[side][position], item.family][side].append(item)
    return [
        ("sequence~family", *sides, None)
        for sides in rest.values()
        if all(sides) and max(map(len, sides)) <= MOST_BETWEEN and any(i.op is None for i in (*sides[0], *sides[1]))
    ]
