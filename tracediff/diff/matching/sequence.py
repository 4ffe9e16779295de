"""Level sequence: work that no operator launched (graph replays), by the order in which it ran.

Both sides' work of a phase is aligned as a whole, so that the pairs in order are as alike together as can be. Short
sequences are scored whole; of longer ones each piece is scored with those of the other side around the place that equal
names give it, so that the cost grows with the length and not with its square. Order is a hint, not a law: node order
moves between captures, so neighbours may exchange their partners, and what is left over pairs a few places away where
names agree. What then lies between the same two pairs is grouped by family, and what is left beside a replaced kernel
joins it: the parts that it was split into.
"""

from collections import defaultdict
from collections.abc import Hashable
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracediff import bounds, thresholds
from tracediff.arrays import Floats, Int64, group_by
from tracediff.diff.matching.align import Joined, Pairs, align, ascending, only_ones
from tracediff.diff.matching.items import Item, Leftover, Match, Scopes, Sides
from tracediff.diff.matching.similarity import Similarity
from tracediff.profile.kernels.families import OTHER
from tracediff.structs import Pair

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
    width = min(len(b), max(bounds.SCORED_PAIRS // len(a), bounds.SCORED_WIDTH))
    if width == len(b):
        return Band(np.zeros(len(a), np.int64), width)
    anchors = _anchors(a.tolist(), b.tolist())
    x, y = zip((-1, -1), *anchors, (len(a), len(b)), strict=True)
    middle = np.interp(np.arange(len(a)), x, y).astype(np.int64)
    return Band(np.clip(middle - width // 2, 0, len(b) - width), width)


def _anchors(a: list[int], b: list[int]) -> Pairs:
    """Equal names in order: those that both sides have once; where there are none, of all."""
    return ascending(only_ones(a, b)) or align(a, b)


Partners = tuple[Int64, Int64]
"""int64 of each side: the other's position of each piece's partner, −1 for none."""


def by_sequence(leftover: Leftover, scopes: Scopes) -> list[Match]:
    """Pairs and small groups of which at least one side has no operator, scope by scope."""
    control, test = (group_by(items, lambda item: scopes[id(item)]) for items in leftover.items)
    matches: list[Match] = []
    for scope, items in control.items():
        sides = Pair(items, test.get(scope, []))
        if sides.test and any(i.op is None for i in chain(*sides)):
            matches += _in_scope(sides)
    return matches


def _in_scope(sides: Sides) -> list[Match]:
    similarity = Similarity(*sides)
    for _ in range(2):  # the second time with what the families' durations have in common
        i, j = np.array(in_order(similarity), np.int64).reshape(-1, 2).T
        similarity.calibrate(i, j)
    j = _exchanged(similarity, i, j)
    partners = sides.map(lambda items: np.full(len(items), -1))
    partners[0][i], partners[1][j] = j, i
    gaps = np.searchsorted(i, np.arange(len(sides[0]))), np.searchsorted(np.sort(j), np.arange(len(sides[1])))
    for x, y in _moved(similarity, gaps, partners):
        partners[0][x], partners[1][y] = y, x
    runs = _unseparated(similarity, partners)
    matches = [_match(sides, run) for run in runs]
    placed = tuple(
        {*np.flatnonzero(of_side >= 0).tolist()}.union(*(run[side] for run in runs))
        for side, of_side in enumerate(partners)
    )
    matches += _between(sides, gaps, placed)
    in_runs = {x for run in runs for x in run[0]}
    pairs = [(x, y) for x, y in enumerate(partners[0].tolist()) if y >= 0 and x not in in_runs]
    return matches + _with_companions(sides, pairs, matches)


def _match(sides: Sides, places: tuple[list[int], list[int]]) -> Match:
    """The match of the items at ``places`` of both sides, in order."""
    return Match(
        "sequence~family", Pair(*([items[k] for k in sorted(own)] for items, own in zip(sides, places, strict=True)))
    )


def _exchanged(similarity: Similarity, i: Int64, j: Int64) -> Int64:
    """``j``, the partners of ``i``, with those of near ones exchanged where both together are more alike: dW and dX
    change places.
    """
    j = j.copy()
    own = similarity.pairs(i, j)
    waiting = np.zeros(len(i), bool)  # of pairs that no exchange has touched, those that gain by one
    for apart in range(1, min(thresholds.EXCHANGED_PAIRS + 1, len(i))):
        crossed = similarity.pairs(i[:-apart], j[apart:]) + similarity.pairs(i[apart:], j[:-apart])
        waiting[:-apart] |= crossed > own[:-apart] + own[apart:] + thresholds.EXCHANGE_GAIN
    moved = np.zeros(len(i), bool)
    for k in range(len(i)):
        if not waiting[k] and not moved[k : k + thresholds.EXCHANGED_PAIRS + 1].any():
            continue
        for n in range(k + 1, min(k + thresholds.EXCHANGED_PAIRS + 1, len(i))):
            kept_k, kept_n, new_k, new_n = similarity.pairs(i[[k, n, k, n]], j[[k, n, n, k]])
            if new_k + new_n > kept_k + kept_n + thresholds.EXCHANGE_GAIN:
                j[k], j[n] = j[n], j[k]
                moved[[k, n]] = True
    return j


def _moved(similarity: Similarity, gaps: Partners, partners: Partners) -> list[tuple[int, int]]:
    """What is left over on both sides and alike, and few pairs apart (twins: anywhere); the most alike first, then the
    nearest.
    """
    unpaired = tuple(np.flatnonzero(side < 0) for side in partners)
    gap = gaps[1][unpaired[1]]
    here = gaps[0][unpaired[0]]
    middle = np.searchsorted(gap, here)
    first = np.maximum(np.searchsorted(gap, here - thresholds.MOVED_PAIRS), middle - bounds.SCORED_NEAR // 2)
    end = np.minimum(np.searchsorted(gap, here + thresholds.MOVED_PAIRS, "right"), middle + bounds.SCORED_NEAR // 2)
    near: list[tuple[Int64, Int64, Floats]] = []
    for place, begin, stop in zip(unpaired[0].tolist(), first.tolist(), end.tolist(), strict=True):
        twin = similarity.twin_of[0][place]
        others = unpaired[1][begin:stop] if twin < 0 else unpaired[1][unpaired[1] == twin]
        if not len(others):
            continue
        alike = similarity.row(place, others)
        nearest = np.argsort(-alike, kind="stable")[: bounds.PARTNERS_KEPT]
        nearest = nearest[alike[nearest] >= thresholds.MOVED_SCORE]
        near.append((np.full(len(nearest), place), others[nearest], alike[nearest]))
    if not near:
        return []
    i, j, score = (np.concatenate(column) for column in zip(*near, strict=True))
    order = np.lexsort((j, i, np.abs(gaps[0][i] - gaps[1][j]), -score))
    return _one_each(i[order].tolist(), j[order].tolist())


def _one_each(i: list[int], j: list[int]) -> list[tuple[int, int]]:
    """The pairs, first come first served."""
    paired: tuple[set[int], set[int]] = (set(), set())
    pairs = []
    for x, y in zip(i, j, strict=True):
        if x not in paired[0] and y not in paired[1]:
            pairs.append((x, y))
            paired[0].add(x)
            paired[1].add(y)
    return pairs


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
    runs = joined.groups()
    return [([k for which, k in run if which == 0], [k for which, k in run if which == 1]) for run in runs]


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
        equal = np.abs(scores[0] - scores[1]) < thresholds.EQUAL_SCORES
        place, near = place[equal], near[equal]
        far[place] = near
        near = near + way
    return far


def _between(sides: Sides, gaps: Partners, placed: tuple[set[int], ...]) -> list[Match]:
    """What is left between the same two pairs, by family; little enough for its place to say something."""
    rest: dict[Hashable, Sides] = defaultdict(lambda: Pair([], []))
    for side, items in enumerate(sides):
        gap = gaps[side].tolist()
        for position, item in enumerate(items):
            if position not in placed[side] and item.family != OTHER:
                rest[gap[position], item.family][side].append(item)
    return [
        Match("sequence~family", between)
        for between in rest.values()
        if all(between)
        and max(map(len, between)) <= thresholds.BETWEEN_PAIRS
        and any(i.op is None for i in chain(*between))
    ]


def _with_companions(sides: Sides, pairs: list[tuple[int, int]], others: list[Match]) -> list[Match]:
    """Each pair, with what lies beside a replaced kernel on one side without a partner (not in ``others``) and is of
    its family: a fused attention is replaced by its parts and what combines them, not by one of these. What lies
    beside two pairs may belong to either, so it is of none.
    """
    placed = {id(item) for match in others for item in chain(*match.items)}
    placed |= {id(sides[side][place]) for pair in pairs for side, place in enumerate(pair)}
    free = tuple([id(item) not in placed for item in items] for items in sides)
    matches: list[Match] = []
    for x, y in pairs:
        a, b = sides[0][x], sides[1][y]
        parts: tuple[list[int], list[int]] = ([], [])
        if a.match_name != b.match_name and a.family == b.family != OTHER:
            parts = _free_neighbours(sides[0], free[0], x), _free_neighbours(sides[1], free[1], y)
        if bool(parts[0]) != bool(parts[1]):
            matches.append(_match(sides, ([x, *parts[0]], [y, *parts[1]])))
        else:
            matches.append(Match("sequence", Pair([a], [b])))
    return matches


def _free_neighbours(items: list[Item], free: list[bool], place: int) -> list[int]:
    """The positions next to ``place``, in the order of the step, that are free and of its family, up to another family;
    none where they are too many for their place to say something.
    """
    neighbours: list[int] = []
    for way in (-1, 1):
        near = place + way
        while 0 <= near < len(items) and items[near].order - items[near - way].order == way:
            if items[near].family != items[place].family:
                break
            if not free[near]:
                near = place  # another pair's as well
                break
            near += way
        neighbours += range(place + way, near, way) if near != place else []
    return neighbours if len(neighbours) < thresholds.BETWEEN_PAIRS else []
