"""`CollectionTable` → terminal, Markdown, and the JSON document of schema ``tracediff.table/1``
(docs/reference/table.md).
"""

from __future__ import annotations

from rich.console import Console, Group
from rich.text import Text

from tracediff.collected import CollectionTable
from tracediff.errors import printable
from tracediff.formatting import percent
from tracediff.present.collection import HEAD, cells_of, formats_of, fx_lines, heads, notes_of, stage_lines, title
from tracediff.report.escape import escaped
from tracediff.report.json_text import json_text
from tracediff.report.table_terminal import grid, line, print_screen
from tracediff.report.to_markdown import table_lines

DROPPED_FIRST = ("runs", "IQR", "items/s", "warm", "build", "ops", "profiler", "peak")
"""Columns omitted on a narrow terminal, in this order; JSON and Markdown have all."""


def show(collection: CollectionTable, console: Console) -> None:
    """Print the table, as many of its columns as fit."""
    parts = [line(title(collection), "bold")]
    formats = formats_of(collection.rows)
    titles = heads(formats)
    cells = [cells_of(row, formats) for row in collection.rows if row.runs]
    columns = [i for i in range(len(HEAD)) if i == 0 or any(c[i] for c in cells)]
    for name in DROPPED_FIRST:
        if sum(max(len(titles[i]), *(len(c[i]) for c in cells)) + 2 for i in columns if cells) <= console.width:
            break
        columns = [i for i in columns if HEAD[i] != name]
    table = grid([titles[i] for i in columns], "l" + "r" * (len(columns) - 1))
    for texts in cells:
        table.add_row(*(Text(printable(texts[i])) for i in columns))
    if cells:
        parts.append(table)
    for row in collection.rows:
        parts += [line(note, "" if row.failed else "dim") for note in notes_of(row)]
    parts += map(line, stage_lines(collection.rows))
    for row in collection.rows:
        parts += map(line, fx_lines(row.variant, row.fx_nodes))
    print_screen(console, Group(*parts))


def to_markdown(collection: CollectionTable) -> str:
    """All columns as GitHub-flavoured Markdown."""
    formats = formats_of(collection.rows)
    rows = [cells_of(row, formats) if row.runs else [row.variant, *[""] * (len(HEAD) - 1)] for row in collection.rows]
    cells = [[escaped(cell) for cell in row] for row in rows]
    table = table_lines(heads(formats), "l" + "r" * (len(HEAD) - 1), cells)
    lines = [f"### {escaped(title(collection))}", "", *table]
    notes = [note for row in collection.rows for note in notes_of(row)] + stage_lines(collection.rows)
    for row in collection.rows:
        for node in row.fx_nodes:
            notes.append(f"{row.variant}, {node.node} ({node.calls}): {node.us:,.1f} µs, {percent(node.share)}")
    return "\n".join([*lines, *([""] if notes else []), *(f"- {escaped(note)}" for note in notes)]) + "\n"


def to_json(collection: CollectionTable) -> str:
    """The document, with a new line at its end."""
    return json_text(collection)
