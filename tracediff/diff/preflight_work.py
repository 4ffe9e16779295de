"""The preflight's cautions about the matched work: different dtypes and shapes, and missing work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracediff.diff.findings import kinds
from tracediff.diff.findings.program import changed_inputs
from tracediff.diff.findings.same_work import missing, repeated, workload
from tracediff.diff.preflight import Reason

if TYPE_CHECKING:
    from tracediff.diff.comparison import Comparison

OTHER_DTYPE = 0.1
"""Part of the work from which another dtype is a caution."""


def reasons_of_work(comparison: Comparison) -> list[Reason]:
    """The cautions dtype, shapes, workload and missing-work."""
    return [*_dtype(comparison), *_different_work(comparison)]


def _dtype(comparison: Comparison) -> list[Reason]:
    whole = comparison.us(max(comparison.work.control, comparison.work.test, 1))
    for finding in changed_inputs(comparison):
        times = [e.control_us or 0.0 for e in finding.evidence]
        if finding.code == "dtype-change" and finding.evidence and sum(times) >= OTHER_DTYPE * whole:
            before, after = finding.evidence[0].name.rpartition(": ")[2].split(" → ")
            return [Reason("dtype", "the same operators have inputs of another dtype", before, after)]
    return []


def _different_work(comparison: Comparison) -> list[Reason]:
    reasons = []
    for finding in (*repeated(comparison), *missing(comparison), *workload(comparison)):
        names = [[e.name for e in finding.evidence if (e.control_us, e.test_us)[side]] for side in (0, 1)]
        control, test = (next(iter(side), "none") for side in names)
        if finding.kind is kinds.WORKLOAD_CHANGED:
            reasons.append(Reason("workload", finding.title, control, test))
        elif finding.kind is kinds.MISSING_WORK:
            reasons.append(Reason("missing-work", finding.title, control, test))
        else:
            reasons.append(Reason("shapes", finding.title, control, test))
    return reasons
