"""`Analysis` → a terminal screen."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from tracediff.aggregate.tables import MISSING
from tracediff.analysis.analysis import Analysis
from tracediff.errors import printable
from tracediff.present.plain_table import Table
from tracediff.report.analysis.tables import head, health_lines, tables_of
from tracediff.report.table_terminal import print_screen, to_rich

SUMMARY = ("states", "gpu", "cpu", "family")
"""Tables shown where none is asked for."""


def show(
    analysis: Analysis, console: Console, names: Sequence[str] = (), top: int | None = None, more: Sequence[Table] = ()
) -> None:
    """Print ``more`` and the tables ``names`` with notes on those that are missing; by default findings, a summary and
    health notes.
    """
    first = head(analysis)
    parts: list[RenderableType] = [
        Text(printable(first.title), style="bold"),
        Text(printable(first.facts), style="dim"),
        Text(),
    ]
    parts.append(Padding(Text(printable(first.step), style="bold"), (0, 2)))
    if first.caution:
        parts.append(Padding(Text(printable(first.caution)), (0, 2)))
    parts.append(Text())
    parts += [] if names else _findings(analysis)
    parts += [
        to_rich(table)
        for table in tables_of(analysis, top if top is not None or names else 10, names or SUMMARY).values()
    ]
    parts += [to_rich(table) for table in more]
    notes = health_lines(analysis, [MISSING] if names else None)
    if notes:
        parts += [
            Text("Health of the traces", style="bold"),
            *(Padding(Text(printable(note)), (0, 2)) for note in notes),
        ]
    print_screen(console, Group(*parts))


def _findings(analysis: Analysis) -> list[RenderableType]:
    if not analysis.findings:
        return []
    parts: list[RenderableType] = [Text("Findings", style="bold")]
    for finding in analysis.findings:
        parts.append(Padding(Text.assemble((finding.code, "bold"), "  ", printable(finding.title)), (0, 2)))
        parts.append(Padding(Text(printable(finding.detail), style="dim"), (0, 4)))
    return [*parts, Text()]
