"""`Analysis` → a terminal screen."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from tracediff.analysis.analysis import Analysis
from tracediff.errors import printable
from tracediff.report.analysis.tables import head, tables_of
from tracediff.report.table import Table
from tracediff.report.table_formats import to_rich

SUMMARY = ("states", "gpu", "cpu", "family")
"""Tables shown where none is asked for."""


def show(analysis: Analysis, console: Console, names: Sequence[str] = (), top: int | None = None, more: Sequence[Table] = ()) -> None:
    """Print the tables ``names``, by default a summary, and ``more``."""
    first = head(analysis)
    parts: list[RenderableType] = [Text(printable(first.title), style="bold"), Text(printable(first.facts), style="dim"), Text()]
    parts += [Padding(Text(printable(first.step), style="bold"), (0, 2)), Text()]
    parts += [to_rich(table) for table in tables_of(analysis, top if top is not None or names else 10, names or SUMMARY).values()]
    parts += [to_rich(table) for table in more]
    parts += _findings(analysis)
    if analysis.side.notes:
        parts.append(Text("Health of the traces", style="bold"))
        parts += [Padding(Text(printable(f"{n.message} ({n.code}: {n.count:,})")), (0, 2)) for n in analysis.side.notes]
    with console.capture() as screen:
        console.print(Group(*parts), highlight=False, soft_wrap=False)
    console.file.write("\n".join(line.rstrip() for line in screen.get().split("\n")))
    console.file.flush()


def _findings(analysis: Analysis) -> list[RenderableType]:
    if not analysis.findings:
        return []
    parts: list[RenderableType] = [Text("Findings", style="bold")]
    for finding in analysis.findings:
        parts.append(Padding(Text.assemble((finding.code, "bold"), "  ", printable(finding.title)), (0, 2)))
        parts.append(Padding(Text(printable(finding.detail), style="dim"), (0, 4)))
    return [*parts, Text()]
