"""Tables in Markdown."""

from __future__ import annotations

from tracediff.report.escape import escaped
from tracediff.report.table import LONGEST, Table


def to_markdown(table: Table) -> list[str]:
    """Lines of a Markdown section."""
    if not table.rows:
        return []
    lines = [f"### {escaped(table.title)}", "", *([escaped(table.about), ""] if table.about else [])]
    lines += [
        f"| {' | '.join(table.heads)} |",
        f"|{'|'.join([':--'] * table.texts + ['--:'] * (len(table.heads) - table.texts))}|",
    ]
    lines += [f"| {' | '.join(escaped(cell[:LONGEST]) for cell in row)} |" for row in table.rows]
    return [*lines, "", *([f"{table.more:,} more rows are not shown.", ""] if table.more else [])]
