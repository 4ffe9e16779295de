"""`Comparison` → GitHub-flavoured Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from tracediff.diff.comparison import Comparison
from tracediff.present import sections
from tracediff.present.answer import answer_of
from tracediff.present.explanation_lines import explanation_table
from tracediff.present.tables import comparison_tables
from tracediff.report.escape import escaped
from tracediff.report.step_markdown import step_lines
from tracediff.report.table_markdown import rows_table, table_lines
from tracediff.report.table_markdown import to_markdown as section_lines

IMAGES = ("step_waterfall", "duration_diff", "timeline")
"""Charts below the tables if images are requested."""


def to_markdown(
    comparison: Comparison,
    *,
    device: str | None = None,
    sort: str = "change",
    top: int = 10,
    images: Mapping[str, tuple[str, str]] | None = None,
) -> str:
    """The answer as GitHub-flavoured Markdown with tables.

    Args:
        device, sort, top: as for the terminal: with a device or another order kernels, else the work by operator.
        images: chart → (address, title) of images to show.
    """
    answer = answer_of(comparison)
    title = escaped(f"{comparison.control.label} → {comparison.test.label}")
    verdict = escaped(answer.verdict)
    lines = [f"## {title}", "", verdict if comparison.verdict.other_work else f"**{verdict}**", ""]
    lines += [text for sentence in (*answer.below, answer.setting) for text in (escaped(sentence), "")]
    lines += _remarks(sections.doubt(comparison), sections.caution_lines(comparison))
    if not comparison.was_refused:
        lines += _explanation(comparison)
        lines += ["### Where the step went", "", *step_lines(comparison), ""]
        if device is None and sort == "change":
            lines += _changed_work(sections.changed_work(comparison, top))
        else:
            changes = sections.changes(comparison, device, sort, top)
            lines += [line for table in changes if table.rows for line in _changes(table)]
        if sections.shows_causes(comparison):
            lines += _view(comparison, "cause")
        lines += [line for table in comparison_tables(comparison, top) for line in section_lines(table)]
        for address, title in (images or {}).values():
            lines += [f"![{escaped(title)}]({quote(address)})", ""]
    lines += _remarks("Health of the traces", sections.health_lines(comparison))
    return "\n".join(lines).rstrip() + "\n"


def _changed_work(work: sections.Sums) -> list[str]:
    return [f"### {work.title}", "", *rows_table("name", [*work.rows, work.whole], work.unit), ""]


def _changes(table: sections.Changes) -> list[str]:
    lines = [f"### {table.title}", "", *rows_table("name", table.rows), ""]
    return [*lines, f"{table.more:,} more rows are not shown.", ""] if table.more else lines


def _view(comparison: Comparison, view: str) -> list[str]:
    rows, _ = sections.view_rows(comparison, view, len(comparison.work.groups))
    return [f"### {sections.work_title(comparison, view)}", "", *rows_table("work", rows), ""]


def _explanation(comparison: Comparison) -> list[str]:
    """A table that adds up to the step's change."""
    if comparison.explanation is None:
        return []
    found = explanation_table(comparison.explanation)
    lines = [
        [escaped(line.label), line.times, line.step, escaped(line.because)] for line in (*found.lines, found.total)
    ]
    _, *table = table_lines([""] * 4, "lrrl", lines)
    return ["### Why", "", f"| {' | '.join(found.heads)} ({found.unit}) | |", *table, ""]


def _remarks(title: str, remarks: list[str]) -> list[str]:
    return [f"### {title}", "", *(f"- {escaped(r)}" for r in remarks), ""] if remarks else []
