"""Findings on whether both sides do the same work: its shapes, and how often it is done."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING

from tracediff.aggregate.call_tree import CallTree
from tracediff.diff.findings import kinds
from tracediff.diff.findings.evidence import evidence_of
from tracediff.diff.findings.finding import Evidence, Finding
from tracediff.diff.matching.batch_ratio import batch_ratio, shape_key
from tracediff.diff.ops import GPU_WORK, Op
from tracediff.formatting import counts, percent

if TYPE_CHECKING:
    from tracediff.diff.comparison import Comparison

REGION = re.compile(r"^Torch-Compiled Region: (\d+)/(\d+)")
OTHER_WORKLOAD = 0.1
"""Fraction of the work whose shapes do not occur on the other side from which the workloads differ."""
OTHER_BATCH = 0.5
"""Fraction of the work with recorded shapes whose shapes differ, from which one ratio between them is another batch."""
LEAST_SHAPES = 0.01
"""The same fraction below which it is not reported."""
AS_MUCH = 0.02
"""Relative difference of the numbers of elements up to which an operator computes as much on both sides."""
REPEATED = 0.6
"""Part of the work that is done the same whole number of times as often from which it is repeated work."""


def repeated(comparison: Comparison) -> list[Finding]:
    """workload-changed: nearly all work is done a whole number of times as often."""
    on_gpu = bool(comparison.gpu_time.groups)
    ops = [op for op in comparison.ops if (op.category in GPU_WORK if on_gpu else op.category == "cpu_op")]
    by_ratio: dict[Fraction, list[Op]] = defaultdict(list)
    for op in ops:
        if op.control_count and op.test_count:
            by_ratio[Fraction(op.test_count, op.control_count)].append(op)
    ratio = max(by_ratio, key=lambda r: _time(by_ratio[r]), default=Fraction(1))
    if ratio == 1 or 1 not in (ratio.numerator, ratio.denominator):
        return []
    same = sorted(by_ratio[ratio], key=lambda op: (-(op.control_self + op.test_self), op.name))
    share = _time(same) / max(_time(ops), 1)
    if share < REPEATED:
        return []
    control, test = (
        comparison.number(sum(counted))
        for counted in zip(*((o.control_count, o.test_count) for o in same), strict=True)
    )
    times, more = (ratio.numerator, "test") if ratio > 1 else (ratio.denominator, "control")
    return [
        Finding(
            kinds.WORKLOAD_CHANGED,
            f"the same work is done {times} times as often on the {more} side: {counts(control, test)} "
            f"{'GPU events' if on_gpu else 'operators'} per step",
            f"This holds for {percent(share)} of the work. Compare the same number of steps or iterations: times per "
            "step are not comparable.",
            evidence=tuple(evidence_of(comparison, op) for op in same[:5]),
        )
    ]


def _time(ops: Iterable[Op]) -> int:
    return sum(op.control_self + op.test_self for op in ops)


def workload(comparison: Comparison) -> list[Finding]:
    """workload-changed and shape-change: operators with shapes that do not occur on the other side."""
    found = unmatched_shapes(comparison)
    if found is None or not found[1]:
        return []
    share, examples = found
    us = comparison.us
    evidence = tuple(Evidence(name, None, None, us(c), us(t)) for name, c, t in examples[:5])
    ratio = batch_ratio(*comparison.trees)
    shaped = _shaped(comparison)
    if ratio is not None and share >= OTHER_BATCH * shaped:
        times = str(ratio.numerator) if ratio.denominator == 1 else f"{ratio.numerator}/{ratio.denominator}"
        title = f"another batch size: the first dimension of the inputs is {times} times as large"
        detail = (
            f"Of the work whose shapes are recorded ({percent(shaped)} of all), {percent(share / shaped)} has shapes "
            "that the other side does not have. Compare equal workloads, or times per sample."
        )
        return [Finding(kinds.WORKLOAD_CHANGED, title, detail, evidence=evidence)]
    title = f"{percent(share)} of the work has shapes that do not occur on the other side"
    if share >= OTHER_WORKLOAD:
        detail = "Compare equal workloads before you rely on the times."
        return [Finding(kinds.WORKLOAD_CHANGED, f"{title}: the workloads differ", detail, evidence=evidence)]
    if share < LEAST_SHAPES:
        return []
    detail = "The same operators have inputs of other sizes: check the inputs."
    return [Finding(kinds.SHAPE_CHANGE, title, detail, evidence=evidence)]


def _shaped(comparison: Comparison) -> float:
    """The fraction of all work whose shapes are recorded."""
    shaped = sum(sum(_time_by_shapes(tree, comparison.scale // tree.denominator).values()) for tree in comparison.trees)
    return shaped / max(_whole(comparison), 1)


def _whole(comparison: Comparison) -> int:
    return sum(comparison.scale // tree.denominator * w.ns for tree in comparison.trees for w in tree.work)


def unmatched_shapes(comparison: Comparison) -> tuple[float, list[tuple[str, int, int]]] | None:
    """(fraction, calls) of the work with shapes that do not occur on the other side although its operator does; calls
    are (operator with shapes, control, test), the longest first. None if shapes cannot be compared.
    """
    compiled = [op for op in comparison.ops if REGION.match(op.raw_name) or op.raw_name.startswith("CompiledFunction")]
    if any(op.control_count for op in compiled) != any(
        op.test_count for op in compiled
    ):  # compiled code calls operators with other shapes
        return None
    sides = [_time_by_shapes(tree, comparison.scale // tree.denominator) for tree in comparison.trees]
    if not all(sides):
        return None
    shared = {label for label, _ in sides[0]} & {label for label, _ in sides[1]}
    total = _whole(comparison)
    shared -= _as_much(comparison)
    unmatched = [
        (f"{label}({', '.join(key)})", sides[0].get((label, key), 0), sides[1].get((label, key), 0))
        for label, key in dict.fromkeys((*sides[0], *sides[1]))
        if label in shared and ((label, key) in sides[0]) != ((label, key) in sides[1])
    ]
    unmatched.sort(key=lambda entry: (-max(entry[1:]), entry[0]))
    return sum(c + t for _, c, t in unmatched) / max(total, 1), unmatched


def _as_much(comparison: Comparison) -> set[str]:
    """Operators that compute as many elements on both sides, whatever their shapes: batched, or in smaller parts."""
    sides: list[dict[str, float]] = [defaultdict(float), defaultdict(float)]
    for elements, tree in zip(sides, comparison.trees, strict=True):
        for call in tree.calls:
            if call.kind == "op" and (key := shape_key(call.label, call.shapes)):
                size = json.loads(key[0])
                flat = isinstance(size, list) and all(isinstance(n, int) for n in size)
                elements[call.label] += call.count / tree.denominator * (math.prod(size) if flat else 1)
    return {
        label
        for label in sides[0].keys() & sides[1].keys()
        if abs(sides[1][label] - sides[0][label]) <= AS_MUCH * max(sides[0][label], sides[1][label])
    }


def _time_by_shapes(tree: CallTree, factor: int) -> dict[tuple[str, tuple[str, ...]], int]:
    """(operator, shapes) → time of its work."""
    sums: dict[tuple[str, tuple[str, ...]], int] = defaultdict(int)
    for work in tree.work:
        call = tree.calls[work.node] if work.node >= 0 else None
        if call is not None and call.kind == "op" and (key := shape_key(call.label, call.shapes)):
            sums[call.label, key] += factor * work.ns
    return sums


RULES = (repeated, workload)
