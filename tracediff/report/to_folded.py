"""`Comparison` → folded stacks: ``phase;module;op;kernel control test`` in ns per step, one line per stack: the
format of differential flame graphs.
"""

from __future__ import annotations

from tracediff.diff.comparison import Comparison
from tracediff.diff.tree import folded
from tracediff.errors import printable


def to_folded(comparison: Comparison) -> str:
    """One line per stack with the work of both sides in whole ns per step."""
    scale = comparison.scale
    stacks = folded(comparison.trees, scale)
    return "".join(
        f"{printable(stack).replace(' ', '_')} {round(control / scale)} {round(test / scale)}\n"
        for stack, control, test in stacks
    )
