"""`CollectionTable` → Markdown."""

from __future__ import annotations

from tracediff.collected.variants import CollectionTable
from tracediff.formatting import percent
from tracediff.present.collection import HEAD, cells_of, formats_of, heads, notes_of, title
from tracediff.present.compile_stages import stage_lines
from tracediff.report.escape import escaped
from tracediff.report.table_markdown import table_lines


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
