"""Level sequence: work that no operator launched (graph replays), by the order in which it ran.

Order is a hint, not a law: node order moves between captures. Equal names and grids that stand in the same order are
pairs; equal ones a few anchors
apart are pairs too; what lies between the same two anchors pairs by family.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable

from tracediff.diff.matching.align import Pairs, align
from tracediff.diff.matching.items import Item
from tracediff.diff.matching.match import Leftover, Match
from tracediff.profile.kernels.families import OTHER

NEAR = 4
"""Anchors that may lie between two places of work that moved."""

MOST_BETWEEN = 8
"""Pieces of work of one family between two anchors beyond which their place says nothing."""


def by_sequence(left: Leftover) -> list[Match]:
    """Pairs and small groups of which at least one side has no operator, phase by phase."""
    matches: list[Match] = []
    for phase in dict.fromkeys(i.phase for i in (*left.control, *left.test)):
        a, b = ([i for i in items if i.phase == phase] for items in (left.control, left.test))
        if a and b and any(i.op is None for i in (*a, *b)):
            matches += _in_phase(a, b)
    return matches


def _in_phase(a: list[Item], b: list[Item]) -> list[Match]:
    told = _name_and_grid if _has_grids(a) and _has_grids(b) else _name
    keys = [told(i) for i in a], [told(j) for j in b]
    pairs = [(i, j) for i, j in align(*keys) if _bare(a[i], b[j])]
    gaps = _gaps([i for i, _ in pairs], len(a)), _gaps([j for _, j in pairs], len(b))
    pairs += _moved(a, b, keys, gaps, pairs)
    found = {i for i, _ in pairs}, {j for _, j in pairs}
    rest: dict[Hashable, tuple[list[Item], list[Item]]] = defaultdict(lambda: ([], []))
    for side, items in enumerate((a, b)):
        for at, item in enumerate(items):
            if at not in found[side] and item.family != OTHER:
                rest[gaps[side][at], item.family][side].append(item)
    matches: list[Match] = [("sequence", [a[i]], [b[j]], None) for i, j in pairs]
    matches += [("sequence~family", *sides, None) for sides in rest.values() if all(sides) and _between(*sides)]
    return matches


def _name(item: Item) -> Hashable:
    return item.match[:2]


def _name_and_grid(item: Item) -> Hashable:
    """The same kernel on another grid does other work; grids repeat over roles, which their order tells apart."""
    return (*item.match[:2], item.work.launch_shape)


def _has_grids(items: list[Item]) -> bool:
    return any(item.work.launch_shape for item in items)


def _between(a: list[Item], b: list[Item]) -> bool:
    """Whether what lies between two anchors is little enough for its place to say something."""
    return max(len(a), len(b)) <= MOST_BETWEEN and any(i.op is None for i in (*a, *b))


def _bare(a: Item, b: Item) -> bool:
    """Whether one of the two has no operator: those that have one on both sides were seen by the levels before."""
    return a.op is None or b.op is None


def _gaps(anchors: list[int], size: int) -> list[int]:
    """For each place in a sequence, how many anchors lie before it."""
    of, k = [], 0
    for at in range(size):
        of.append(k)
        if k < len(anchors) and anchors[k] == at:
            k += 1
    return of


def _moved(
    a: list[Item],
    b: list[Item],
    keys: tuple[list[Hashable], list[Hashable]],
    gaps: tuple[list[int], list[int]],
    anchors: Pairs,
) -> Pairs:
    """Equal keys left over at most NEAR anchors apart, the nearest first."""
    taken = {i for i, _ in anchors}, {j for _, j in anchors}
    waiting: dict[Hashable, list[int]] = defaultdict(list)
    for j, key in enumerate(keys[1]):
        if j not in taken[1]:
            waiting[key].append(j)
    near = [
        (abs(gaps[0][i] - gaps[1][j]), i + j, i, j)
        for i, item in enumerate(a)
        if i not in taken[0]
        for j in waiting[keys[0][i]]
        if abs(gaps[0][i] - gaps[1][j]) <= NEAR and _bare(item, b[j])
    ]
    pairs: Pairs = []
    for *_, i, j in sorted(near, key=lambda n: (n[0], n[1], min(n[2:]))):
        if i not in taken[0] and j not in taken[1]:
            pairs.append((i, j))
            taken[0].add(i)
            taken[1].add(j)
    return pairs
