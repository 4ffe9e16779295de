"""`CollectionTable` → Markdown."""

from __future__ import annotations

from tracediff.report.collection import CollectionTable
from tracediff.report.collection_text import HEAD, cells_of, title
from tracediff.report.escape import escaped


def to_markdown(found: CollectionTable) -> str:
    """All columns as GitHub-flavoured Markdown."""
    lines = [
        f"### {escaped(title(found))}",
        "",
        f"| {' | '.join(HEAD)} |",
        f"|{'|'.join([':--'] + ['--:'] * (len(HEAD) - 1))}|",
    ]
    for row in found.rows:
        cells = [row.variant, f"failed: {row.failed}", *[""] * (len(HEAD) - 2)] if row.failed else cells_of(row)
        lines.append(f"| {' | '.join(escaped(c) for c in cells)} |")
    return "\n".join(lines) + "\n"
