"""`Analysis` → one HTML file that works from disk, without a network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tracediff.report.analysis.tables import head, health_lines, tables_of
from tracediff.report.page import html_sections
from tracediff.report.page.figures import chart
from tracediff.report.page.html import Drawn, figure_of, page_of, versions
from tracediff.report.table_html import to_html as table_html

if TYPE_CHECKING:
    from tracediff.analysis.analysis import Analysis
    from tracediff.diff.findings.finding import Finding
    from tracediff.report.table import Table

ROWS = 30
"""Of each table."""


def to_html(analysis: Analysis, command: str | None = None, more: Sequence[Table] = ()) -> str:
    """The analysis as one page.

    Args:
        command: the command line that makes it, to be told at its end.
        more: further tables, such as HTA's.
    """
    first = head(analysis)
    drawn = Drawn()

    def figures(*names: str) -> str:
        return "".join(figure_of(name, chart(analysis, name), drawn) for name in names)

    tables = tables_of(analysis, ROWS)
    answer = (
        f"<h1>{html_sections.name(first.title)}</h1><p class='verdict'>{html_sections.text(first.step)}</p><p "
        f"class='facts'>{html_sections.text(first.facts, 2000)}</p>"
    )
    found = "".join(_finding(f) for f in analysis.findings)
    notes = health_lines(analysis)
    sections = [
        ("answer", "", answer),
        (
            "step",
            "Where the step goes",
            figures("step_parts") + table_html(tables.pop("states"), "states", titled=False),
        ),
        ("findings", "What stands out", found or "<p>No rule found anything that stands out.</p>"),
        ("work", "Work", figures("work_parts")),
        ("timeline", "Timeline", figures("timeline", "memory")),
        ("distributions", "Steps and runs", figures("distributions", "ranks")),
        (
            "tables",
            "Tables",
            "".join(table_html(table, f"table-{key}") for key, table in [*tables.items(), *enumerate(more)]),
        ),
        (
            "health",
            "Health of the traces",
            html_sections.items(notes) if notes else "<p>Every event was read; nothing was repaired or left out.</p>",
        ),
        (
            "made",
            "How this was made",
            html_sections.made_of(command, [*versions(), *html_sections.of_set(analysis.side)]),
        ),
    ]
    return page_of(f"{analysis.side.label} · tracediff", sections, LINKS, {"charts": drawn.charts})


def _finding(finding: Finding) -> str:
    told = (
        f"<h3>{html_sections.name(finding.title)}</h3><p>{html_sections.text(finding.detail, 4000)}</p><p "
        f"class='see'><code>{html_sections.text(finding.code)}</code></p>"
    )
    return f"<article class='finding'>{told}</article>"


LINKS = {
    "step": "Step",
    "findings": "Findings",
    "work": "Work",
    "timeline": "Timeline",
    "distributions": "Runs",
    "tables": "Tables",
    "health": "Health",
    "made": "Origin",
}
"""Section → what the way to it is called."""
