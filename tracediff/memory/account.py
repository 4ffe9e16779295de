"""`Recording` → `Account`: the peak of allocated memory, and what holds it.

A block counts from ``alloc`` to ``free_requested``, as in `torch.cuda.memory_allocated`; its memory can be used again
only from ``free_completed`` on, so between both it is reserved, but not allocated. The trace has the bytes that the
program requested. What the allocator adds to a block (rounding) is known for the blocks at the dump only: it is one
holder of its own, and counts over the whole recording.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from tracediff.memory.call_site import NO_SITE, CallSite
from tracediff.memory.lifetimes import BEFORE, FREED, RECORDED, Lifetime, lifetimes
from tracediff.memory.segments import SegmentUse, reserved_at, segment_uses
from tracediff.memory.snapshot import ALLOC, FREE, OUT_OF_MEMORY, MemorySnapshot, Recording

ROUNDING = "rounding"
"""Origin of the bytes that the allocator adds to the blocks at the dump."""
MIB = 1 << 20
SIZE_CLASSES = (
    (512, "up to 512 B"),
    (MIB, "512 B to 1 MiB"),
    (10 * MIB, "1 to 10 MiB"),
    (100 * MIB, "10 to 100 MiB"),
    (1024 * MIB, "100 MiB to 1 GiB"),
)
"""Largest requested bytes of a class → its name. The allocator serves up to 1 MiB from segments of 2 MiB, below 10 MiB
from segments of 20 MiB, and larger blocks from segments of their own.
"""
LARGEST_CLASS = "over 1 GiB"


class Holder(NamedTuple):
    """What holds memory: its origin, its call site (where it was freed if the origin is FREED), its size class."""

    origin: str
    site: CallSite
    size_class: str

    @property
    def is_unknown(self) -> bool:
        """Whether nothing tells which line allocated it."""
        return self.origin == FREED or (self.origin in (RECORDED, BEFORE) and self.site == NO_SITE)

    @property
    def call_site(self) -> str:
        """The call site, or why it is unknown."""
        if self.origin == ROUNDING:
            return "rounding: added by the allocator"
        if self.origin == FREED:
            freed = f"at {self.site}" if self.site != NO_SITE else "since"
            return f"unknown, freed {freed}: allocated before the recording"
        if self.origin == BEFORE and self.site == NO_SITE:
            return "unknown: allocated before the recording"
        return str(self.site)

    @property
    def module(self) -> str:
        """The Python module of the call site, or why it is unknown."""
        known = self.origin != ROUNDING and not self.is_unknown
        return self.site.module if known else Holder(self.origin, NO_SITE, "").call_site


class Held(NamedTuple):
    """Bytes, and the number of blocks that have them."""

    size: int
    blocks: int


@dataclass(frozen=True, kw_only=True)
class Account:
    """One device of a snapshot; all amounts in bytes.

    Attributes:
        start: allocated before the first event: allocated at the dump less what the events add.
        peak: most allocated at any level, the sum of ``holders``. peak_level: the first level that has it.
        holders: what is allocated at the peak. lifetimes: of all blocks.
        rounding: what the allocator added to the blocks at the dump; part of every level.
        levels: allocated at each level, 0 … number of events.
        times: µs from the first event to each level; None where the snapshot has no times.
        reserved: at the peak. segments: the use of each segment at the peak.
        allocated_at_dump, reserved_at_dump: in the segments of the snapshot.
        actions: number of events by action. out_of_memory: bytes of each request that failed.
        contradictions: number of events that do not fit the others, such as two frees of one block.
    """

    device: int
    start: int
    peak: int
    peak_level: int
    holders: dict[Holder, Held]
    lifetimes: list[Lifetime]
    rounding: int
    levels: list[int]
    times: list[int] | None
    reserved: int
    segments: list[SegmentUse]
    allocated_at_dump: int
    reserved_at_dump: int
    actions: dict[str, int]
    out_of_memory: list[int]
    contradictions: int

    @property
    def fragmentation(self) -> int:
        """Reserved and not allocated at the peak."""
        return self.reserved - self.peak

    @property
    def unknown(self) -> int:
        """Bytes of the peak whose call site is unknown, without rounding."""
        return sum(amount.size for holder, amount in self.holders.items() if holder.is_unknown)


@dataclass(frozen=True)
class SnapshotAccount:
    """One snapshot: its name and the account of each device, by number."""

    name: str
    devices: tuple[Account, ...]


def account_of(snapshot: MemorySnapshot) -> SnapshotAccount:
    """The accounts of all devices of ``snapshot``."""
    return SnapshotAccount(snapshot.name, tuple(device_account(recording) for recording in snapshot.recordings))


def device_account(recording: Recording) -> Account:
    """The account of one device."""
    events = recording.events
    at_dump = {block.address: (block.requested, block.site) for block in recording.blocks}
    blocks, contradictions = lifetimes(events, (ALLOC,), (FREE,), at_dump)
    allocated_at_dump = sum(block.size for block in recording.blocks)
    added = {block.address: block.size - block.requested for block in recording.blocks}
    for block in blocks:
        if block.last == len(events) and block.origin == RECORDED and block.address in at_dump:
            added[block.address] += at_dump[block.address][0] - block.size
    rounding = sum(added.values())
    levels = _levels(blocks, len(events), rounding)
    peak = max(levels)
    peak_level = levels.index(peak)
    alive = [block for block in blocks if block.first <= peak_level <= block.last]
    reserved = reserved_at(recording, peak_level)
    return Account(
        device=recording.device,
        start=levels[0],
        peak=peak,
        peak_level=peak_level,
        holders=_holders(alive, rounding),
        lifetimes=blocks,
        rounding=rounding,
        levels=levels,
        times=_times(recording),
        reserved=reserved,
        segments=segment_uses(recording, peak_level, reserved, alive, added),
        allocated_at_dump=allocated_at_dump,
        reserved_at_dump=sum(segment.size for segment in recording.segments),
        actions=dict(sorted(Counter(event.action for event in events).items())),
        out_of_memory=[event.size for event in events if event.action == OUT_OF_MEMORY],
        contradictions=contradictions,
    )


def size_class(size: int) -> str:
    """The class of a block of ``size`` requested bytes."""
    return next((name for largest, name in SIZE_CLASSES if size <= largest), LARGEST_CLASS)


def _levels(blocks: Sequence[Lifetime], events: int, rounding: int) -> list[int]:
    changes = [0] * (events + 2)
    changes[0] = rounding
    for block in blocks:
        changes[block.first] += block.size
        changes[block.last + 1] -= block.size
    return list(accumulate(changes[:-1]))


def _holders(alive: Sequence[Lifetime], rounding: int) -> dict[Holder, Held]:
    sizes: Counter[Holder] = Counter()
    counts: Counter[Holder] = Counter()
    for block in alive:
        holder = Holder(block.origin, block.site, size_class(block.size))
        sizes[holder] += block.size
        counts[holder] += 1
    found = {holder: Held(size, counts[holder]) for holder, size in sizes.items()}
    if rounding:
        found[Holder(ROUNDING, NO_SITE, "rounding")] = Held(rounding, 0)
    return found


def _times(recording: Recording) -> list[int] | None:
    """µs of each level; times that go back stay at the latest one."""
    times = [event.time for event in recording.events]
    known = [time for time in times if time is not None]
    if not times or len(known) < len(times):
        return None
    latest = list(accumulate(known, max))
    return [0, *(time - latest[0] for time in latest)]
