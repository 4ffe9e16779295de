"""Findings about the program: CUDA graphs, graph breaks, compilation, ranks, and whether the workloads are equal."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from typing import TYPE_CHECKING

from tracediff.aggregate.call_tree import Call, CallTree
from tracediff.diff.findings import kinds
from tracediff.diff.findings.evidence import collapsed, evidence_of
from tracediff.diff.findings.finding import Evidence, Finding
from tracediff.diff.findings.step import named_sides
from tracediff.diff.matching.batch_ratio import shape_key
from tracediff.diff.preflight import COMPILING
from tracediff.formatting import change, count, counts, percent, plural, signed_percent, time
from tracediff.runtimes import is_graph_launch

if TYPE_CHECKING:
    from tracediff.aggregate.side import Side
    from tracediff.diff.comparison import Comparison
    from tracediff.diff.findings.kinds import FindingKind
    from tracediff.diff.ops import Op

REGION = re.compile(r"^Torch-Compiled Region: (\d+)/(\d+)")
STRAGGLING = 0.1
"""Smallest difference between the ranks' times in communication that is reported, as a fraction of the step."""
OTHER_WORKLOAD = 0.1
"""Fraction of the work whose shapes do not occur on the other side from which the workloads differ."""
LEAST_SHAPES = 0.01
"""The same fraction below which it is not reported."""
COST_OF_BREAKS = (
    "Each break ends a compiled graph: Python runs in between, and no kernels are fused across it. Remove the breaks."
)
NO_TENSOR = ("Scalar", "ScalarList", "TensorList", "GenericList", "Device")
"""Types of arguments other than a single tensor."""


def _evidence(comparison: Comparison, ops: list[Op]) -> tuple[Evidence, ...]:
    return tuple(evidence_of(comparison, op) for op in ops[:5])


def _counts(comparison: Comparison, ops: list[Op]) -> list[float]:
    """Occurrences per step of all ``ops`` together, per side."""
    return [comparison.number(sum(op.control_count for op in ops)), comparison.number(sum(op.test_count for op in ops))]


def cuda_graphs(comparison: Comparison) -> list[Finding]:
    """cuda-graph: the number of graph launches per step changed."""
    ops = [op for op in comparison.ops if is_graph_launch(op.raw_name)]
    counts = _counts(comparison, ops)
    if counts[0] == counts[1]:
        return []
    step, us = comparison.step_time, comparison.us
    host = [comparison.control.host_us, comparison.test.host_us]
    title = f"graph launches: {count(counts[0])} → {count(counts[1])} per step"
    detail = f"Step time: {collapsed(change(us(step.control), us(step.test)))}"
    if host[0]:
        detail += f"; host time of the step: {collapsed(change(*host))} ({signed_percent(host[1] / host[0] - 1)})"
    detail += "."
    if abs(step.delta) < 0.02 * max(step.control, 1):
        detail += " No speed-up: the step was already bound by the GPU."
    return [Finding(kinds.CUDA_GRAPH, title, detail, weight_us=us(step.delta), evidence=_evidence(comparison, ops))]


def graph_breaks(comparison: Comparison) -> list[Finding]:
    """graph-breaks: the number of breaks in the manifests changed or, if both sides compile, of compiled regions."""
    control, test = comparison.control, comparison.test
    regions = [op for op in comparison.ops if REGION.match(op.raw_name)]
    counts = _counts(comparison, regions)
    breaks = control.graph_breaks, test.graph_breaks
    breaks_changed = None not in breaks and len(breaks[0] or ()) != len(breaks[1] or ())
    if not breaks_changed and (counts[0] == counts[1] or not all(counts)):
        return _breaks_of_one_side(comparison, counts)
    title = f"compiled regions: {count(counts[0])} → {count(counts[1])} per step"
    if breaks_changed:
        title = f"graph breaks: {len(breaks[0] or ())} → {len(breaks[1] or ())}"
    evidence = tuple(Evidence(text) for text in (breaks[1] or breaks[0] or ())[:5]) or _evidence(comparison, regions)
    return [Finding(kinds.GRAPH_BREAKS, title, COST_OF_BREAKS, evidence=evidence)]


def _breaks_of_one_side(comparison: Comparison, counts: list[float]) -> list[Finding]:
    """graph-breaks if only one side compiles."""
    found = []
    for side, regions in ((comparison.control, counts[0]), (comparison.test, counts[1])):
        if side.graph_breaks and not all(counts):
            title = (
                f"{side.label} has {plural(len(side.graph_breaks), 'graph break')}: "
                f"{plural(regions, 'compiled region')} per step"
            )
            found.append(
                Finding(
                    kinds.GRAPH_BREAKS,
                    title,
                    COST_OF_BREAKS,
                    evidence=tuple(Evidence(text) for text in side.graph_breaks[:5]),
                )
            )
    return found


