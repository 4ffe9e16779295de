"""Findings in a terminal."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.text import Text

from tracediff.diff.comparison import Comparison
from tracediff.diff.findings.finding import Finding
from tracediff.diff.findings.state_change import TESTED_RUNS
from tracediff.errors import printable
from tracediff.report.shorten import shortened_pairs
from tracediff.report.text import coverage_line, evidence_figures, no_findings

PER_STEP = " per step"
"""What the heading says of all findings."""
SHOWN, DETAILED, EVIDENCE = 5, 1, (2, 1)
"""Findings shown, how many of them with their detail, and lines of evidence of the first ones."""


def findings(comparison: Comparison, top: int | None, verbose: bool) -> list[RenderableType]:
    """Code and statement of each. The first also says what it means and what to do, the first two have some of their
    evidence. All that is known of every finding if ``verbose``.
    """
    shown = comparison.findings[: top if top is not None else None if verbose else SHOWN]
    if not comparison.findings:
        return [Text(no_findings(comparison), style="bold"), Text()]
    parts: list[RenderableType] = [Text(_heading(comparison, len(shown)), style="bold")]
    for place, finding in enumerate(shown):
        parts.append(_statement(finding))
        parts += _all_of(finding) if verbose else _brief(finding, place)
    together = coverage_line(comparison)
    parts += [Padding(Text(together, style="dim"), (0, 2))] if together else []
    return [*parts, Text()]


def _heading(comparison: Comparison, shown: int) -> str:
    """``Findings per step (untested: fewer than 3 runs per side; 5 of 12, -v for all)``."""
    is_untested = any(f.runs for f in comparison.findings)
    remarks = [f"untested: fewer than {TESTED_RUNS} runs per side"] if is_untested else []
    remarks += [f"{shown} of {len(comparison.findings)}, -v for all"] if shown < len(comparison.findings) else []
    return f"Findings per step ({'; '.join(remarks)})" if remarks else "Findings per step"


def _statement(finding: Finding, before: str = "", indent: int = 2) -> RenderableType:
    text = Text.assemble(before, (finding.code, "bold"), "  ", printable(finding.statement.replace(PER_STEP, "")))
    return Padding(text, (0, indent))


def _brief(finding: Finding, place: int) -> list[RenderableType]:
    """What the first findings mean, and a line of their evidence."""
    detail = [finding.detail] if place < DETAILED else []
    lines: list[RenderableType] = [Padding(Text(printable(text), style="dim"), (0, 4)) for text in detail]
    return [*lines, *_evidence(finding, EVIDENCE[place] if place < len(EVIDENCE) else 0)]


def _all_of(finding: Finding) -> list[RenderableType]:
    parts = [_statement(part, before="of this: ", indent=4) for part in finding.parts]
    return [Padding(Text(printable(finding.detail), style="dim"), (0, 4)), *_evidence(finding, None), *parts]


def _evidence(finding: Finding, most: int | None) -> list[RenderableType]:
    return [Padding(EvidenceLine(evidence_figures(e), e.label), (0, 4)) for e in finding.evidence[:most]]


@dataclass(frozen=True)
class EvidenceLine:
    """One line of evidence in the width there is; of ``old → new`` both names are cut."""

    figures: str
    name: str

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        """The line, for rich."""
        figures = f"{self.figures}  " if self.figures else ""
        (name,) = shortened_pairs([printable(self.name)], max(options.max_width - len(figures), 1))
        yield Text(figures + name, style="dim", no_wrap=True)
