"""Findings in a terminal."""

from __future__ import annotations

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from tracediff.diff.comparison import Comparison
from tracediff.diff.findings.finding import Finding
from tracediff.errors import printable
from tracediff.report.text import evidence_line

SHOWN, DETAILED, WITH_EVIDENCE = 5, 1, 2
"""Findings shown, and how many of them with their detail, and with evidence."""


def findings(comparison: Comparison, top: int | None, verbose: bool) -> list[RenderableType]:
    """Code and statement of each. The first also says what it means and what to do, the first two have the largest line
    of their evidence. All that is known of every finding if ``verbose``.
    """
    shown = comparison.findings[: top if top is not None else None if verbose else SHOWN]
    if not comparison.findings:
        return []
    runs = next((f.runs for f in comparison.findings if f.runs), "")
    heading = f"Findings ({runs}{' per side' if runs == 'one run' else ''}: not tested)" if runs else "Findings"
    parts: list[RenderableType] = [Text(heading, style="bold")]
    for place, finding in enumerate(shown):
        parts.append(_statement(finding))
        parts += _all_of(finding) if verbose else _brief(finding, place)
    if left := len(comparison.findings) - len(shown):
        parts.append(Padding(Text(f"{left:,} more (-v)", style="dim"), (0, 2)))
    return [*parts, Text()]


def _statement(finding: Finding, before: str = "", indent: int = 2) -> RenderableType:
    text = Text.assemble(before, (finding.code, "bold"), "  ", printable(finding.statement))
    return Padding(text, (0, indent))


def _brief(finding: Finding, place: int) -> list[RenderableType]:
    """What the first findings mean, and a line of their evidence."""
    detail = [finding.detail] if place < DETAILED else []
    lines: list[RenderableType] = [Padding(Text(printable(text), style="dim"), (0, 4)) for text in detail]
    return [*lines, *_evidence(finding, 1 if place < WITH_EVIDENCE else 0)]


def _all_of(finding: Finding) -> list[RenderableType]:
    parts = [_statement(part, before="of this: ", indent=4) for part in finding.parts]
    return [Padding(Text(printable(finding.detail), style="dim"), (0, 4)), *_evidence(finding, None), *parts]


def _evidence(finding: Finding, most: int | None) -> list[RenderableType]:
    return [
        Padding(Text(printable(evidence_line(e)), style="dim", no_wrap=True, overflow="ellipsis"), (0, 4))
        for e in finding.evidence[:most]
    ]
