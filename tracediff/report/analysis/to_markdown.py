"""`Analysis` → Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from tracediff.analysis.analysis import Analysis
from tracediff.present.plain_table import Table
from tracediff.report.analysis.tables import head, health_lines, tables_of
from tracediff.report.escape import escaped
from tracediff.report.table_markdown import to_markdown as table_lines


def to_markdown(
    analysis: Analysis, names: Sequence[str] = (), top: int | None = None, more: Sequence[Table] = ()
) -> str:
    """The tables ``names``, by default all, and ``more`` as GitHub-flavoured Markdown."""
    first = head(analysis)
    lines = [f"## {escaped(first.title)}", "", f"**{escaped(first.step)}**", "", escaped(first.facts), ""]
    lines += [escaped(first.caution), ""] if first.caution else []
    for table in (*tables_of(analysis, top, names).values(), *more):
        lines += table_lines(table)
    if analysis.findings:
        lines += [
            "### Findings",
            "",
            *(f"- **{f.code}**: {escaped(f.title)}. {escaped(f.detail)}" for f in analysis.findings),
            "",
        ]
    notes = health_lines(analysis)
    if notes:
        lines += ["### Health of the traces", "", *(f"- {escaped(note)}" for note in notes), ""]
    return "\n".join(lines).rstrip() + "\n"
