"""All findings of a comparison, ranked by how much of the step's change each accounts for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tracediff.diff.findings import (
    critical,
    host,
    kernels,
    kinds,
    memory,
    optimizer,
    program,
    ranks,
    replaced,
    same_work,
    step,
    work,
    work_rate,
)
from tracediff.diff.findings.finding import Finding
from tracediff.diff.findings.state_change import tested

if TYPE_CHECKING:
    from tracediff.diff.comparison import Comparison

RULES = (
    *same_work.RULES,
    *step.RULES,
    *host.RULES,
    *work.RULES,
    *kernels.RULES,
    *replaced.RULES,
    optimizer.optimizers,
    *program.RULES,
    *ranks.RULES,
    *work_rate.RULES,
    *memory.RULES,
    *critical.RULES,
)
BEFORE_ALL = (*same_work.DIFFERENT_WORK, kinds.COMPILE_IN_WINDOW)
"""Kinds that come first: with other work, or steps that compile, the other findings say little. Outlier steps that make
up most of the change come first, too.
"""
FACTS = (
    kinds.CUDA_GRAPH,
    kinds.HOST_BOUND,
    kinds.GPU_BOUND,
    kinds.OUTLIER_STEP,
    kinds.GRAPH_BREAKS,
    kinds.RECOMPILE_IN_WINDOW,
    kinds.NEW_SYNC,
    kinds.CUDNN_CHOICE,
    kinds.OPTIMIZER_CHANGE,
    kinds.EFFICIENCY,
)
"""Kinds that are reported however little of the change they account for, the most important first."""
CONTAINERS = (
    kinds.WORKLOAD_CHANGED,
    kinds.STRAGGLER,
    kinds.CUDA_GRAPH,
    kinds.OPTIMIZER_CHANGE,
    kinds.DTYPE_CHANGE,
    kinds.ALL_KERNELS,
    kinds.FUSED,
    kinds.MODULE_CHANGE,
    kinds.SLOWER_FAMILY,
    kinds.FASTER_FAMILY,
    kinds.ALGORITHM_SWAP,
    kinds.EXPOSED_COMMUNICATION,
    kinds.SYNCHRONISATION,
)
"""Kinds whose findings others can be part of; of two that explain the same, the earlier holds the other."""
CONTAINED = 0.8
"""Part of a finding's change that another explains from which it is part of that other."""
LEAST = 0.01
"""Smallest part of the step's change that is reported; of the step, where it changed by less than this part."""


def find(comparison: Comparison) -> tuple[Finding, ...]:
    """Every finding that accounts for part of the change, in its direction first and the largest first, then the facts;
    none if the comparison was refused.
    """
    if comparison.was_refused:
        return ()
    found = [finding for rule in RULES for finding in rule(comparison) if _counts(comparison, finding)]
    nested = _nested([_with_runs(comparison, finding) for finding in found], _changes(comparison))
    change = comparison.typical.delta
    directed = abs(change) >= LEAST * comparison.us(max(comparison.step_time.control, comparison.step_time.test))
    if (unprofiled := comparison.unprofiled) is not None and unprofiled.believed:
        directed = directed and unprofiled.change * change > 0  # else the verdict is of another direction

    def rank(finding: Finding) -> tuple[object, ...]:
        place = 1 + (directed and finding.weight_us * change < 0)
        if not finding.weight_us:
            place = 3
        if finding.kind in BEFORE_ALL or (finding.kind is kinds.OUTLIER_STEP and finding.weight_us):
            place = 0
        fact = FACTS.index(finding.kind) if finding.kind in FACTS else len(FACTS)
        return place, -abs(finding.weight_us), fact, finding.code, finding.title

    return tuple(sorted(nested, key=rank))


def _counts(comparison: Comparison, finding: Finding) -> bool:
    """Whether ``finding`` is a fact, or accounts for enough of the step's change."""
    if not finding.delta_us or finding.kind in FACTS:
        return True
    longest = comparison.us(max(comparison.step_time.control, comparison.step_time.test))
    change = abs(comparison.us(comparison.step_time.delta))
    return abs(finding.weight_us) >= LEAST * (change if change >= LEAST * longest else longest)


def _with_runs(comparison: Comparison, finding: Finding) -> Finding:
    """``finding`` with the number of runs, if they are too few for a test."""
    runs = min(comparison.control.runs, comparison.test.runs)
    if not finding.delta_us or tested(comparison):
        return finding
    return replace(finding, runs="one run" if runs == 1 else f"{runs} runs")


def _changes(comparison: Comparison) -> dict[int | str, int]:
    """The size of the change of each group of work, and of each state; numerators."""
    changes: dict[int | str, int] = {s.name: abs(s.delta) for s in comparison.step_time.states}
    changes.update({i: abs(group.delta) for i, group in enumerate(comparison.work.groups)})
    return changes


def _nested(found: Sequence[Finding], changes: dict[int | str, int]) -> list[Finding]:
    """``found`` with those that are part of another inside of it."""
    parts: dict[int, list[Finding]] = defaultdict(list)
    inside: set[int] = set()
    containers = [i for i, f in enumerate(found) if f.kind in CONTAINERS and f.covers]
    containers.sort(key=lambda i: (CONTAINERS.index(found[i].kind), -_size(found[i].covers, changes)))
    for holder in containers:
        if holder in inside:
            continue
        for i, finding in enumerate(found):
            if i == holder or i in inside or i in parts or not finding.covers:
                continue
            shared = _size(finding.covers & found[holder].covers, changes)
            if shared and shared >= CONTAINED * _size(finding.covers, changes):
                parts[holder].append(finding)
                inside.add(i)
    return [
        replace(f, parts=tuple(sorted(parts[i], key=lambda p: (-abs(p.weight_us), p.code, p.title))))
        if i in parts
        else f
        for i, f in enumerate(found)
        if i not in inside
    ]


def _size(covers: frozenset[int | str], changes: dict[int | str, int]) -> int:
    return sum(changes.get(key, 0) for key in covers)
