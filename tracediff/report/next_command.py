"""The command that looks closer at a finding."""

from __future__ import annotations

import shlex

from tracediff.diff.comparison import Comparison
from tracediff.diff.findings.finding import Finding


def next_command(comparison: Comparison, command: str) -> str | None:
    """``command``, which compared the sides, with what looks closer at the first finding; None if nothing does."""
    first = next(iter(comparison.findings), None)
    asked = first and (first.kind.closer or _explain(comparison, first))
    return f"{command} {asked}" if asked else None


def _explain(comparison: Comparison, finding: Finding) -> str:
    """``--explain`` of the operator, or else the kernel, that changed most of what ``finding`` covers, as it did."""
    groups = [comparison.work.groups[i] for i in finding.covers if isinstance(i, int)]
    if not groups:
        return ""
    largest = max(groups, key=lambda g: (g.delta * finding.delta_us if finding.delta_us else abs(g.delta), g.name))
    member = (largest.control or largest.test)[0]
    return f"--explain {shlex.quote(member.op or largest.name)}"
