"""All findings of a comparison, sorted by their part of the change of the step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracediff.diff.findings import memory, program, step, work, work_rate
from tracediff.diff.findings.finding import Finding

if TYPE_CHECKING:
    from tracediff.diff.comparison import Comparison


def find(comparison: Comparison) -> tuple[Finding, ...]:
    """Every finding; none where the sides were not compared."""
    if comparison.was_refused:
        return ()
    rules = (*step.RULES, *work.RULES, *program.RULES, *work_rate.RULES, *memory.RULES)
    found = [finding for rule in rules for finding in rule(comparison)]
    return tuple(sorted(found, key=lambda f: (-abs(f.weight_us), f.code, f.title)))
