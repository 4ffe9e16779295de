"""All findings of a comparison: first those in the direction of the step's change, then those that offset it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracediff.diff.findings import critical, memory, program, step, work, work_rate
from tracediff.diff.findings.finding import Finding

if TYPE_CHECKING:
    from tracediff.diff.comparison import Comparison


def find(comparison: Comparison) -> tuple[Finding, ...]:
    """Every finding, those that can account for most of the change first; none if the comparison was refused."""
    if comparison.was_refused:
        return ()
    rules = (*step.RULES, *work.RULES, *program.RULES, *work_rate.RULES, *memory.RULES, *critical.RULES)
    found = [finding for rule in rules for finding in rule(comparison)]
    change = comparison.us(comparison.step_time.delta)
    return tuple(sorted(found, key=lambda f: (f.delta_us * change < 0, -abs(f.weight_us), f.code, f.title)))
