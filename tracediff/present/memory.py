"""Memory snapshots → the titles, sentences and tables of each device, the same for terminal and Markdown."""

from __future__ import annotations

from dataclasses import dataclass

from tracediff.memory.account import SnapshotAccount
from tracediff.memory.difference import SnapshotDifference
from tracediff.present.memory_tables import (
    amounts_table,
    causes,
    change_tables,
    holder_tables,
    notes,
    segments_table,
    sentence,
)
from tracediff.present.plain_table import Table


@dataclass(frozen=True)
class DeviceText:
    """One device: its title, the answer in a sentence, notes, tables."""

    title: str
    sentence: str
    notes: list[str]
    tables: list[Table]


@dataclass(frozen=True)
class MemoryText:
    """One snapshot or two: the title and the sections of the devices."""

    title: str
    sections: list[DeviceText]


def account_text(account: SnapshotAccount, top: int) -> MemoryText:
    """One snapshot with up to ``top`` rows per table."""
    sections = [
        DeviceText(
            f"device {device.device}",
            sentence([device]),
            notes([device]),
            [amounts_table([device]), *holder_tables(device, top), segments_table([device], top)],
        )
        for device in account.devices
    ]
    return MemoryText(account.name, sections)


def difference_text(found: SnapshotDifference, top: int) -> MemoryText:
    """Two snapshots with up to ``top`` rows per table."""
    sections = []
    for device in found.devices:
        sides = (device.control, device.test)
        largest = causes(device)
        sections.append(
            DeviceText(
                f"device {device.device}",
                sentence(sides) + (f"; largest changes: {largest}" if largest else ""),
                notes(sides),
                [amounts_table(sides), *change_tables(device, top), segments_table(sides, top)],
            )
        )
    return MemoryText(f"{found.control.name} → {found.test.name}", sections)
