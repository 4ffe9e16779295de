"""Events of one device → when each block and each segment existed, and the segments of one moment.

Level k is the state after the first k events: a recording of m events has the levels 0 … m.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from operator import add
from typing import Annotated, Any, NamedTuple, TypeVar

from msgspec import Meta

from tracediff.memory.snapshot import (
    EXPANDABLE,
    NO_SITE,
    SEGMENT_ALLOC,
    SEGMENT_FREE,
    SEGMENT_MAP,
    SEGMENT_UNMAP,
    CallSite,
    MemoryEvent,
    Recording,
)
from tracediff.structs import FrozenStruct

Key = TypeVar("Key")
Row = TypeVar("Row", bound=tuple[Any, ...])
RECORDED, BEFORE, FREED = "recorded", "before", "freed"
"""Origin: allocated in the recording; before it, and still allocated at the dump; before it, and freed in it."""


class Lifetime(NamedTuple):
    """A block or segment that exists at the levels from ``first`` to ``last``.

    Attributes:
        size: in bytes, as requested. site: of its allocation; of its free if the origin is FREED.
    """

    first: int
    last: int
    address: int
    size: int
    origin: str
    site: CallSite


def lifetimes(
    events: Sequence[MemoryEvent],
    opening: str,
    closing: str,
    at_dump: Mapping[int, tuple[int, CallSite]],
) -> tuple[list[Lifetime], int]:
    """The lifetimes of all blocks or segments, and how many events contradict each other.

    An event that closes an address of which nothing is known closes what was opened before the recording. An address
    that is opened twice was closed without an event; one that is closed twice counts once.

    Args:
        opening, closing: the actions that begin and end a lifetime.
        at_dump: address → (bytes, call site) of what exists at the dump.
    """
    lifetimes: list[Lifetime] = []
    opened: dict[int, tuple[int, MemoryEvent]] = {}
    addresses: set[int] = set()
    contradictions = 0
    for level, event in enumerate(events, start=1):
        address = event.address
        if event.action == opening:
            if address in opened:
                contradictions += 1
                lifetimes.append(_recorded(*opened[address], level - 1))
            opened[address] = (level, event)
            addresses.add(address)
        elif event.action == closing:
            if address in opened:
                lifetimes.append(_recorded(*opened.pop(address), level - 1))
            elif address in addresses:
                contradictions += 1
            else:
                lifetimes.append(Lifetime(0, level - 1, address, event.size, FREED, event.site))
            addresses.add(address)
    lifetimes += [_recorded(first, event, len(events)) for first, event in opened.values()]
    lifetimes += [
        Lifetime(0, len(events), address, size, BEFORE, site)
        for address, (size, site) in at_dump.items()
        if address not in opened
    ]
    return lifetimes, contradictions + sum(address not in at_dump for address in opened)


def _recorded(first: int, event: MemoryEvent, last: int) -> Lifetime:
    return Lifetime(first, last, event.address, event.size, RECORDED, event.site)


FREED_SINCE = "freed since"
"""Type of a segment of which only the free was recorded."""


class MemorySegment(FrozenStruct):
    """One segment at the peak; all expandable segments are one."""

    type: Annotated[str, Meta(extra_json_schema={"enum": ["small", "large", EXPANDABLE, FREED_SINCE, "unknown"]})]
    """type of the segment; freed since: of which only the free was recorded"""
    stream: int
    """stream whose blocks it has"""
    pool: tuple[int, int]
    """memory pool that owns it; 0, 0 is the default"""
    address: int
    """first address; 0 for expandable segments"""
    reserved_bytes: int
    """bytes"""
    allocated_bytes: int
    """bytes"""
    blocks: int
    """allocated blocks in it"""

    @property
    def unused(self) -> int:
        """Reserved and not allocated."""
        return self.reserved_bytes - self.allocated_bytes


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
) -> list[MemorySegment]:
    """The use of each segment at ``level``; their bytes add up to ``reserved``.

    Args:
        alive: blocks at this level. added: address → bytes that the allocator added, of blocks at the dump.
    """
    plain = {segment.address: segment for segment in recording.segments if segment.kind != EXPANDABLE}
    at_dump = {address: (segment.size, NO_SITE) for address, segment in plain.items()}
    every, _ = lifetimes(recording.events, SEGMENT_ALLOC, SEGMENT_FREE, at_dump)
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
    uses = []
    for (address, size), used, count in zip(present, allocated, blocks, strict=False):
        segment = plain.get(address)
        kind, stream, pool = (segment.kind, segment.stream, segment.pool) if segment else (FREED_SINCE, 0, (0, 0))
        uses.append(MemorySegment(kind, stream, pool, address, size, used, count))
    rest = reserved - sum(size for _, size in present)
    if rest or allocated[-1] or blocks[-1]:
        uses.append(MemorySegment(EXPANDABLE, 0, (0, 0), 0, rest, allocated[-1], blocks[-1]))
    return uses


class SegmentGroup(NamedTuple):
    """Segments of one type, size in bytes, stream and pool; size 0 for expandable ones."""

    kind: str
    size: int
    stream: int
    pool: tuple[int, int]


class Use(NamedTuple):
    """Bytes reserved and not allocated, bytes reserved, number of segments."""

    unused: int
    reserved: int
    segments: int

    @classmethod
    def total(cls, uses: Iterable[Use]) -> Use:
        """The sum of ``uses``."""
        return summed((cls, use) for use in uses).get(cls, NO_USE)


NO_USE = Use(0, 0, 0)


def grouped_segments(segments: Sequence[MemorySegment]) -> dict[SegmentGroup, Use]:
    """The use of each group; their bytes add up to those of ``segments``."""
    return summed(
        (
            SegmentGroup(s.type, 0 if s.type == EXPANDABLE else s.reserved_bytes, s.stream, s.pool),
            Use(s.unused, s.reserved_bytes, 1),
        )
        for s in segments
    )


def summed(amounts: Iterable[tuple[Key, Row]]) -> dict[Key, Row]:
    """Key → the sum of its amounts (rows of numbers), in the order of the first of each."""
    sums: dict[Key, Row] = {}
    for key, amount in amounts:
        sums[key] = type(amount)(*map(add, sums[key], amount)) if key in sums else amount
    return sums
