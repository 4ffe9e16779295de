"""Findings about the program: CUDA graphs, graph breaks, compilation, and whether the workloads are equal."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from itertools import zip_longest
from typing import TYPE_CHECKING

from tracediff.aggregate.call_tree import Call, CallTree
from tracediff.diff.findings import kinds
from tracediff.diff.findings.evidence import collapsed, evidence_of
from tracediff.diff.findings.finding import Evidence, Finding
from tracediff.diff.findings.host import HOST_STATES, LAUNCH_STATES
from tracediff.diff.findings.matched_work import weight
from tracediff.diff.findings.state_change import LEAST_CHANGE, PART_OF_CHANGE, passes
from tracediff.diff.matching.batch_ratio import shape_key
from tracediff.diff.preflight import COMPILING_PART, is_compiling
from tracediff.formatting import change, count, counts, part, plural, rose, signed_percent, time
from tracediff.profile.kernels.match_names import is_compiled_call
from tracediff.runtimes import is_graph_launch

if TYPE_CHECKING:
    from tracediff.diff.comparison import Comparison
    from tracediff.diff.findings.kinds import FindingKind
    from tracediff.diff.ops import Op

REGION = re.compile(r"^Torch-Compiled Region: (\d{1,18})/(\d{1,18})(?!\d)")
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
    typical = comparison.typical.within((*LAUNCH_STATES, *HOST_STATES))
    delta = typical[1] - typical[0] if abs(step.delta) >= 0.02 * max(step.control, 1) else 0.0
    return [
        Finding(
            kinds.CUDA_GRAPH,
            title,
            detail,
            delta_us=delta,
            weight_us=delta,
            evidence=_evidence(comparison, ops),
            covers=frozenset((*LAUNCH_STATES, *HOST_STATES)),
        )
    ]


def graph_breaks(comparison: Comparison) -> list[Finding]:
    """graph-breaks: the number of breaks in the manifests changed or, if both sides compile, of compiled regions."""
    control, test = comparison.control, comparison.test
    regions = [op for op in comparison.ops if REGION.match(op.raw_name)]
    counts = _regions(regions)
    breaks = control.graph_breaks, test.graph_breaks
    breaks_changed = None not in breaks and len(breaks[0] or ()) != len(breaks[1] or ())
    if not breaks_changed and (counts[0] == counts[1] or not all(counts)):
        return _breaks_of_one_side(comparison, counts)
    title = f"compiled regions: {counts[0]} → {counts[1]}"
    if breaks_changed:
        title = f"graph breaks: {len(breaks[0] or ())} → {len(breaks[1] or ())}"
    evidence = tuple(Evidence(text) for text in (breaks[1] or breaks[0] or ())[:5]) or _evidence(comparison, regions)
    return [Finding(kinds.GRAPH_BREAKS, title, COST_OF_BREAKS, evidence=evidence)]


def _regions(ops: list[Op]) -> tuple[int, int]:
    """The number of distinct compiled regions per side, however often each runs and in how many versions."""
    numbers: tuple[set[str], set[str]] = (set(), set())
    for op in ops:
        match = REGION.match(op.raw_name)
        for side, occurrences in zip(numbers, (op.control_count, op.test_count), strict=True):
            if match and occurrences:
                side.add(match[1])
    return len(numbers[0]), len(numbers[1])


def _breaks_of_one_side(comparison: Comparison, counts: tuple[int, int]) -> list[Finding]:
    """graph-breaks if only one side compiles."""
    found = []
    for side, regions in ((comparison.control, counts[0]), (comparison.test, counts[1])):
        if side.graph_breaks and not all(counts):
            title = (
                f"{side.label} has {plural(len(side.graph_breaks), 'graph break')}: "
                f"{plural(regions, 'compiled region')}"
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


def compiled_calls(comparison: Comparison) -> list[Finding]:
    """compiled-calls: without a GPU, the self time of what calls compiled code."""
    if comparison.gpu_time.groups:
        return []
    ops = [op for op in comparison.ops if op.category == "cpu_op" and is_compiled_call(op.raw_name)]
    us, number, step = comparison.us, comparison.number, comparison.step_time
    control, test = sum(op.control_self for op in ops), sum(op.test_self for op in ops)
    least = max(PART_OF_CHANGE * abs(step.delta), LEAST_CHANGE * max(step.control, step.test))
    if abs(test - control) < least or not passes(comparison, (op.time_change for op in ops), test - control):
        return []
    delta = us(test - control)
    ops.sort(key=lambda op: (-abs(op.test_self - op.control_self), op.name))
    evidence = tuple(
        Evidence(op.name, number(op.control_count), number(op.test_count), us(op.control_self), us(op.test_self))
        for op in ops[:5]
    )
    return [
        Finding(
            kinds.COMPILED_CALLS,
            f"calling compiled code {rose(control, test)}: {change(us(control), us(test))} per step",
            f"It is the host's time in cache lookups, guards and wrappers. {_why_calls(comparison)}",
            delta_us=delta,
            weight_us=delta,
            evidence=evidence,
        )
    ]


def _why_calls(comparison: Comparison) -> str:
    """The graph breaks, each of which adds a call of compiled code; without any, what makes fewer calls."""
    sides = [side for side in (comparison.control, comparison.test) if side.graph_breaks]
    if not sides:
        return kinds.advice_of(kinds.COMPILED_CALLS)
    breaks = ", ".join(f"{side.label} has {plural(len(side.graph_breaks or ()), 'graph break')}" for side in sides)
    return f"{breaks}, and each adds a call: remove them (-v names them)."


def compiling(comparison: Comparison) -> list[Finding]:
    """compile-in-window and recompile-in-window: torch.compile ran during the used steps, or recompiled versions of
    regions run.
    """
    found = []
    for name, which in ((comparison.control.label, 0), (comparison.test.label, 1)):
        ops = [op for op in comparison.ops if is_compiling(op.raw_name) and (op.control_count, op.test_count)[which]]
        total = sum((op.control_self, op.test_self)[which] for op in ops)
        step = (comparison.step_time.control, comparison.step_time.test)[which]
        if ops and total >= COMPILING_PART * step:
            title = (
                f"torch.compile compiles in the used steps of {name}: {time(comparison.us(total))} per step, "
                f"{part(total, step)} of the step"
            )
            detail = "These steps are not steady state: record more warm-up steps."
            ops.sort(key=lambda op: -(op.control_total, op.test_total)[which])
            found.append(Finding(kinds.COMPILE_IN_WINDOW, title, detail, evidence=_evidence(comparison, ops)))
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


def spilled(comparison: Comparison) -> list[Finding]:
    """spilled-kernels: GPU events whose launch is not in the file, which sums over whole files include."""
    events = comparison.gpu_time.spilled
    if not events.control_count and not events.test_count:
        return []
    title = f"GPU events launched before the recording: {counts(events.control_count, events.test_count)}"
    times = collapsed(change(events.control_ns / 1000, events.test_ns / 1000))
    detail = (
        f"They total {times} over the whole trace and are excluded from all per-step numbers: totals over whole traces "
        "are not comparable."
    )
    return [Finding(kinds.SPILLED_KERNELS, title, detail)]


def changed_inputs(comparison: Comparison) -> list[Finding]:
    """dtype-change and layout-change: the same operator on the same shapes has inputs of another dtype or with other
    strides.
    """
    changed: dict[FindingKind, dict[str, list[int]]] = {kinds.DTYPE_CHANGE: {}, kinds.LAYOUT_CHANGE: {}}
    nodes: dict[FindingKind, set[int]] = {kind: set() for kind in changed}
    work = [_work_of_calls(tree, comparison.scale // tree.denominator) for tree in comparison.trees]
    for a, b in comparison.pairing.test_of.items():
        x, y = comparison.trees[0].calls[a], comparison.trees[1].calls[b]
        times = work[0].get(a, 0), work[1].get(b, 0)
        if x.kind != "op" or not any(times) or shape_key(x.label, x.shapes) != shape_key(y.label, y.shapes):
            continue
        kind, change = _inputs_changed(x, y)
        if kind:
            nodes[kind].add(a)
            entry = changed[kind].setdefault(f"{x.name}: {change}", [0, 0, 0])
            entry[0], entry[1], entry[2] = entry[0] + 1, entry[1] + times[0], entry[2] + times[1]
    whole = max(sum(work[0].values()), sum(work[1].values()), 1)
    return [
        _inputs_finding(comparison, kind, calls, _groups_at(comparison, nodes[kind]))
        for kind, calls in changed.items()
        if sum(max(c[1:]) for c in calls.values()) >= 0.01 * whole
    ]


def _work_of_calls(tree: CallTree, factor: int) -> dict[int, int]:
    out: dict[int, int] = defaultdict(int)
    for work in tree.work:
        out[work.node] += factor * work.ns
    return out


def _inputs_changed(x: Call, y: Call) -> tuple[FindingKind | None, str]:
    """(dtype-change, layout-change or None; the first input that differs, as ``float → c10::BFloat16``). Scalars, which
    cost next to nothing in any dtype, do not count.
    """
    dims = json.loads(x.shapes) if x.shapes else ()
    for kind, word, a, b in (
        (kinds.DTYPE_CHANGE, "", x.types, y.types),
        (kinds.LAYOUT_CHANGE, "strides ", x.strides, y.strides),
    ):
        inputs = zip_longest(json.loads(a), json.loads(b), dims) if a and b else ()
        pairs = ((p, q) for p, q, shape in inputs if p and q and p != q and shape != [])
        differing = next(((p, q) for p, q in pairs if p not in NO_TENSOR and q not in NO_TENSOR), None)
        if differing:
            return kind, f"{word}{_plain(differing[0])} → {_plain(differing[1])}"
    return None, ""


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _groups_at(comparison: Comparison, nodes: set[int]) -> frozenset[int | str]:
    """The groups of work with most of their control side below the calls ``nodes``."""
    return frozenset(
        i
        for i, group in enumerate(comparison.work.groups)
        if 2 * sum(item.ns for item in group.items[0] if item.work.node in nodes) > group.control_ns
    )


def _inputs_finding(
    comparison: Comparison, kind: FindingKind, calls: dict[str, list[int]], covers: frozenset[int | str]
) -> Finding:
    us = comparison.us
    largest = sorted(calls.items(), key=lambda item: (-max(item[1][1:]), item[0]))
    many = sum(c[0] for c in calls.values())
    times = collapsed(change(us(sum(c[1] for c in calls.values())), us(sum(c[2] for c in calls.values()))))
    delta = sum(c[2] - c[1] for c in calls.values())
    if kind is kinds.DTYPE_CHANGE:
        difference, advice = "of another dtype", "Expected under autocast; otherwise find the cast."
    else:
        difference, advice = "with other strides", "Check channels_last, views and `contiguous()`."
    evidence = tuple(Evidence(name, c[0], c[0], us(c[1]), us(c[2])) for name, c in largest[:5])
    return Finding(
        kind,
        f"{plural(many, 'operator call')} {'has' if many == 1 else 'have'} inputs {difference}: {times} per step",
        f"The operators and shapes are the same. {advice}",
        delta_us=us(delta),
        weight_us=weight(comparison, delta),
        evidence=evidence,
        covers=covers,
    )


RULES = (changed_inputs, cuda_graphs, graph_breaks, compiled_calls, compiling, spilled)
