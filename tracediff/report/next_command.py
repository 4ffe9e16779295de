"""The command that looks closer at a finding."""

from __future__ import annotations

import shlex

from tracediff.diff.comparison import Comparison
from tracediff.diff.findings.finding import Finding


def next_commands(comparison: Comparison, command: str) -> list[str]:
    """``command``, which compared the sides, with what looks closer at the first finding; at most two."""
    first = next(iter(comparison.findings), None)
    if first is None:
        return []
    asked = first.kind.closer or _explain(comparison, first)
    return [f"{command} {asked}"] if asked else []


def _explain(comparison: Comparison, finding: Finding) -> str:
    """``--explain`` of the operator, or else the kernel, that changed most of what ``finding`` covers."""
    groups = [comparison.work.groups[i] for i in finding.covers if isinstance(i, int)]
    if not groups:
        return ""
    largest = max(groups, key=lambda g: (abs(g.delta), g.name))
    member = (largest.control or largest.test)[0]
    return f"--explain {shlex.quote(member.op or largest.name)}"
