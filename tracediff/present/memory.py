"""Memory snapshots → the titles, sentences and tables of each device, the same for terminal and Markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tracediff.formatting import byte_unit, count, counts, once, part, percent, plural, signed_size, size, sizes
from tracediff.memory.account import (
    CALL_SITE,
    MODULE,
    SIZE_CLASS,
    VIEWS,
    Account,
    DeviceAccounts,
    Held,
    HolderChange,
    SnapshotAccount,
    devices_of,
    holdings,
    size_classes,
)
from tracediff.memory.lifetimes import NO_USE, SegmentGroup, Use, grouped_segments
from tracediff.present.plain_text import Table
from tracediff.present.tables import ColumnFormat, byte_format
from tracediff.structs import FrozenStruct, total


class DeviceText(FrozenStruct):
    """One device: its title, the answer in a sentence, notes, tables."""

    title: str
    sentence: str
    notes: list[str]
    tables: list[Table]


class MemoryText(FrozenStruct):
    """One snapshot or two: the title and the sections of the devices."""

    title: str
    sections: list[DeviceText]


def memory_text(snapshots: Sequence[SnapshotAccount], top: int) -> MemoryText:
    """One snapshot or two with up to ``top`` rows per table."""
    sections = [
        DeviceText(
            f"device {device.number}",
            sentence(device),
            notes(device.accounts),
            [
                amounts_table(device.accounts),
                *(_view_table(device, view, top) for view in VIEWS),
                segments_table(device.accounts, top),
            ],
        )
        for device in devices_of(snapshots)
    ]
    return MemoryText(" → ".join(snapshot.name for snapshot in snapshots), sections)


TITLES = {CALL_SITE: "call site", MODULE: "Python module", SIZE_CLASS: "size of block"}
HEADS = {CALL_SITE: "call site", MODULE: "module", SIZE_CLASS: "block"}
TOTAL = "peak"
AMOUNTS: tuple[tuple[str, Callable[[Account], int]], ...] = (
    ("allocated at the start", lambda a: a.start),
    ("+ above the start", lambda a: a.peak - a.start),
    ("= peak allocated", lambda a: a.peak),
    ("+ reserved, not allocated", lambda a: a.fragmentation),
    ("= reserved at the peak", lambda a: a.reserved),
    ("allocated at the dump", lambda a: a.allocated_at_dump),
    ("reserved at the dump", lambda a: a.reserved_at_dump),
)
"""Title of an amount of a device → its bytes."""


def _head(title: str, form: ColumnFormat) -> str:
    return f"{title} {form.unit}".rstrip()


def amounts_table(sides: Sequence[Account | None]) -> Table:
    """The amounts of one device of one snapshot or of both."""
    rows = [(title, [amount(side) if side else 0 for side in sides]) for title, amount in AMOUNTS]
    columns = byte_format(amount for _, amounts in rows for amount in amounts)
    if len(sides) == 1:
        lines = [(title, columns.text(amounts[0])) for title, amounts in rows]
        return Table(title="Memory", heads=("", columns.unit or "bytes"), rows=tuple(lines))
    both = [(title, *map(columns.text, amounts), columns.change(amounts[1] - amounts[0])) for title, amounts in rows]
    heads = ("", _head("control", columns), "test", "change")
    return Table(title="Memory", heads=heads, rows=tuple(both), together=3)


def _view_table(device: DeviceAccounts, view: str, top: int) -> Table:
    """What holds the peak of one snapshot; of two, what changed between their peaks."""
    account, *others = device.accounts
    return _change_table(device, view, top) if others or not account else _holder_table(account, view, top)


def _holder_table(account: Account, view: str, top: int) -> Table:
    every = holdings(account, view)
    rows = every if view == SIZE_CLASS else every[:top]
    others = [amount for _, amount in every[len(rows) :]]
    if others:
        rest = Held(sum(a.size for a in others), sum(a.blocks for a in others))
        rows = [*rows, (_others(others, view), rest)]
    rows = [*rows, (TOTAL, Held(account.peak, sum(amount.blocks for _, amount in every)))]
    columns = byte_format(amount.size for _, amount in rows)
    return Table(
        title=f"What holds the peak, by {TITLES[view]}",
        heads=(HEADS[view], _head("peak", columns), "share", "blocks"),
        rows=tuple((n, columns.text(a.size), part(a.size, account.peak), _blocks(a.blocks)) for n, a in rows),
    )


def _change_table(device: DeviceAccounts, view: str, top: int) -> Table:
    every = device.changes(view)
    if view == SIZE_CLASS:
        order = size_classes([row.name for row in every])
        rows = sorted(every, key=lambda row: order.index(row.name))
    else:
        rows = [row for row in every if row.change][:top]
    others = every if not rows else [row for row in every if row not in rows]
    if others:
        rows = [*rows, _sum(_others(others, view), others)]
    rows = [*rows, _sum(TOTAL, every)]
    columns = byte_format(amount for row in rows for amount in (*row.size, row.change))
    return Table(
        title=f"What changed at the peak, by {TITLES[view]}",
        heads=(HEADS[view], _head("control", columns), "test", "change", "", "blocks"),
        rows=tuple(
            (
                row.name,
                *row.size.map(columns.text),
                columns.change(row.change),
                row.status if row.status in ("new", "gone") else "",
                counts(*row.blocks) if any(row.blocks) else "",
            )
            for row in rows
        ),
        together=4 if any(row.status in ("new", "gone") for row in rows) else 3,
    )


def _sum(name: str, rows: Sequence[HolderChange]) -> HolderChange:
    return HolderChange(name, total(row.size for row in rows), total(row.blocks for row in rows))


def _others(others: Sequence[object], view: str) -> str:
    return plural(len(others), f"other {TITLES[view]}")


def _blocks(blocks: int) -> str:
    return count(blocks) if blocks else ""


def segments_table(sides: Sequence[Account | None], top: int) -> Table:
    """Reserved memory at the peak by kinds of segments, those with most unused memory first; the rows add up."""
    groups = [grouped_segments(side.segments) if side else {} for side in sides]
    unused = {g: [side.get(g, NO_USE).unused for side in groups] for side in groups for g in side}
    every = sorted(unused, key=lambda g: (-max(unused[g]), g))
    rows = [(_segment_name(g), [side.get(g, NO_USE) for side in groups]) for g in every[:top]]
    if others := every[top:]:
        rest = [Use.total(side.get(g, NO_USE) for g in others) for side in groups]
        rows.append((plural(len(others), "other kind"), rest))
    rows.append(("reserved", [Use.total(side.values()) for side in groups]))
    lines = [
        (
            name,
            _byte_cell([use.unused for use in uses]),
            once(percent(use.unused / use.reserved) if use.reserved else "–" for use in uses),
            _byte_cell([use.reserved for use in uses]),
            once(count(use.segments) for use in uses),
        )
        for name, uses in rows
    ]
    heads = ("segments", "unused", "share", "reserved", "number")
    return Table(title="Reserved at the peak, by segment", heads=heads, rows=tuple(lines))


def _byte_cell(amounts: Sequence[int]) -> str:
    """``1.18 GB``, or ``1.18 → 1.17 GB``; 0 without a unit."""
    if len(set(amounts)) == 1:
        return size(amounts[0]) if amounts[0] else "0"
    return sizes(*amounts)


def _segment_name(group: SegmentGroup) -> str:
    pool = "" if group.pool == (0, 0) else f", pool {group.pool[0]}.{group.pool[1]}"
    stream = f", stream {group.stream}" if group.stream else ""
    each = f" of {size(group.size)}" if group.size else ""
    return f"{group.kind}{each}{stream}{pool}"


def sentence(device: DeviceAccounts) -> str:
    """The answer in one line: the peak, or its change and the largest changes at the peak."""
    account, *others = device.accounts
    if account and not others:
        return f"peak {size(account.peak)} allocated, {size(account.reserved)} reserved"
    before, after = (side.peak if side else 0 for side in device.accounts)
    unit = byte_unit([before, after])
    change = after - before
    rows = [row for row in device.changes(CALL_SITE) if row.change][:2]
    causes = ", ".join(f"{row.name} {signed_size(row.change)}" for row in rows)
    largest = f"; largest changes: {causes}" if causes else ""
    if not change:
        return f"the peak did not change: {size(before)}{largest}"
    verb = "rose" if change > 0 else "fell"
    return f"the peak {verb}: {unit.plain(before)} → {unit.text(after)} ({signed_size(change)}){largest}"


def notes(sides: Sequence[Account | None]) -> list[str]:
    """What limits the account of a device, and what to do."""
    names = ("",) if len(sides) == 1 else (" of control", " of test")
    labelled = [(side, name) for side, name in zip(sides, names, strict=True) if side]
    silent = [name for side, name in labelled if not side.actions]
    texts = [f"the recording{name} has no events, so its peak is what was allocated at the dump" for name in silent]
    shares = [
        f"{percent(side.unknown / side.peak)} of the peak{name}"
        for side, name in labelled
        if side.unknown * 10 > side.peak
    ]
    if shares:
        texts.append(
            f"no call site for {' and '.join(shares)}: allocated before the recording or without a Python stack; call "
            "torch.cuda.memory._record_memory_history() before the model is built to see more"
        )
    for side, name in labelled:
        if side.out_of_memory:
            failed = plural(len(side.out_of_memory), "request")
            texts.append(f"out of memory{name}: {failed} failed, the largest of {size(max(side.out_of_memory))}")
        if side.contradictions:
            texts.append(f"{plural(side.contradictions, 'event')}{name} contradict others: the recording has gaps")
    return texts
