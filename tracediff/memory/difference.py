"""Two accounts → what is new, gone, grown and shrunk between their peaks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tracediff.memory.account import LARGEST_CLASS, SIZE_CLASSES, Account, Held, Holder, SnapshotAccount

CALL_SITE, MODULE, SIZE_CLASS = "call_site", "module", "size_class"
VIEWS = (CALL_SITE, MODULE, SIZE_CLASS)
"""By what holders are grouped: attributes of `Holder`."""
NEW, GONE, GREW, SHRANK, SAME = "new", "gone", "grew", "shrank", "same"
NOTHING = Held(0, 0)


class HolderChange(NamedTuple):
    """What one group of holders has at the peak of control and of test."""

    name: str
    control: Held
    test: Held

    @property
    def change(self) -> int:
        """Bytes, test − control."""
        return self.test.size - self.control.size

    @property
    def status(self) -> str:
        """NEW, GONE, GREW, SHRANK or SAME."""
        if self.control == NOTHING or self.test == NOTHING:
            return NEW if self.control == NOTHING else GONE
        return GREW if self.change > 0 else SHRANK if self.change < 0 else SAME


@dataclass(frozen=True)
class DeviceDifference:
    """One device of two snapshots; a side that does not use the device is None."""

    device: int
    control: Account | None
    test: Account | None

    def changes(self, view: str) -> list[HolderChange]:
        """The holders grouped by ``view``, the largest change first; their changes add up to that of the peak."""
        sides = [grouped(side, view) if side else {} for side in (self.control, self.test)]
        found = [HolderChange(name, *(side.get(name, NOTHING) for side in sides)) for name in {**sides[0], **sides[1]}]
        return sorted(found, key=lambda row: (-abs(row.change), -max(row.control.size, row.test.size), row.name))


@dataclass(frozen=True)
class SnapshotDifference:
    """Two snapshots: their accounts, and each device that either uses."""

    control: SnapshotAccount
    test: SnapshotAccount
    devices: tuple[DeviceDifference, ...]


def difference(control: SnapshotAccount, test: SnapshotAccount) -> SnapshotDifference:
    """Both accounts device by device; devices are the same if their numbers are."""
    sides = [{account.device: account for account in side.devices} for side in (control, test)]
    devices = sorted({*sides[0], *sides[1]})
    return SnapshotDifference(
        control, test, tuple(DeviceDifference(device, *(side.get(device) for side in sides)) for device in devices)
    )


def holdings(account: Account, view: str) -> list[tuple[str, Held]]:
    """The holders of a peak grouped by ``view``, the largest first; size classes from small to large."""
    found = grouped(account, view)
    if view == SIZE_CLASS:
        return [(name, found[name]) for name in size_classes(found)]
    return sorted(found.items(), key=lambda item: (-item[1].size, item[0]))


def size_classes(names: Sequence[str] | dict[str, Held]) -> list[str]:
    """``names`` of size classes, from small to large; rounding last."""
    order = [*(name for _, name in SIZE_CLASSES), LARGEST_CLASS]
    return sorted(names, key=lambda name: order.index(name) if name in order else len(order))


def grouped(account: Account, view: str) -> dict[str, Held]:
    """Name in ``view`` → what it holds at the peak; the bytes add up to the peak."""
    sizes: Counter[str] = Counter()
    blocks: Counter[str] = Counter()
    for holder, amount in account.holders.items():
        name = _name(holder, view)
        sizes[name] += amount.size
        blocks[name] += amount.blocks
    return {name: Held(size, blocks[name]) for name, size in sizes.items()}


def _name(holder: Holder, view: str) -> str:
    return {CALL_SITE: holder.call_site, MODULE: holder.module, SIZE_CLASS: holder.size_class}[view]
