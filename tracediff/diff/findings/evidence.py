"""Evidence, and the numbers in findings."""

from __future__ import annotations

from tracediff.diff.comparison import Comparison
from tracediff.diff.findings.finding import Evidence
from tracediff.diff.ops import Op


def evidence_of(comparison: Comparison, op: Op) -> Evidence:
    """Evidence of an operation: its count and total time on both sides."""
    us, number = comparison.us, comparison.number
    return Evidence(op.name, number(op.control_count), number(op.test_count), us(op.control_total), us(op.test_total))


def collapsed(numbers: str) -> str:
    """``22.9 → 22.9 ms`` as ``22.9 ms``; numbers that differ stay as they are."""
    before, _, rest = numbers.partition(" → ")
    after, _, _ = rest.partition(" ")
    return rest if before == after else numbers
