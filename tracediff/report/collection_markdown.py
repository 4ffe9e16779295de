"""`CollectionTable` → Markdown."""

from __future__ import annotations

from tracediff.report.collection import CollectionTable
from tracediff.report.collection_text import HEAD, cells_of, formats_of, heads, title
from tracediff.report.escape import escaped


def to_markdown(collection: CollectionTable) -> str:
    """All columns as GitHub-flavoured Markdown."""
    formats = formats_of(collection.rows)
    lines = [
        f"### {escaped(title(collection))}",
        "",
        f"| {' | '.join(heads(formats))} |",
        f"|{'|'.join([':--'] + ['--:'] * (len(HEAD) - 1))}|",
    ]
    for row in collection.rows:
        cells = (
            [row.variant, f"failed: {row.failed}", *[""] * (len(HEAD) - 2)] if row.failed else cells_of(row, formats)
        )
        lines.append(f"| {' | '.join(escaped(c) for c in cells)} |")
    return "\n".join(lines) + "\n"
