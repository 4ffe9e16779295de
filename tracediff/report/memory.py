"""Memory snapshots → terminal, Markdown, a page, and the JSON document of schema ``tracediff.memory/1``
(docs/reference/memory.md).
"""

from collections.abc import Sequence
from functools import partial
from typing import Annotated

from msgspec import Meta
from rich.console import Console, Group

from tracediff.memory.account import (
    GONE,
    GREW,
    NEW,
    SAME,
    SHRANK,
    VIEWS,
    Account,
    DeviceAccounts,
    SnapshotAccount,
    devices_of,
    holdings,
    timeline,
)
from tracediff.memory.lifetimes import MemorySegment
from tracediff.present.memory import MemoryText
from tracediff.report.escape import escaped
from tracediff.report.json_text import JsonObject, filled, json_text
from tracediff.report.table_terminal import INDENT, line, print_screen, to_rich
from tracediff.report.to_markdown import joined, section_lines


def show(text: MemoryText, console: Console) -> None:
    """Print the sections of all devices."""
    parts = [line(text.title, "bold")]
    for section in text.sections:
        parts += [line(section.title, "bold"), line(section.sentence, indent=INDENT)]
        parts += [line(note, "dim", INDENT) for note in section.notes]
        parts += [line(), *map(to_rich, section.tables)]
    print_screen(console, Group(*parts))


def to_markdown(text: MemoryText) -> str:
    """The sections of all devices as GitHub-flavoured Markdown."""
    lines = [f"## {escaped(text.title)}", ""]
    for section in text.sections:
        lines += [f"**{escaped(section.title)}**: {escaped(section.sentence)}", ""]
        lines += [f"- {escaped(note)}" for note in section.notes] + ([""] if section.notes else [])
        for table in section.tables:
            lines += section_lines(table)
    return joined(lines)


class Layers(JsonObject):
    """Allocated memory over the recording, stacked: at each position the layers add up to what is allocated."""

    events: list[int]
    """positions: number of events that happened before, ascending"""
    times_us: list[int] | None
    """µs from the first event to each position; null where none are recorded"""
    layers: dict[str, list[int]]
    """name of a layer → bytes at each position"""


class MemoryAmounts(JsonObject):
    """One device of one snapshot."""

    start_bytes: int
    """allocated before the first event"""
    above_start_bytes: int
    """peak − start"""
    peak_bytes: int
    """most allocated at any time of the recording"""
    peak_event: int
    """number of events before the peak is reached"""
    peak_us: int | None
    """µs from the first event to the peak; null where not recorded"""
    reserved_bytes: int
    """in segments at the peak"""
    fragmentation_bytes: int
    """reserved − allocated at the peak"""
    unknown_bytes: int
    """part of the peak whose call site is unknown"""
    rounding_bytes: int
    """part of the peak that the allocator added to blocks"""
    allocated_at_dump_bytes: int
    """bytes"""
    reserved_at_dump_bytes: int
    """bytes"""
    actions: dict[str, int]
    """number of events by action of the allocator"""
    out_of_memory_bytes: list[int]
    """bytes of each request that failed"""
    contradictions: int
    """events that do not fit the others, as in a recording with gaps"""
    segments: list[MemorySegment]
    """segments at the peak; they add up to reserved"""
    timeline: Layers


class MemoryHolder(JsonObject):
    """What holds a part of the peak; the rows of a list add up to the peak."""

    name: str
    """call site, module or size class, or why it is unknown"""
    control_bytes: int
    """bytes"""
    control_blocks: int
    """number of blocks"""
    test_bytes: int | None
    """bytes; null for one snapshot"""
    test_blocks: int | None
    """number of blocks; null for one snapshot"""
    delta_bytes: int | None
    """test − control, in bytes; null for one snapshot"""
    status: Annotated[str | None, Meta(extra_json_schema={"enum": [NEW, GONE, GREW, SHRANK, SAME, None]})]
    """null for one snapshot"""


class MemoryDevice(JsonObject):
    """One device."""

    device: int
    """number of the device"""
    control: MemoryAmounts | None
    """null where control does not use the device"""
    test: MemoryAmounts | None
    """null where test does not use the device, and for one snapshot"""
    by_call_site: list[MemoryHolder]
    by_module: list[MemoryHolder]
    by_size_class: list[MemoryHolder]


class MemoryDocument(JsonObject, tag_field="schema", tag="tracediff.memory/1"):
    """What holds the peak of GPU memory in one memory snapshot, or what changed between two."""

    control: str
    """file name of the snapshot"""
    test: str | None
    """file name of the second snapshot; null for one snapshot"""
    devices: list[MemoryDevice]


def to_json(accounts: Sequence[SnapshotAccount]) -> str:
    """The document of one or two snapshots as indented text, with a new line at its end."""
    control, test, *_ = *(account.name for account in accounts), None
    return json_text(MemoryDocument(control, test, [_device(device) for device in devices_of(accounts)]))


def _device(device: DeviceAccounts) -> MemoryDevice:
    control, test, *_ = *(_amounts(account) if account else None for account in device.accounts), None
    return MemoryDevice(device.number, control, test, *(_holders(device, view) for view in VIEWS))


def _holders(device: DeviceAccounts, view: str) -> list[MemoryHolder]:
    account, *others = device.accounts
    if account and not others:
        return [MemoryHolder(name, a.size, a.blocks, None, None, None, None) for name, a in holdings(account, view)]
    return [
        MemoryHolder(
            row.name, row.size.control, row.blocks.control, row.size.test, row.blocks.test, row.change, row.status
        )
        for row in device.changes(view)
    ]


def _amounts(account: Account) -> MemoryAmounts:
    levels, layers = timeline(account)
    return filled(
        MemoryAmounts,
        account,
        "bytes",
        above_start_bytes=account.peak - account.start,
        peak_event=account.peak_level,
        peak_us=account.times[account.peak_level] if account.times else None,
        timeline=Layers(levels, [account.times[level] for level in levels] if account.times else None, layers),
    )


def to_html(text: MemoryText, accounts: Sequence[SnapshotAccount], command: str | None = None) -> str:
    """One snapshot or two as one page.

    Args:
        text: its sentences and tables. accounts: of one snapshot, or of control and test.
        command: the command line that creates it, shown at its end.
    """
    from tracediff.charts.figures.memory import memory_layers
    from tracediff.report.page.figures import chart, charts_within
    from tracediff.report.page.html import page, versions

    return page(
        "memory.html.jinja",
        f"{text.title} · tracediff",
        charts_within([chart("memory_layers", partial(memory_layers, accounts))]),
        text=text,
        command=command,
        origin=versions(),
    )
