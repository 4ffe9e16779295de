"""Findings on whether both sides do the same work: its shapes, how often it is done, and whether some is missing.

Work that only the test side does is no such finding: it makes the step slower, and is judged as that.
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from tracediff.aggregate.call_tree import CallTree
from tracediff.diff.findings import kinds
from tracediff.diff.findings.evidence import evidence_of
from tracediff.diff.findings.finding import Evidence, Finding
from tracediff.diff.findings.matched_work import counted, of_group
from tracediff.diff.groups import Group
from tracediff.diff.matching.batch_ratio import Shapes, shape_key, size_ratio
from tracediff.diff.matching.match import PLACED_AS
from tracediff.diff.ops import GPU_WORK, Op
from tracediff.formatting import counts, percent, plural, time_unit
from tracediff.profile.kernels.families import OTHER

if TYPE_CHECKING:
    from tracediff.diff.comparison import Comparison

DIFFERENT_WORK = (kinds.WORKLOAD_CHANGED, kinds.MISSING_WORK)
"""Kinds that say that the sides do different work, so that their times do not compare."""
REGION = re.compile(r"^Torch-Compiled Region: (\d{1,18})/(\d{1,18})(?!\d)")
OTHER_WORKLOAD = 0.1
"""Fraction of the work with other shapes than on the other side from which the workloads differ."""
OTHER_BATCH = 0.5
"""Fraction of the work with recorded shapes whose shapes differ, from which one ratio between them is another batch."""
LEAST_SHAPES = 0.01
"""The same fraction below which it is not reported."""
AS_MUCH = 0.02
"""Relative difference of the numbers of elements up to which an operator computes as much on both sides."""
REPEATED = 0.6
"""Part of the work that is done the same whole number of times as often from which it is repeated work."""
COMPUTATION = frozenset(("gemm", "conv", "attention"))
"""Families of work that a faster program still does; copies, pointwise operators and the like may be fused or saved."""
REPLACEMENTS = COMPUTATION | {"fused", OTHER}
"""Families of kernels that may do such work in another way."""
REPLACED = 0.1
"""Time of added kernels that may do it, as a fraction of the missing work's, from which that work was replaced."""
OFTEN = 8
"""Occurrences per recording from which an operation shows how much of the work a recording holds."""
ALIKE = 0.06
"""Relative difference of an operation's ratio to the typical one up to which they are the same."""
OTHER_AMOUNT = 0.03
"""Relative difference of the amounts from which recordings hold other amounts of the same work."""
MOSTLY = 0.8
"""Part of the work that must be in that ratio."""
LEAST_MISSING = 0.01
"""Fraction of control's work from which missing computation is reported."""


def repeated(comparison: Comparison) -> list[Finding]:
    """workload-changed: nearly all work is done a whole number of times as often, or in recordings without steps any
    number of times. More of it on the test side is other work only in these: in a step of the user's own it is added
    work.
    """
    on_gpu = bool(comparison.gpu_time.groups)
    ops = [op for op in comparison.ops if (op.category in GPU_WORK if on_gpu else op.category == "cpu_op")]
    found = _whole_times(comparison, ops)
    return found if found or _has_steps(comparison) else _other_amount(comparison, ops)


def _whole_times(comparison: Comparison, ops: list[Op]) -> list[Finding]:
    on_gpu = bool(comparison.gpu_time.groups)
    by_ratio: dict[Fraction, list[Op]] = defaultdict(list)
    for op in ops:
        if op.control_count and op.test_count:
            by_ratio[Fraction(op.test_count, op.control_count)].append(op)
    ratio = max(by_ratio, key=lambda r: _time(by_ratio[r]), default=Fraction(1))
    if ratio == 1 or 1 not in (ratio.numerator, ratio.denominator) or (ratio > 1 and _has_steps(comparison)):
        return []
    same = sorted(by_ratio[ratio], key=lambda op: (-(op.control_self + op.test_self), op.name))
    share = _time(same) / max(_time(ops), 1)
    if share < REPEATED or 2 * len(same) <= sum(map(len, by_ratio.values())):
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


