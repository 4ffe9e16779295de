"""Evidence of an operation."""

from __future__ import annotations

from tracediff.diff.comparison import Comparison
from tracediff.diff.findings.finding import Evidence
from tracediff.diff.ops import Op


def evidence_of(comparison: Comparison, op: Op) -> Evidence:
    """How often an operation runs on both sides, and how long."""
    us, number = comparison.us, comparison.number
    return Evidence(op.name, number(op.control_count), number(op.test_count), us(op.control_total), us(op.test_total))
