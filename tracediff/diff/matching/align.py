"""Aligning two sequences: the pairs of equal elements that occur in the same order; and joining what belongs together,
two by two.
"""

from bisect import bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar

from tracediff import bounds
from tracediff.arrays import group_by

Pairs = list[tuple[int, int]]


def align(a: Sequence[Hashable], b: Sequence[Hashable]) -> Pairs:
    """[(i, j)] with ``a[i] == b[j]``, ascending in both: a longest common subsequence (Myers, 1986), empty where more
    than ALIGNED_EDITS differ.

    Symmetric: align(b, a) gives the same pairs turned round, since the sequences are put into an order of their own
    first.
    """
    if not a or not b:
        return []
    codes: dict[Hashable, int] = {}
    x, y = ([codes.setdefault(e, len(codes)) for e in s] for s in (a, b))
    names = sorted(codes, key=repr)
    rank = {codes[name]: i for i, name in enumerate(names)}
    x, y = [rank[c] for c in x], [rank[c] for c in y]
    if x <= y:
        return _aligned(x, y)
    return [(i, j) for j, i in _aligned(y, x)]


def _aligned(x: list[int], y: list[int]) -> Pairs:
    """Common beginning and end, and what Myers finds between them."""
    n, m = len(x), len(y)
    head = 0
    while head < min(n, m) and x[head] == y[head]:
        head += 1
    tail = 0
    while tail < min(n, m) - head and x[n - 1 - tail] == y[m - 1 - tail]:
        tail += 1
    inner = _myers(x[head : n - tail], y[head : m - tail])
    return [
        *((i, i) for i in range(head)),
        *((head + i, head + j) for i, j in inner),
        *((n - tail + i, m - tail + i) for i in range(tail)),
    ]


def _myers(x: list[int], y: list[int]) -> Pairs:
    n, m = len(x), len(y)
    shared = (Counter(x) & Counter(y)).total()
    if (
        not shared or n + m - 2 * shared > bounds.ALIGNED_EDITS
    ):  # the search would find no pair, in a time of its square
        return []
    reach = {1: 0}
    history: list[dict[int, int]] = []
    for edits in range(min(n + m, bounds.ALIGNED_EDITS) + 1):
        history.append(dict(reach))
        for k in range(-edits, edits + 1, 2):
            down = k == -edits or (k != edits and reach[k - 1] < reach[k + 1])
            i = reach[k + 1] if down else reach[k - 1] + 1
            j = i - k
            while i < n and j < m and x[i] == y[j]:
                i, j = i + 1, j + 1
            reach[k] = i
            if i >= n and j >= m:
                return _walk_back(history, n, m)
    return []


def _walk_back(history: list[dict[int, int]], i: int, j: int) -> Pairs:
    pairs: Pairs = []
    for edits in range(len(history) - 1, -1, -1):
        reach, k = history[edits], i - j
        down = k == -edits or (k != edits and reach[k - 1] < reach[k + 1])
        before = k + 1 if down else k - 1
        from_i, from_j = reach[before], reach[before] - before
        while i > from_i and j > from_j:  # the edit itself moves along one side only
            i, j = i - 1, j - 1
            pairs.append((i, j))
        i, j = from_i, from_j
    return pairs[::-1]


def ascending(pairs: Pairs) -> Pairs:
    """A longest chain of ``pairs`` that ascends on both sides (patience sorting)."""
    anchors = sorted(set(pairs))
    tops: list[int] = []
    piles: list[int] = []
    before: list[int] = []
    for k, (_, y) in enumerate(anchors):
        pile = bisect_left(tops, y)
        before.append(piles[pile - 1] if pile else -1)
        tops[pile : pile + 1] = [y]
        piles[pile : pile + 1] = [k]
    chain, k = [], piles[-1] if piles else -1
    while k >= 0:
        chain.append(anchors[k])
        k = before[k]
    chain.reverse()
    return [p for p, q in zip(chain, [(-1, -1), *chain], strict=False) if p[0] > q[0]]


def within_gaps(pairs: Pairs, a: Sequence[Hashable], b: Sequence[Hashable]) -> Pairs:
    """Align what lies between neighbouring pairs that are in order on both sides."""
    anchors, last = [], -1
    for i, j in pairs:
        if j > last:
            anchors.append((i, j))
            last = j
    taken_a, taken_b = {i for i, _ in pairs}, {j for _, j in pairs}
    out = []
    for (i0, j0), (i1, j1) in zip([(-1, -1), *anchors], [*anchors, (len(a), len(b))], strict=True):
        gap_a = [i for i in range(i0 + 1, i1) if i not in taken_a]
        gap_b = [j for j in range(j0 + 1, j1) if j not in taken_b]
        out += [(gap_a[i], gap_b[j]) for i, j in align([a[i] for i in gap_a], [b[j] for j in gap_b])]
    return out


def equal_in_turn(pairs: Pairs, a: Sequence[Hashable], b: Sequence[Hashable]) -> Pairs:
    """Of the elements that ``pairs`` leaves over the k-th of each kind on one side with the k-th on the other."""
    taken_a, taken_b = {i for i, _ in pairs}, {j for _, j in pairs}
    waiting: dict[Hashable, deque[int]] = defaultdict(deque)
    for j, element in enumerate(b):
        if j not in taken_b:
            waiting[element].append(j)
    return [(i, waiting[element].popleft()) for i, element in enumerate(a) if i not in taken_a and waiting[element]]


def only_ones(a: Sequence[Hashable], b: Sequence[Hashable]) -> Pairs:
    """The equal elements that both sides have exactly once, ascending in ``a``."""
    counts = Counter(a), Counter(b)
    place = {element: j for j, element in enumerate(b)}
    return [(i, place[element]) for i, element in enumerate(a) if counts[0][element] == counts[1][element] == 1]


Member = TypeVar("Member", bound=Hashable)


class Joined(Generic[Member]):
    """Disjoint groups of members that were joined, directly or through others."""

    def __init__(self) -> None:
        self._root: dict[Member, Member] = {}

    def _find(self, member: Member) -> Member:
        root = self._root
        while (parent := root.setdefault(member, member)) != member:
            root[member] = root[parent]  # half the way for the next one
            member = parent
        return member

    def join(self, one: Member, other: Member) -> None:
        """Put two members into one group."""
        self._root[self._find(one)] = self._find(other)

    def groups(self) -> list[list[Member]]:
        """All groups, in the order in which their first members were joined."""
        return list(group_by(list(self._root), self._find).values())
