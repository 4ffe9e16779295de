"""The preflight's cautions about the matched work: other dtypes, shapes, ranks, missing work, work in no step."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tracediff.diff.findings import kinds
from tracediff.diff.findings.program import changed_inputs
from tracediff.diff.findings.same_work import missing, repeated, workload
from tracediff.diff.preflight import Reason
from tracediff.formatting import percent
from tracediff.profile.kernels.match_names import is_compiled_call

if TYPE_CHECKING:
    from tracediff.aggregate.side import Side
    from tracediff.diff.comparison import Comparison

ATEN = "aten::"
FEW_OPERATORS = 10
"""Operators below which sets of them tell nothing."""
IN_COMMON, IN_SMALLER = 0.7, 0.85
"""Part of all operators, and beside compiled code of the smaller set, that both sides call in variants of a program. In
the traces used in development: 0.86 or more, and 0.96 or more; different programs 0.55 or less, and 0.75 or less.
"""
MOSTLY_OUTSIDE = 0.5
"""Part of the GPU time that is launched outside every step from which it is a caution."""
USUALLY, AS_LONG = 0.8, 0.005
"""Part of the steps in which one rank is the slowest; relative difference up to which ranks take as long."""
OTHER_DTYPE = 0.1
"""Part of the work from which another dtype is a caution."""


def reasons_of_work(comparison: Comparison) -> list[Reason]:
    """The cautions operators, dtype, shapes, workload, missing-work, outside-steps and slowest-rank."""
    return [
        *_operators(comparison),
        *_dtype(comparison),
        *_different_work(comparison),
        *_outside(comparison),
        *_slowest_rank(comparison),
    ]


def _outside(comparison: Comparison) -> list[Reason]:
    """That steps, as a marker may choose them, do not contain most of the launches."""
    gpu = comparison.gpu_time
    shares = []
    for side, in_steps, outside in (
        (comparison.control, gpu.control, gpu.outside.control_ns),
        (comparison.test, gpu.test, gpu.outside.test_ns),
    ):
        steps = len(side.steps_recorded) * side.runs * max(len(side.ranks), 1)
        shares.append(outside / whole if (whole := outside + comparison.us(in_steps) * 1000 * steps) else 0.0)
    if max(shares) < MOSTLY_OUTSIDE:
        return []
    message = "most GPU time is launched outside every step, and in no number: name whole steps with --step-marker"
    return [Reason("outside-steps", message, *(f"{percent(share)} outside" for share in shares))]


def _slowest_rank(comparison: Comparison) -> list[Reason]:
    """That the step is accounted for on another rank of each side, although on one of them both ranks take as long."""
    sides = comparison.control, comparison.test
    ranks = [_usually_slowest(side) for side in sides]
    if None in ranks or ranks[0] == ranks[1]:
        return []
    means = [[sum(side.rank_states.get(rank, {}).values()) for rank in ranks if rank is not None] for side in sides]
    if not any(min(both) >= (1 - AS_LONG) * max(both) for both in means):
        return []
    message = (
        "states and findings of the step are of the slowest rank, which is another one on each side although both take"
        " as long: compare one with --rank"
    )
    return [Reason("slowest-rank", message, *map(str, ranks))]


def _usually_slowest(side: Side) -> int | None:
    """The rank that is the slowest in nearly all steps, if there is one."""
    slowest = Counter(step.rank for steps in side.steps.values() for step in steps)
    rank, steps = max(slowest.items(), key=lambda item: (item[1], -item[0]), default=(None, 0))
    return rank if steps >= USUALLY * slowest.total() else None


def _operators(comparison: Comparison) -> list[Reason]:
    """That the sides call other operators, as different programs do. Compiled code calls few of the operators that it
    replaces: beside it, what counts is how many of the smaller set the other side has.
    """
    aten = [op for op in comparison.ops if op.raw_name.startswith(ATEN)]
    sides = {op.name for op in aten if op.control_count}, {op.name for op in aten if op.test_count}
    either, both = len(sides[0] | sides[1]), len(sides[0] & sides[1])
    compiled = any(is_compiled_call(op.raw_name) for op in comparison.ops)
    base, least = (min(map(len, sides)), IN_SMALLER) if compiled else (either, IN_COMMON)
    if either < FEW_OPERATORS or both >= least * base:
        return []
    message = f"another program, or rewritten code: {both} of {either} operators are on both sides"
    return [Reason("operators", message, *(f"{len(side)} operators" for side in sides))]


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