def _other_amount(comparison: Comparison, ops: list[Op]) -> list[Finding]:
    """Recordings that end in different parts of an iteration, or hold other numbers of them, hold other amounts of the
    same work: then most of it occurs in about one ratio.
    """
    often = [op for op in ops if op.test_count and comparison.number(op.control_count) >= OFTEN]
    if not often:
        return []
    ratio = _typical([(op.test_count / op.control_count, op.control_self + op.test_self) for op in often])
    alike = [op for op in often if abs(op.test_count / op.control_count / ratio - 1) <= ALIKE]
    share = _time(alike) / max(_time(ops), 1)
    if abs(ratio - 1) < OTHER_AMOUNT or share < MOSTLY:
        return []
    most = max(alike, key=lambda op: (op.control_self + op.test_self, op.name))
    unit = time_unit(
        [us := comparison.us(comparison.step_time.control), them := comparison.us(comparison.step_time.test)]
    )
    slower = them / ratio / us - 1
    return [
        Finding(
            kinds.WORKLOAD_CHANGED,
            f"{comparison.test.label} holds {ratio:.2f} times as much of the same work as {comparison.control.label}, "
            f"and takes about {percent(abs(slower))} {'longer' if slower > 0 else 'less'} for as much",
            f"This holds for {percent(share)} of the work. For as much work: {unit.plain(us)} → "
            f"{unit.text(them / ratio)}. {WHOLE_RECORDINGS}",
            evidence=(evidence_of(comparison, most),),
            covers=frozenset(i for i, g in enumerate(comparison.work.groups) if _done_oftener(g, ratio)),
        )
    ]


def _done_oftener(group: Group, ratio: float) -> bool:
    """Whether ``group`` changed by how often work is done, on the side that holds more of it."""
    sides = counted(group)
    if sides is None:
        return False
    control, test = (sum(m.count for m in members) for members in sides)
    return test > control if ratio > 1 else test < control


def _typical(weighted: list[tuple[float, float]]) -> float:
    """The median of (value, weight)s."""
    weighted = sorted(weighted)
    half, passed = sum(weight for _, weight in weighted) / 2, 0.0
    for value, weight in weighted:
        passed += weight
        if passed >= half:
            return value
    return weighted[-1][0]


def _has_steps(comparison: Comparison) -> bool:
    return not (comparison.control.whole_file or comparison.test.whole_file)


EQUAL_STEPS = (
    "The test side does nothing in its place, so a shorter step may only skip work. Compare equal work, or check that "
    "the result does not need it."
)
WHOLE_RECORDINGS = (
    "The recordings have no steps, so they may hold different parts of an iteration. Compare whole iterations: name "
    "the annotation of one with --step-marker, or record from the start of one to the end of another."
)


def missing(comparison: Comparison) -> list[Finding]:
    """missing-work: matrix products, convolutions or attention of the control side that the test side does not do, nor
    anything in their place. None where all work is done less often, which says it already.
    """
    if repeated(comparison):
        return []
    wrappers = _wrappers(comparison)
    lost = {id(g): found for g in comparison.work.groups if (found := _lost(g, wrappers))}
    groups = [g for g in comparison.work.groups if id(g) in lost]
    time = sum(lost.values())
    share = time / max(comparison.work.control, 1)
    instead = sum(m.ns for g in comparison.work.groups if not g.control for m in g.test if m.family in REPLACEMENTS)
    if share < LEAST_MISSING or instead >= REPLACED * time:
        return []
    noun = "GPU event" if comparison.gpu_time.groups else "operator"
    events = comparison.number(sum(g.control_count - g.test_count for g in groups))
    return [
        Finding(
            kinds.MISSING_WORK,
            f"{percent(share)} of control's work is missing on the test side: {plural(events, noun)} per step "
            f"({', '.join(sorted({g.family for g in groups}))})",
            EQUAL_STEPS if _has_steps(comparison) else WHOLE_RECORDINGS,
            evidence=tuple(
                of_group(comparison, g, g.call or g.control[0].op)
                for g in sorted(groups, key=lambda g: (-lost[id(g)], g.name))[:5]
            ),
        )
    ]


def _wrappers(comparison: Comparison) -> set[int]:
    """Nodes of control's tree that have what they are called after done by an operator below them (``aten::linear`` by
    ``aten::addmm``): only self time without a GPU is work of theirs.
    """
    if comparison.gpu_time.groups:
        return set()
    items = (item for group in comparison.work.groups for item in group.items[0])
    return {comparison.trees[0].calls[i.node].parent for i in items if i.family in COMPUTATION and i.node >= 0} - {-1}


def _lost(group: Group, wrappers: set[int]) -> int:
    """Time of control's computation in ``group`` that the test side does not do: without a counterpart, beside nothing
    but other kinds of work of its module, or done half as often or less.
    """
    time = sum(m.ns for m in group.control if m.family in COMPUTATION)
    time -= sum(i.ns for i in group.items[0] if i.family in COMPUTATION and i.node in wrappers)
    if not group.test or (
        group.level in ("module", PLACED_AS["module"]) and not any(m.family in REPLACEMENTS for m in group.test)
    ):
        return time
    if group.control_ops is None or group.test_ops is None or 2 * group.test_ops > group.control_ops:
        return 0
    return time * (group.control_ops - group.test_ops) // group.control_ops


def _time(ops: Iterable[Op]) -> int:
    return sum(op.control_self + op.test_self for op in ops)


