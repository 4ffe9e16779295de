"""`Recording` → `Account`: the peak of allocated memory, what holds it, and the layers over the recording; two accounts
→ what differs between their peaks.

A block counts from ``alloc`` to ``free_requested``, as in `torch.cuda.memory_allocated`; its memory can be used again
only from ``free_completed`` on, so between both it is reserved, but not allocated. The trace has the bytes that the
program requested. What the allocator adds to a block (rounding) is known for the blocks at the dump only: it is one
holder of its own, and counts over the whole recording.
"""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from tracediff import bounds
from tracediff.arrays import group_by
from tracediff.ingest.files.source import TraceFile
from tracediff.memory.lifetimes import (
    BEFORE,
    FREED,
    RECORDED,
    Lifetime,
    MemorySegment,
    lifetimes,
    reserved_at,
    segment_uses,
    summed,
)
from tracediff.memory.snapshot import ALLOC, FREE, NO_SITE, OUT_OF_MEMORY, CallSite, Recording, read_snapshot
from tracediff.structs import FrozenStruct, Pair, side_sums

ROUNDING = "rounding"
"""Origin of the bytes that the allocator adds to the blocks at the dump."""
MIB = 1 << 20
SIZE_CLASSES = (
    (512, "up to 512 B"),
    (MIB, "512 B to 1 MiB"),
    (10 * MIB, "1 to 10 MiB"),
    (100 * MIB, "10 to 100 MiB"),
    (1024 * MIB, "100 MiB to 1 GiB"),
    (math.inf, "over 1 GiB"),
)
"""Largest requested bytes of a class → its name. The allocator serves up to 1 MiB from segments of 2 MiB, below 10 MiB
from segments of 20 MiB, and larger blocks from segments of their own.
"""


class Holder(NamedTuple):
    """What holds memory: its origin, its call site (where it was freed if the origin is FREED), its size class."""

    origin: str
    site: CallSite
    size_class: str

    @property
    def is_unknown(self) -> bool:
        """Whether the line that allocated it is unknown."""
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
        has_site = self.origin != ROUNDING and not self.is_unknown
        return self.site.module if has_site else Holder(self.origin, NO_SITE, "").call_site


ROUNDED = Holder(ROUNDING, NO_SITE, "rounding")


class Held(NamedTuple):
    """Bytes, and the number of blocks that have them."""

    size: int
    blocks: int


NOTHING = Held(0, 0)


class Account(FrozenStruct, kw_only=True):
    """One device of a snapshot; all amounts in bytes.

    Attributes:
        peak_level: the first level that has the peak.
        holders: what is allocated at the peak. lifetimes: of all blocks.
        levels: allocated at each level, 0 … number of events.
        times: µs from the first event to each level; None where the snapshot has no times.
        reserved: at the peak. segments: the use of each segment at the peak.
        allocated_at_dump, reserved_at_dump: in the segments of the snapshot.
        actions: number of events by action. out_of_memory: bytes of each request that failed.
        contradictions: number of events that do not fit the others, such as two frees of one block.
    """

    device: int
    peak_level: int
    holders: dict[Holder, Held]
    lifetimes: list[Lifetime]
    levels: list[int]
    times: list[int] | None
    reserved: int
    segments: list[MemorySegment]
    allocated_at_dump: int
    reserved_at_dump: int
    actions: dict[str, int]
    out_of_memory: list[int]
    contradictions: int

    @property
    def start(self) -> int:
        """Allocated before the first event: allocated at the dump less what the events add."""
        return self.levels[0]

    @property
    def peak(self) -> int:
        """Most allocated at any level, the sum of ``holders``."""
        return self.levels[self.peak_level]

    @property
    def rounding(self) -> int:
        """What the allocator added to the blocks at the dump; part of every level."""
        return self.holders.get(ROUNDED, NOTHING).size

    @property
    def fragmentation(self) -> int:
        """Reserved and not allocated at the peak."""
        return self.reserved - self.peak

    @property
    def unknown(self) -> int:
        """Bytes of the peak whose call site is unknown, without rounding."""
        return sum(amount.size for holder, amount in self.holders.items() if holder.is_unknown)


