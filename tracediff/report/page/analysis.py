"""`Analysis` → one HTML file that works from disk, without a network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tracediff.charts import OF_SET
from tracediff.report.analysis.tables import head, health_lines, tables_of
from tracediff.report.page import html_sections
from tracediff.report.page.figures import page_charts
from tracediff.report.page.flame import analysis_flame
from tracediff.report.page.html import page, versions

if TYPE_CHECKING:
    from tracediff.analysis.analysis import Analysis
    from tracediff.present.plain_table import Table

ROWS = 30
"""Of each table."""


def to_html(analysis: Analysis, command: str | None = None, more: Sequence[Table] = ()) -> str:
    """The analysis as one page.

    Args:
        command: the command line that creates it, shown at its end.
        more: further tables, such as HTA's.
    """
    tables = tables_of(analysis, ROWS)
    return page(
        "analysis.html.jinja",
        f"{analysis.side.label} · tracediff",
        page_charts(analysis, OF_SET),
        {},
        flame=analysis_flame(analysis),
        head=head(analysis),
        states=tables.pop("states"),
        tables=[(f"table-{key}", table) for key, table in (*tables.items(), *enumerate(more))],
        findings=analysis.findings,
        health_lines=health_lines(analysis),
        command=command,
        origin=[*versions(), *html_sections.set_facts(analysis.side)],
    )
