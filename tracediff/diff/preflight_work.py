"""What the matched work says of whether like is compared with like: dtypes and shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracediff.diff.findings.program import LEAST_SHAPES, OTHER_WORKLOAD, inputs, shapes_without_partner
from tracediff.diff.preflight import Reason
from tracediff.formatting import percent

if TYPE_CHECKING:
    from tracediff.diff.comparison import Comparison

OTHER_DTYPE = 0.1
"""Part of the work from which another dtype is told."""


def reasons_of_work(comparison: Comparison) -> list[Reason]:
    """The codes dtype, shapes and workload."""
    return [*_dtype(comparison), *_shapes(comparison)]


def _dtype(comparison: Comparison) -> list[Reason]:
    whole = comparison.us(max(comparison.work.control, comparison.work.test, 1))
    for finding in inputs(comparison):
        times = [e.control_us or 0.0 for e in finding.evidence]
        if finding.code == "dtype-change" and finding.evidence and sum(times) >= OTHER_DTYPE * whole:
            before, after = finding.evidence[0].name.rpartition(": ")[2].split(" → ")
            return [Reason("dtype", "the same operators work in another dtype", before, after)]
    return []


def _shapes(comparison: Comparison) -> list[Reason]:
    found = shapes_without_partner(comparison)
    if found is None or found[0] < LEAST_SHAPES or not found[1]:
        return []
    share, alone = found
    sides = [next((name for name, *times in alone if times[k]), "none") for k in (0, 1)]
    if share >= OTHER_WORKLOAD:
        message = f"{percent(share)} of the work has shapes that the other side does not have: not the same work"
        return [Reason("workload", message, sides[0], sides[1])]
    return [
        Reason(
            "shapes",
            f"{percent(share)} of the work has shapes that the other side does not have",
            sides[0],
            sides[1],
        )
    ]