def compiling(comparison: Comparison) -> list[Finding]:
    """compile-in-window and recompile-in-window: torch.compile ran during the used steps, or recompiled versions of
    regions run.
    """
    found = []
    for name, which in ((comparison.control.label, 0), (comparison.test.label, 1)):
        ops = [
            op for op in comparison.ops if COMPILING.search(op.raw_name) and (op.control_count, op.test_count)[which]
        ]
        if ops:
            total = sum((op.control_self, op.test_self)[which] for op in ops)
            title = f"torch.compile ran during the used steps of {name}: {time(comparison.us(total))} per step"
            detail = "These steps are not steady state: record more warm-up steps."
            found.append(
                Finding(
                    kinds.COMPILE_IN_WINDOW,
                    title,
                    detail,
                    weight_us=comparison.us(total),
                    evidence=_evidence(comparison, ops),
                )
            )
        matched = [(op, REGION.match(op.raw_name)) for op in comparison.ops if (op.control_count, op.test_count)[which]]
        again = [op for op, match in matched if match and int(match[2]) > 0]
        if again:
            detail = (
                "The number after the slash counts recompilations: a guard failed before. Make the guard hold, or use "
                "`dynamic=True`."
            )
            found.append(
                Finding(
                    kinds.RECOMPILE_IN_WINDOW,
                    f"{name} runs {plural(len(again), 'recompiled region')}",
                    detail,
                    evidence=_evidence(comparison, again),
                )
            )
    return found


def stragglers(comparison: Comparison) -> list[Finding]:
    """straggler: the rank that waits least in communication arrives last, and the others wait for it."""
    step = comparison.us(max(comparison.step_time.control, comparison.step_time.test))
    return [finding for side, name in named_sides(comparison) for finding in straggler_of(side, step, name)]


def straggler_of(side: Side, step_us: float, name: str) -> list[Finding]:
    """The finding of one side, called ``name``, whose step takes ``step_us``; none if the ranks wait alike."""
    waits = side.communication_us
    if len(waits) < 2 or max(waits.values()) - min(waits.values()) < STRAGGLING * step_us:
        return []
    late, early = min(waits, key=lambda r: (waits[r], r)), max(waits, key=lambda r: (waits[r], -r))
    title = f"rank {late} of {name} is a straggler: other ranks wait up to {time(waits[early] - waits[late])} per step"
    detail = (
        f"Rank {late} spends {time(waits[late])} per step in communication kernels, rank {early} {time(waits[early])}: "
        f"rank {late} enters the collectives last. Look at its work before each collective."
    )
    evidence = tuple(
        Evidence(f"rank {r}: {time(us)} in communication") for r, us in sorted(waits.items(), key=lambda item: item[1])
    )
    return [Finding(kinds.STRAGGLER, title, detail, weight_us=waits[early] - waits[late], evidence=evidence)]


def spilled(comparison: Comparison) -> list[Finding]:
    """spilled-kernels: GPU events whose launch is not in the file, which sums over whole files include."""
    events = comparison.gpu_time.spilled
    if not events.control_count and not events.test_count:
        return []
    title = f"GPU events launched before the capture: {counts(events.control_count, events.test_count)}"
    times = collapsed(change(events.control_ns / 1000, events.test_ns / 1000))
    detail = (
        f"They total {times} over the whole trace and are excluded from all per-step numbers: totals over whole traces "
        "are not comparable."
    )
    return [Finding(kinds.SPILLED_KERNELS, title, detail)]


def workload(comparison: Comparison) -> list[Finding]:
    """workload-changed and shape-change: operators with shapes that do not occur on the other side."""
    found = unmatched_shapes(comparison)
    if found is None:
        return []
    share, examples = found
    if not examples:
        return []
    us = comparison.us
    evidence = tuple(Evidence(name, None, None, us(c), us(t)) for name, c, t in examples[:5])
    title = f"{percent(share)} of the work has shapes that do not occur on the other side"
    if share >= OTHER_WORKLOAD:
        return [
            Finding(
                kinds.WORKLOAD_CHANGED,
                f"{title}: the workloads differ",
                "Compare equal workloads before you rely on the times.",
                evidence=evidence,
            )
        ]
    if share >= LEAST_SHAPES:
        return [
            Finding(
                kinds.SHAPE_CHANGE,
                title,
                "The same operators have inputs of other sizes: check the inputs.",
                evidence=evidence,
            )
        ]
    return []


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
    total = sum(ns for sums in sides for (label, _), ns in sums.items() if label in shared)
    unmatched = [
        (f"{label}({', '.join(key)})", sides[0].get((label, key), 0), sides[1].get((label, key), 0))
        for label, key in dict.fromkeys((*sides[0], *sides[1]))
        if label in shared and ((label, key) in sides[0]) != ((label, key) in sides[1])
    ]
    unmatched.sort(key=lambda entry: (-max(entry[1:]), entry[0]))
    return sum(c + t for _, c, t in unmatched) / max(total, 1), unmatched


