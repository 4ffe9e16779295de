"""The preflight's cautions about the matched work: different dtypes and shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracediff.diff.findings.program import LEAST_SHAPES, OTHER_WORKLOAD, changed_inputs, unmatched_shapes
from tracediff.diff.preflight import Reason
from tracediff.formatting import percent

if TYPE_CHECKING:
    from tracediff.diff.comparison import Comparison

OTHER_DTYPE = 0.1
"""Part of the work from which another dtype is a caution."""


def reasons_of_work(comparison: Comparison) -> list[Reason]:
    """The cautions dtype, shapes and workload."""
    return [*_dtype(comparison), *_shapes(comparison)]


def _dtype(comparison: Comparison) -> list[Reason]:
    whole = comparison.us(max(comparison.work.control, comparison.work.test, 1))
    for finding in changed_inputs(comparison):
        times = [e.control_us or 0.0 for e in finding.evidence]
        if finding.code == "dtype-change" and finding.evidence and sum(times) >= OTHER_DTYPE * whole:
            before, after = finding.evidence[0].name.rpartition(": ")[2].split(" → ")
            return [Reason("dtype", "the same operators have inputs of another dtype", before, after)]
    return []


def _shapes(comparison: Comparison) -> list[Reason]:
    found = unmatched_shapes(comparison)
    if found is None or found[0] < LEAST_SHAPES or not found[1]:
        return []
    share, unmatched = found
    control, test = (next((name for name, *times in unmatched if times[k]), "none") for k in (0, 1))
    message = f"{percent(share)} of the work has shapes that do not occur on the other side"
    if share >= OTHER_WORKLOAD:
        return [Reason("workload", f"{message}: the workloads differ", control, test)]
    return [Reason("shapes", message, control, test)]
