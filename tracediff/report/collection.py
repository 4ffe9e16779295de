"""`CollectionTable` → terminal, Markdown, and the JSON document of schema ``tracediff.table/1``
(docs/reference/table.md).
"""

from functools import partial

from rich.console import Console, Group

from tracediff.collected import CollectionTable
from tracediff.formatting import percent
from tracediff.present.collection import HEAD, cells_of, formats_of, fx_lines, heads, notes_of, stage_lines, title
from tracediff.present.plain_text import Table
from tracediff.report.escape import escaped
from tracediff.report.json_text import json_text
from tracediff.report.table_terminal import AsWide, fitted, line, print_screen
from tracediff.report.to_markdown import table_lines

ON_SCREEN = (
    "variant",
    "step",
    "speed-up",
    "95 %",
    "first",
    "kernels",
    "breaks",
    "peak",
    "profiler",
    "ops",
    "build",
    "warm",
    "items/s",
    "IQR",
    "runs",
)
"""The columns in a terminal, which omits the last ones where it is narrow; JSON and Markdown have all."""


def show(collection: CollectionTable, console: Console) -> None:
    """Print the table, as many of its columns as fit."""
    parts = [line(title(collection), "bold")]
    formats = formats_of(collection.rows)
    places, titles = [HEAD.index(name) for name in ON_SCREEN], heads(formats)
    cells = [cells_of(row, formats) for row in collection.rows if row.runs]
    if cells:
        rows = tuple(tuple(texts[k] for k in places) for texts in cells)
        table = Table(title="", about="", heads=tuple(titles[k] for k in places), texts=1, rows=rows)
        parts.append(AsWide(partial(fitted, table)))
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
