"""`CollectionTable` → a terminal table."""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from tracediff.collected.variants import CollectionTable
from tracediff.errors import printable
from tracediff.present.collection import HEAD, cells_of, formats_of, fx_lines, heads, notes_of, title
from tracediff.present.compile_stages import stage_lines
from tracediff.report.table_terminal import print_screen

DROPPED_FIRST = ("runs", "IQR", "items/s", "warm", "build", "ops", "profiler", "peak")
"""Columns omitted on a narrow terminal, in this order; JSON and Markdown have all."""


def show(collection: CollectionTable, console: Console) -> None:
    """Print the table, as many of its columns as fit."""
    parts: list[RenderableType] = [Text(printable(title(collection)), style="bold")]
    formats = formats_of(collection.rows)
    titles = heads(formats)
    cells = [cells_of(row, formats) for row in collection.rows if row.runs]
    columns = [i for i in range(len(HEAD)) if i == 0 or any(c[i] for c in cells)]
    for name in DROPPED_FIRST:
        if sum(max(len(titles[i]), *(len(c[i]) for c in cells)) + 2 for i in columns if cells) <= console.width:
            break
        columns = [i for i in columns if HEAD[i] != name]
    grid = Table(box=None, padding=(0, 1), pad_edge=False, header_style="bold")
    for i in columns:
        grid.add_column(titles[i], justify="left" if i == 0 else "right", no_wrap=True, overflow="ellipsis")
    for texts in cells:
        grid.add_row(*(Text(printable(texts[i])) for i in columns))
    if cells:
        parts.append(grid)
    for row in collection.rows:
        parts += [Text(printable(note), style="" if row.failed else "dim") for note in notes_of(row)]
    lines = [
        *stage_lines(collection.rows),
        *(line for row in collection.rows for line in fx_lines(row.variant, row.fx_nodes)),
    ]
    parts += [Text(printable(line)) for line in lines]
    print_screen(console, Group(*parts))
