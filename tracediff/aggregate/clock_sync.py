"""The clocks of ranks against each other, from the ends of collectives that no rank can leave before all have come."""

from heapq import heappop, heappush

import numpy as np

from tracediff import thresholds
from tracediff.arrays import Int64, changes, combined, zeros
from tracediff.structs import FrozenStruct


class Clocks(FrozenStruct):
    """By position of the rank, r of them.

    Attributes:
        offset: int64[r] ns by which its clock is ahead of its reference's.
        uncertainty: int64[r] ns. shared: int64[r] collectives that this rests on, 0 for a reference.
        reference: int64[r] position of the rank whose clock is taken as right: the lowest one that collectives lead to.
    """

    offset: Int64
    uncertainty: Int64
    shared: Int64
    reference: Int64


Link = tuple[int, int, int]
"""One rank's clock against another's: offset and uncertainty in ns, collectives that it rests on."""


def rank_clocks(collective: Int64, rank: Int64, start: Int64, end: Int64, ranks: int) -> Clocks:
    """The clocks of ``ranks`` ranks by m rows (collective, position of the rank, start and end in ns by that rank's
    clock), in any order.

    Of two ranks, the difference of their clocks is the median difference of their ends: they end together but for the
    last of the transfer. The uncertainty is the range within which nine in ten collectives agree, and at most what is
    possible: neither rank can end before the other has arrived. Clocks of ranks that share no collective are joined
    through ranks that share one with each, and their uncertainties added.

    A constant added to all times of a rank is added to its offset, and nothing else changes. A drift of clocks shows as
    uncertainty.
    """
    links = _links(collective, rank, start, end)
    clocks = zeros((4, ranks))
    reached: set[int] = set()
    for first in range(ranks):
        heap = [(0, first, 0, 0)]
        while heap:
            uncertainty, current, offset, shared = heappop(heap)
            if current in reached:
                continue
            reached.add(current)
            clocks[:, current] = offset, uncertainty, shared, first
            for neighbour, (apart, unsure, number) in links.get(current, {}).items():
                heappush(heap, (uncertainty + unsure, neighbour, offset + apart, number))
    return Clocks(*clocks)


def _links(collective: Int64, rank: Int64, start: Int64, end: Int64) -> dict[int, dict[int, Link]]:
    """rank → other rank → link: every rank of a collective with the lowest one there."""
    order = np.lexsort((rank, collective))
    collective, rank, start, end = collective[order], rank[order], start[order], end[order]
    first = changes(collective)
    lowest = np.maximum.accumulate(np.where(first, np.arange(len(first)), 0))
    others = np.flatnonzero(~first)
    base = lowest[others]
    pair, sample = combined(rank[base], rank[others])
    apart, most, least = end[others] - end[base], end[others] - start[base], start[others] - end[base]
    resolution = 1000 if not ((start % 1000).any() or (end % 1000).any()) else 1
    links: dict[int, dict[int, Link]] = {}
    for code, row in enumerate(sample.tolist()):
        mine = pair == code
        link = _link(apart[mine], most[mine], least[mine], resolution)
        a, b = int(rank[base[row]]), int(rank[others[row]])
        links.setdefault(a, {})[b] = link
        links.setdefault(b, {})[a] = (-link[0], *link[1:])
    return links


def _link(apart: Int64, most: Int64, least: Int64, resolution: int) -> Link:
    """From the differences of ends, and the bounds that starts set on the difference of the clocks (int64[k] ns
    each).
    """
    offset = _median(apart)
    near = 3 * _median(np.abs(apart - offset)) + resolution
    plausible = (most >= offset - near) & (least <= offset + near)  # others cannot be the same collective on both ranks
    highest, lowest, spread = (
        int(most[plausible].min()),
        int(least[plausible].max()),
        np.sort(np.abs(apart - offset)[plausible]),
    )
    possible = max(highest - offset, offset - lowest)
    agreed = possible
    if len(spread) >= thresholds.CLOCK_COLLECTIVES:
        agreed = int(spread[int(np.ceil(thresholds.CLOCKS_AGREE * len(spread))) - 1])
    return offset, max(min(agreed, possible), lowest - offset, offset - highest, resolution), len(spread)


def _median(values: Int64) -> int:
    """The lower of two in the middle, so that a constant added to all is added to it."""
    return int(np.sort(values)[(len(values) - 1) // 2])