def _time_by_shapes(tree: CallTree, factor: int) -> dict[tuple[str, tuple[str, ...]], int]:
    """(operator, shapes) → time of its work."""
    sums: dict[tuple[str, tuple[str, ...]], int] = defaultdict(int)
    for work in tree.work:
        call = tree.calls[work.node] if work.node >= 0 else None
        if call is not None and call.kind == "op" and (key := shape_key(call.label, call.shapes)):
            sums[call.label, key] += factor * work.ns
    return sums


def changed_inputs(comparison: Comparison) -> list[Finding]:
    """dtype-change and layout-change: the same operator on the same shapes has inputs of another dtype or with other
    strides.
    """
    changed: dict[FindingKind, dict[str, list[int]]] = {kinds.DTYPE_CHANGE: {}, kinds.LAYOUT_CHANGE: {}}
    work = [_work_of_calls(tree, comparison.scale // tree.denominator) for tree in comparison.trees]
    for a, b in comparison.pairing.test_of.items():
        x, y = comparison.trees[0].calls[a], comparison.trees[1].calls[b]
        times = work[0].get(a, 0), work[1].get(b, 0)
        if x.kind != "op" or not any(times) or shape_key(x.label, x.shapes) != shape_key(y.label, y.shapes):
            continue
        kind, change = _inputs_changed(x, y)
        if kind:
            entry = changed[kind].setdefault(f"{x.name}: {change}", [0, 0, 0])
            entry[0], entry[1], entry[2] = entry[0] + 1, entry[1] + times[0], entry[2] + times[1]
    whole = max(sum(work[0].values()), sum(work[1].values()), 1)
    return [
        _inputs_finding(comparison, kind, calls)
        for kind, calls in changed.items()
        if sum(max(c[1:]) for c in calls.values()) >= 0.01 * whole
    ]


def _work_of_calls(tree: CallTree, factor: int) -> dict[int, int]:
    out: dict[int, int] = defaultdict(int)
    for work in tree.work:
        out[work.node] += factor * work.ns
    return out


def _inputs_changed(x: Call, y: Call) -> tuple[FindingKind | None, str]:
    """(dtype-change, layout-change or None; the first input that differs, as ``float → c10::BFloat16``)."""
    for kind, word, a, b in (
        (kinds.DTYPE_CHANGE, "", x.types, y.types),
        (kinds.LAYOUT_CHANGE, "strides ", x.strides, y.strides),
    ):
        pairs = zip(json.loads(a), json.loads(b), strict=False) if a and b else ()
        differing = next(
            ((p, q) for p, q in pairs if p and q and p != q and p not in NO_TENSOR and q not in NO_TENSOR), None
        )
        if differing:
            return kind, f"{word}{_plain(differing[0])} → {_plain(differing[1])}"
    return None, ""


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _inputs_finding(comparison: Comparison, kind: FindingKind, calls: dict[str, list[int]]) -> Finding:
    us = comparison.us
    largest = sorted(calls.items(), key=lambda item: (-max(item[1][1:]), item[0]))
    many = sum(c[0] for c in calls.values())
    times = collapsed(change(us(sum(c[1] for c in calls.values())), us(sum(c[2] for c in calls.values()))))
    delta = us(sum(c[2] - c[1] for c in calls.values()))
    if kind is kinds.DTYPE_CHANGE:
        difference, advice = "of another dtype", "Expected under autocast; otherwise find the cast."
    else:
        difference, advice = "with other strides", "Check channels_last, views and `contiguous()`."
    evidence = tuple(Evidence(name, c[0], c[0], us(c[1]), us(c[2])) for name, c in largest[:5])
    return Finding(
        kind,
        f"{plural(many, 'operator call')} {'has' if many == 1 else 'have'} inputs {difference}: {times} per step",
        f"The operators and shapes are the same. {advice}",
        delta_us=delta,
        weight_us=delta,
        evidence=evidence,
    )


RULES = (changed_inputs, cuda_graphs, graph_breaks, compiling, stragglers, spilled, workload)
