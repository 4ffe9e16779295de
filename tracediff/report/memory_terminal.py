"""Memory snapshots → the terminal."""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from tracediff.errors import printable
from tracediff.present.memory import DeviceText, MemoryText
from tracediff.report.table_terminal import print_screen, to_rich


def show(text: MemoryText, console: Console) -> None:
    """Print the sections of all devices."""
    parts: list[RenderableType] = [Text(printable(text.title), style="bold")]
    for section in text.sections:
        parts += _section(section)
    print_screen(console, Group(*parts))


def _section(section: DeviceText) -> list[RenderableType]:
    lines: list[RenderableType] = [
        Text(printable(section.title), style="bold"),
        Padding(Text(printable(section.sentence)), (0, 2)),
    ]
    notes = [Padding(Text(printable(note), style="dim"), (0, 2)) for note in section.notes]
    return [*lines, *notes, Text(), *(to_rich(table) for table in section.tables)]
