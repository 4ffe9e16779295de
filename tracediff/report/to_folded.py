"""`Comparison` → folded stacks: ``phase;module;op;kernel control test`` in ns per step, a line a stack, as flame-graph
tools read differences.
"""

from __future__ import annotations

from tracediff.diff.comparison import Comparison
from tracediff.diff.tree import folded
from tracediff.errors import printable


def to_folded(comparison: Comparison) -> str:
    """One line a stack with the work of both sides in whole ns per step."""
    scale = comparison.scale
    stacks = folded(comparison.trees, scale)
    return "".join(
        f"{printable(stack).replace(' ', '_')} {round(control / scale)} {round(test / scale)}\n"
        for stack, control, test in stacks
    )