class SnapshotAccount(FrozenStruct):
    """One snapshot: its name and the account of each device, by number."""

    name: str
    devices: tuple[Account, ...]


def account_of(path: str) -> SnapshotAccount:
    """The accounts of all devices of the memory snapshot at ``path``, a file or a URL.

    Raises:
        TracediffError: as for `read_snapshot`.
    """
    file = TraceFile(path)
    return SnapshotAccount(file.name, tuple(map(_device_account, read_snapshot(file))))


def _device_account(recording: Recording) -> Account:
    """The account of one device."""
    events = recording.events
    at_dump = {block.address: (block.requested, block.site) for block in recording.blocks}
    blocks, contradictions = lifetimes(events, ALLOC, FREE, at_dump)
    allocated_at_dump = sum(block.size for block in recording.blocks)
    added = {block.address: block.size - block.requested for block in recording.blocks}
    for block in blocks:
        if block.last == len(events) and block.origin == RECORDED and block.address in at_dump:
            added[block.address] += at_dump[block.address][0] - block.size
    rounding = sum(added.values())
    levels = _levels(blocks, len(events), rounding)
    peak_level = levels.index(max(levels))
    alive = [block for block in blocks if block.first <= peak_level <= block.last]
    reserved = reserved_at(recording, peak_level)
    return Account(
        device=recording.device,
        peak_level=peak_level,
        holders=_holders(alive, rounding),
        lifetimes=blocks,
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
    return next(name for largest, name in SIZE_CLASSES if size <= largest)


def _levels(blocks: Sequence[Lifetime], events: int, rounding: int) -> list[int]:
    changes = [0] * (events + 2)
    changes[0] = rounding
    for block in blocks:
        changes[block.first] += block.size
        changes[block.last + 1] -= block.size
    return list(accumulate(changes[:-1]))


def _holders(alive: Sequence[Lifetime], rounding: int) -> dict[Holder, Held]:
    held_by_holder = summed(
        (Holder(block.origin, block.site, size_class(block.size)), Held(block.size, 1)) for block in alive
    )
    if rounding:
        held_by_holder[ROUNDED] = Held(rounding, 0)
    return held_by_holder


def _times(recording: Recording) -> list[int] | None:
    """µs of each level; times that go back stay at the latest one."""
    times = [event.time for event in recording.events]
    recorded_times = [time for time in times if time is not None]
    if not times or len(recorded_times) < len(times):
        return None
    latest = list(accumulate(recorded_times, max))
    return [0, *(time - latest[0] for time in latest)]


CALL_SITE, MODULE, SIZE_CLASS = "call_site", "module", "size_class"
VIEWS = (CALL_SITE, MODULE, SIZE_CLASS)
"""By what holders are grouped: attributes of `Holder`."""
NEW, GONE, GREW, SHRANK, SAME = "new", "gone", "grew", "shrank", "same"


class HolderChange(NamedTuple):
    """What one group of holders has at the peak of control and of test: bytes, and the number of blocks."""

    name: str
    size: Pair[int]
    blocks: Pair[int]

    @property
    def change(self) -> int:
        """Bytes, test − control."""
        return self.size.delta

    @property
    def status(self) -> str:
        """NEW, GONE, GREW, SHRANK or SAME."""
        control, test = zip(self.size, self.blocks, strict=True)
        if NOTHING in (control, test):
            return NEW if control == NOTHING else GONE
        return GREW if self.change > 0 else SHRANK if self.change < 0 else SAME


class DeviceAccounts(FrozenStruct):
    """One device of one snapshot, or of control and test; a side that does not use it is None, but not both."""

    accounts: tuple[Account | None, ...]

    @property
    def number(self) -> int:
        """Its number."""
        return next(account.device for account in self.accounts if account is not None)

    def changes(self, view: str) -> list[HolderChange]:
        """The holders of two snapshots grouped by ``view``, the largest change first; their changes add up to that of
        the peak.
        """
        sums = side_sums(
            (getattr(holder, view), side, amount)
            for side, account in enumerate(self.accounts)
            if account
            for holder, amount in account.holders.items()
        )
        changes = [HolderChange(name, size, blocks) for name, (size, blocks) in sums.items()]
        return sorted(changes, key=lambda row: (-abs(row.change), -max(row.size), row.name))


def devices_of(snapshots: Sequence[SnapshotAccount]) -> list[DeviceAccounts]:
    """Each device that one of ``snapshots`` uses; devices are the same if their numbers are."""
    sides = [{account.device: account for account in side.devices} for side in snapshots]
    return [DeviceAccounts(tuple(side.get(number) for side in sides)) for number in sorted(set().union(*sides))]


def holdings(account: Account, view: str) -> list[tuple[str, Held]]:
    """The holders of a peak grouped by ``view``, the largest first; size classes from small to large."""
    holdings_by_name = grouped(account, view)
    if view == SIZE_CLASS:
        return [(name, holdings_by_name[name]) for name in size_classes(holdings_by_name)]
    return sorted(holdings_by_name.items(), key=lambda item: (-item[1].size, item[0]))


def size_classes(names: Sequence[str] | dict[str, Held]) -> list[str]:
    """``names`` of size classes, from small to large; rounding last."""
    order = [*(name for _, name in SIZE_CLASSES), ROUNDED.size_class]
    return sorted(names, key=order.index)


def grouped(account: Account, view: str) -> dict[str, Held]:
    """Name in ``view`` → what it holds at the peak; the bytes add up to the peak."""
    return summed((getattr(holder, view), amount) for holder, amount in account.holders.items())


BEFORE_RECORDING, OTHER_SITES = "allocated before the recording", "other call sites"


Layers = dict[str, list[int]]
"""Name → bytes at each of some levels; memory from before the recording first, the largest call site next, other call
sites last. At each level they add up to what is allocated.
"""


def timeline(account: Account, sites: list[str] | None = None) -> tuple[list[int], Layers]:
    """(up to about MEMORY_POINTS levels of a device, ascending, its layers at these). Of each stretch of levels the one
    with most memory is kept, so no peak is lost.

    Args:
        sites: call sites that get a layer of their own, else those that hold most at any of the kept levels.
    """
    displayed_levels, displayed_sites = _displayed_levels(account), largest_sites(account) if sites is None else sites
    names = (BEFORE_RECORDING, *displayed_sites, OTHER_SITES)
    blocks: dict[str, list[Lifetime]] = {name: [] for name in names}
    for block in account.lifetimes:
        blocks.get(layer_of(block), blocks[OTHER_SITES]).append(block)
    layers: Layers = {}
    for name in names:
        levels = _levels(blocks[name], len(account.levels) - 1, account.rounding if name == BEFORE_RECORDING else 0)
        layers[name] = [levels[level] for level in displayed_levels]
    order = (BEFORE_RECORDING, *sorted(displayed_sites, key=lambda name: (-max(layers[name]), name)), OTHER_SITES)
    return displayed_levels, {name: layers[name] for name in order if name == BEFORE_RECORDING or any(layers[name])}


def largest_sites(account: Account) -> list[str]:
    """The call sites that hold most at any one time of the recording, the largest first, at most MEMORY_SITES."""
    most = {}
    for name, blocks in group_by(account.lifetimes, layer_of).items():
        changes = sorted(change for b in blocks for change in ((b.first, b.size), (b.last + 1, -b.size)))
        most[name] = max(accumulate(size for _, size in changes))
    most.pop(BEFORE_RECORDING, None)
    return sorted(most, key=lambda name: (-most[name], name))[: bounds.MEMORY_SITES]


def layer_of(block: Lifetime) -> str:
    """The name of the layer of ``block``, if its call site has one of its own."""
    return str(block.site) if block.origin == RECORDED else BEFORE_RECORDING


def _displayed_levels(account: Account) -> list[int]:
    levels = account.levels
    stretch = max(len(levels) // bounds.MEMORY_POINTS, 1)
    displayed_levels = {0, len(levels) - 1, account.peak_level}
    displayed_levels |= {
        max(range(k, min(k + stretch, len(levels))), key=levels.__getitem__) for k in range(0, len(levels), stretch)
    }
    return sorted(displayed_levels)
