"""Memory allocations from ``[memory]`` events: the bytes allocated on each device over time, and the single blocks."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from tracediff.arrays import MISSING, Int64, all_none, distinct, int64_of, sorted_by, tuples
from tracediff.ingest.model import categories as cat
from tracediff.ingest.model.trace import Trace
from tracediff.profile.placement.steps import Steps
from tracediff.runtimes import CPU, DEVICE_NAMES
from tracediff.structs import FrozenStruct

CHANGE, FAILURE = "[memory]", "[OutOfMemory]"
HOST = CPU.device
FROM_ZERO = " (above the file's start)"
"""Suffix of devices for which only changes are recorded (torch before 1.11)."""


class Allocations(FrozenStruct, kw_only=True):
    """The allocations and frees of one device: m events in order of time. A level counts the events so far, 0 … m.

    Attributes:
        kind: host, GPU, …; number: of the device, MISSING where not recorded.
        rows: int64[m] rows of the trace. time: int64[m] ns. change: int64[m] bytes, negative where a block was freed.
        allocated, reserved: int64[m + 1] bytes by level. On the host torch counts from the first profile of the
            process on, and nothing is reserved.
        has_totals: whether the trace records the allocated total. If not, changes are summed from 0 at the start of
            the file, and reserved is 0.
        address: int64[m] of the block, MISSING where not recorded.
        failed: int64[f] ns of allocations that ran out of memory.
    """

    kind: str
    number: int
    rows: Int64
    time: Int64
    change: Int64
    allocated: Int64
    reserved: Int64
    has_totals: bool
    address: Int64
    failed: Int64

    @property
    def device(self) -> str:
        """``host`` or ``GPU 0``."""
        return self.kind if self.kind == HOST or self.number == MISSING else f"{self.kind} {self.number}"

    def peaks(self, steps: Steps) -> Int64:
        """int64[s] level of the peak of allocated memory within each step, the earliest of equals."""
        levels = tuples(*steps.ranges(self.time))
        return int64_of([low + int(np.argmax(self.allocated[low : high + 1])) for low, high in levels])


def allocations(trace: Trace) -> list[Allocations]:
    """The allocations of every device in ``trace``, in order of type and number.

    Reads Bytes, Total Allocated, Device Type and Device Id, and if they were kept Total Reserved, Addr and Ev Idx,
    which orders events with the same time.
    """
    rows = np.flatnonzero(trace.integer_column("Bytes", cat.MEMORY) != MISSING)
    happened, failed = (trace.rows_named(name.__eq__, rows) for name in (CHANGE, FAILURE))
    kind, number = (trace.integer_column(name, cat.MEMORY) for name in ("Device Type", "Device Id"))
    devices = [(k, n) for k in distinct(kind[rows]).tolist() for n in distinct(number[rows][kind[rows] == k]).tolist()]
    return [
        _device(trace, k, n, *(some[(kind[some] == k) & (number[some] == n)] for some in (happened, failed)))
        for k, n in devices
    ]


def _device(trace: Trace, kind: int, number: int, rows: Int64, failed: Int64) -> Allocations:
    rows = sorted_by(rows, trace.integer_column("Ev Idx", cat.MEMORY), trace.ts)
    columns = ("Bytes", "Total Allocated", "Total Reserved", "Addr")
    change, total, reserved, address = (trace.integer_column(name, cat.MEMORY)[rows] for name in columns)
    has_totals = bool((total != MISSING).all())
    before = total[:1] - change[:1] if has_totals and len(rows) else [0]
    allocated = np.concatenate((before, total if has_totals else np.cumsum(change)))
    reserved = np.concatenate(([0], np.where(reserved == MISSING, 0, reserved)))
    name = DEVICE_NAMES.get(kind, f"device type {kind}" if kind != MISSING else "device")
    return Allocations(
        kind=name,
        number=number,
        rows=rows,
        time=trace.ts[rows],
        change=change,
        allocated=allocated,
        reserved=reserved,
        has_totals=has_totals,
        address=address,
        failed=np.sort(trace.ts[failed]),
    )


def devices(allocations_of_devices: Sequence[Allocations]) -> list[str]:
    """The names of the devices in tables. The only device of its kind has no number, so that ranks on different GPUs
    share a row. Amounts that count from the start of the file have a row of their own.
    """
    alone = {kind for kind, count in Counter(device.kind for device in allocations_of_devices).items() if count == 1}
    return [
        (device.kind if device.kind in alone else device.device) + ("" if device.has_totals else FROM_ZERO)
        for device in allocations_of_devices
    ]


def blocks(device: Allocations) -> tuple[Int64, Int64, Int64]:
    """Of each block of a device (position of its allocation among the device's events, −1 if it was before the capture;
    level up to which it is allocated; bytes), int64[b] each.

    A block lasts until the next event of its address; a block freed without an allocation in the file was allocated
    before the capture.
    """
    some = sorted_by(np.flatnonzero(device.change), device.address)
    address, born = device.address[some], device.change[some] > 0
    same = address[1:] == address[:-1]
    following = np.append(np.where(same, some[1:], len(device.rows)), len(device.rows)) if len(some) else some
    first_of_address = np.append(True, ~same) if len(some) else born
    old = ~born & first_of_address
    event = np.concatenate((some[born], all_none(int(old.sum()))))
    last = np.concatenate((following[born], some[old]))
    return event, last, np.abs(np.concatenate((device.change[some[born]], device.change[some[old]])))
