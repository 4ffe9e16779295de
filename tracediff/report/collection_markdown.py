"""`CollectionTable` → Markdown."""

from __future__ import annotations

from tracediff.report.collection import CollectionTable
from tracediff.report.collection_text import HEAD, cells_of, heads, title, units_of
from tracediff.report.escape import escaped


def to_markdown(collection: CollectionTable) -> str:
    """All columns as GitHub-flavoured Markdown."""
    units = units_of(collection.rows)
    lines = [
        f"### {escaped(title(collection))}",
        "",
        f"| {' | '.join(heads(units))} |",
        f"|{'|'.join([':--'] + ['--:'] * (len(HEAD) - 1))}|",
    ]
    for row in collection.rows:
        cells = [row.variant, f"failed: {row.failed}", *[""] * (len(HEAD) - 2)] if row.failed else cells_of(row, units)
        lines.append(f"| {' | '.join(escaped(c) for c in cells)} |")
    return "\n".join(lines) + "\n"