def workload(comparison: Comparison) -> list[Finding]:
    """workload-changed and shape-change: operators with other shapes than on the other side."""
    found = unmatched_shapes(comparison)
    if found is None or not found[1]:
        return []
    share, examples = found
    us = comparison.us
    evidence = tuple(Evidence(name, None, None, us(c), us(t)) for name, c, t in examples[:5])
    sized = size_ratio(*comparison.trees)
    shaped = _shaped(comparison)
    if sized is not None and share >= OTHER_BATCH * shaped:
        ratio, is_batch = sized
        times = str(ratio.numerator) if ratio.denominator == 1 else f"{ratio.numerator}/{ratio.denominator}"
        title = f"inputs of other sizes: the dimensions that differ are {times} times as large"
        advice = "Compare equal workloads."
        if is_batch:
            title = f"another batch size: the first dimension of the inputs is {times} times as large"
            advice = "Compare equal workloads, or times per sample."
        detail = (
            f"Of the work whose shapes are recorded ({percent(shaped)} of all), {percent(share / shaped)} has shapes "
            f"that the other side does not have. {advice}"
        )
        return [Finding(kinds.WORKLOAD_CHANGED, title, detail, evidence=evidence)]
    title = f"{percent(share)} of the work has other shapes than on the other side"
    if share >= OTHER_WORKLOAD:
        detail = "Compare equal workloads before you rely on the times."
        return [Finding(kinds.WORKLOAD_CHANGED, f"{title}: the workloads differ", detail, evidence=evidence)]
    if share < LEAST_SHAPES:
        return []
    detail = "The same operators have inputs of other sizes: check the inputs."
    return [Finding(kinds.SHAPE_CHANGE, title, detail, evidence=evidence)]


def _shaped(comparison: Comparison) -> float:
    """The fraction of all work whose shapes are recorded."""
    shaped = sum(
        calls.ns
        for tree in comparison.trees
        for calls in _by_shapes(tree, comparison.scale // tree.denominator).values()
    )
    return shaped / max(_whole(comparison), 1)


def _whole(comparison: Comparison) -> int:
    return sum(comparison.scale // tree.denominator * w.ns for tree in comparison.trees for w in tree.work)


def unmatched_shapes(comparison: Comparison) -> tuple[float, list[tuple[str, int, int]]] | None:
    """(fraction, calls) of the work that one side does in shapes that the other does not have, while the other does as
    many calls of the operator in shapes that the one does not have; calls are (operator with shapes, control, test),
    the longest first. None if shapes cannot be compared.

    Calls in new shapes beyond that number are added work; calls in lost shapes, saved or missing work.
    """
    compiled = [op for op in comparison.ops if REGION.match(op.raw_name) or op.raw_name.startswith("CompiledFunction")]
    if any(op.control_count for op in compiled) != any(
        op.test_count for op in compiled
    ):  # compiled code calls operators with other shapes
        return None
    sides = [_by_shapes(tree, comparison.scale // tree.denominator) for tree in comparison.trees]
    if not all(sides):
        return None
    as_much = _as_much(comparison)
    own: dict[str, tuple[dict[Shapes, Calls], dict[Shapes, Calls]]] = defaultdict(lambda: ({}, {}))
    for k in (0, 1):
        for (label, key), calls in sides[k].items():
            if (label, key) not in sides[1 - k] and label not in as_much:
                own[label][k][key] = calls
    unmatched, time = [], Fraction(0)
    for label, of_op in own.items():
        totals = [sum(calls.count for calls in shapes.values()) for shapes in of_op]
        if not all(totals):
            continue
        for k in (0, 1):
            part = Fraction(min(totals), totals[k])
            time += part * sum(calls.ns for calls in of_op[k].values())
            unmatched += [
                (f"{label}({', '.join(key)})", *((calls.ns, 0) if k == 0 else (0, calls.ns)))
                for key, calls in of_op[k].items()
            ]
    unmatched.sort(key=lambda entry: (-max(entry[1:]), entry[0]))
    return float(time / max(_whole(comparison), 1)), unmatched


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


@dataclass
class Calls:
    """Calls of an operator with equal shapes, and the time of their work; numerators over scale."""

    count: int = 0
    ns: int = 0


def _by_shapes(tree: CallTree, factor: int) -> dict[tuple[str, Shapes], Calls]:
    """(operator, shapes) → its calls, where they have work."""
    out: dict[tuple[str, Shapes], Calls] = defaultdict(Calls)
    seen: set[int] = set()
    for work in tree.work:
        call = tree.calls[work.node] if work.node >= 0 else None
        if call is not None and call.kind == "op" and (key := shape_key(call.label, call.shapes)):
            calls = out[call.label, key]
            calls.ns += factor * work.ns
            if work.node not in seen:
                seen.add(work.node)
                calls.count += factor * call.count
    return out


RULES = (repeated, missing, workload)
