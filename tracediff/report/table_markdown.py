"""Tables in Markdown."""

from __future__ import annotations

from tracediff.present.plain_table import LONGEST, Table, no_rows_shown
from tracediff.report.escape import escaped


def to_markdown(table: Table) -> list[str]:
    """Lines of a Markdown section."""
    heading = [f"### {escaped(table.title)}", ""]
    if not table.rows:
        return [*heading, f"{no_rows_shown(table.more, '')}.", ""] if table.more else []
    lines = [*heading, *([escaped(table.about), ""] if table.about else [])]
    lines += [
        f"| {' | '.join(table.heads)} |",
        f"|{'|'.join([':--'] * table.texts + ['--:'] * (len(table.heads) - table.texts))}|",
    ]
    lines += [f"| {' | '.join(escaped(cell[:LONGEST]) for cell in row)} |" for row in table.rows]
    return [*lines, "", *([f"{table.more:,} more rows are not shown.", ""] if table.more else [])]
