"""The segments of one device at one level: reserved memory, and how much of it is allocated."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tracediff.memory.call_site import NO_SITE
from tracediff.memory.lifetimes import Lifetime, lifetimes
from tracediff.memory.snapshot import EXPANDABLE, SEGMENT_ALLOC, SEGMENT_FREE, SEGMENT_MAP, SEGMENT_UNMAP, Recording

FREED_SINCE = "freed since"
"""Type of a segment of which only the free was recorded."""


class SegmentUse(NamedTuple):
    """One segment at the peak: its type (small, large, expandable; freed since, if the dump no longer has it), stream
    and pool, its bytes, those allocated of it, and the number of blocks in it. All expandable segments are one.
    """

    kind: str
    stream: int
    pool: tuple[int, int]
    address: int
    reserved: int
    allocated: int
    blocks: int

    @property
    def unused(self) -> int:
        """Reserved and not allocated."""
        return self.reserved - self.allocated


def reserved_at(recording: Recording, level: int) -> int:
    """Bytes reserved at ``level``: those at the dump less what later events reserved."""
    reserved = sum(segment.size for segment in recording.segments)
    for event in recording.events[level:]:
        if event.action in (SEGMENT_ALLOC, SEGMENT_MAP):
            reserved -= event.size
        elif event.action in (SEGMENT_FREE, SEGMENT_UNMAP):
            reserved += event.size
    return reserved


def segment_uses(
    recording: Recording, level: int, reserved: int, alive: Sequence[Lifetime], added: Mapping[int, int]
) -> list[SegmentUse]:
    """The use of each segment at ``level``; their bytes add up to ``reserved``.

    Args:
        alive: blocks at this level. added: address → bytes that the allocator added, of blocks at the dump.
    """
    plain = {segment.address: segment for segment in recording.segments if segment.kind != EXPANDABLE}
    at_dump = {address: (segment.size, NO_SITE) for address, segment in plain.items()}
    moves = [k for k, event in enumerate(recording.events) if event.action in (SEGMENT_ALLOC, SEGMENT_FREE)]
    every, _ = lifetimes([recording.events[k] for k in moves], (SEGMENT_ALLOC,), (SEGMENT_FREE,), at_dump)
    level = bisect_left(moves, level)  # in levels of the segments' own events
    present = sorted((s.address, s.size) for s in every if s.first <= level <= s.last)
    starts = [address for address, _ in present]
    amounts = [(block.address, block.size, 1) for block in alive] + [(a, size, 0) for a, size in added.items() if size]
    allocated, blocks = [0] * (len(present) + 1), [0] * (len(present) + 1)
    for address, size, count in amounts:
        place = bisect_right(starts, address) - 1
        if place >= 0 and address >= sum(present[place]):
            place = -1  # in no plain segment: the last of the list
        allocated[place] += size
        blocks[place] += count
    found = []
    for (address, size), used, count in zip(present, allocated, blocks, strict=False):
        segment = plain.get(address)
        kind, stream, pool = (segment.kind, segment.stream, segment.pool) if segment else (FREED_SINCE, 0, (0, 0))
        found.append(SegmentUse(kind, stream, pool, address, size, used, count))
    rest = reserved - sum(size for _, size in present)
    if rest or allocated[-1] or blocks[-1]:
        found.append(SegmentUse(EXPANDABLE, 0, (0, 0), 0, rest, allocated[-1], blocks[-1]))
    return found
