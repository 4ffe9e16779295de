"""The preflight's cautions about the matched work: another program, other work, missing work, other dtypes, work in no
step, and the slowest rank.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tracediff.diff.matching.match import PLACED_AS
from tracediff.diff.preflight import Reason
from tracediff.explain.effects import MOSTLY
from tracediff.explain.facts import AS_OFTEN, OTHER_PROGRAM, REWRITTEN, WORK_DIFFERS, Fact
from tracediff.explain.reasons import changed_input
from tracediff.formatting import percent, plural
from tracediff.profile.kernels.families import OTHER

if TYPE_CHECKING:
    from tracediff.aggregate.side import Side
    from tracediff.diff.comparison import Comparison
    from tracediff.diff.groups import Group

USUALLY, AS_LONG = 0.8, 0.005
"""Part of the steps in which one rank is the slowest; relative difference up to which ranks take as long."""
OTHER_DTYPE = 0.1
"""Part of the work from which another dtype is a caution."""
COMPUTATION = frozenset(("gemm", "conv", "attention"))
"""Families of work that a faster program still does; copies, pointwise operators and the like may be fused or saved."""
REPLACEMENTS = COMPUTATION | {"fused", OTHER}
"""Families of kernels that may do such work in another way."""
LEAST_MISSING = 0.01
"""Part of control's work from which missing computation is a caution."""
REPLACED = 0.1
"""Time of added kernels that may do it, as a part of the missing work's, from which that work was replaced."""


def cautions_of(comparison: Comparison, facts: Sequence[Fact]) -> list[Reason]:
    """The cautions operators, workload, missing-work, dtype, outside-steps and slowest-rank."""
    has_steps = not (comparison.control.whole_file or comparison.test.whole_file)
    judged = [fact for fact in facts if not (has_steps and fact.code == AS_OFTEN and fact.ratio > 1)]  # added work
    differing = [reason for fact in judged if (reason := _of_fact(fact))]
    return [
        *differing,
        *([] if any(reason.code == "workload" for reason in differing) else _missing(comparison)),
        *_dtype(comparison),
        *_outside(comparison),
        *_slowest_rank(comparison),
    ]


def _of_fact(fact: Fact) -> Reason | None:
    """The caution that a fact is; the fact itself has the figures."""
    values = fact.control, fact.test
    if fact.code in (OTHER_PROGRAM, REWRITTEN):
        return Reason("operators", "another program, or rewritten code", *values)
    if fact.code == WORK_DIFFERS:
        return Reason("workload", "other amounts of work: compare equal workloads, or times per sample", *values)
    if fact.code == AS_OFTEN:
        return Reason("workload", "the same work more or less often: compare equal numbers of iterations", *values)
    return None


def _missing(comparison: Comparison) -> list[Reason]:
    """Matrix products, convolutions or attention of the control side that the test side does not do, nor anything in
    their place.
    """
    wrappers = _wrappers(comparison)
    lost = [(time, group) for group in comparison.work.groups if (time := _lost(group, wrappers))]
    time = sum(time for time, _ in lost)
    share = time / max(comparison.work.control, 1)
    instead = sum(m.ns for g in comparison.work.groups if not g.control for m in g.test if m.family in REPLACEMENTS)
    if share < LEAST_MISSING or instead >= REPLACED * time:
        return []
    events = plural(
        comparison.number(sum(g.control_count - g.test_count for _, g in lost)),
        "GPU event" if comparison.gpu_time.groups else "operator",
    )
    families = ", ".join(sorted({g.family for _, g in lost}))
    _, largest = max(lost, key=lambda entry: (entry[0], entry[1].name))
    message = f"{percent(share)} of control's work is missing on the test side: {events} per step ({families})"
    return [Reason("missing-work", message, largest.call or largest.control[0].op or largest.name, "none")]


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


def _dtype(comparison: Comparison) -> list[Reason]:
    """The same operators on the same shapes have inputs of another dtype, in much of the work."""
    work: list[dict[int, int]] = [defaultdict(int), defaultdict(int)]
    for of_node, tree in zip(work, comparison.trees, strict=True):
        for one in tree.work:
            of_node[one.node] += comparison.scale // tree.denominator * one.ns
    changed: Counter[str] = Counter()
    for a, b in comparison.pairing.test_of.items():
        x, y = comparison.trees[0].calls[a], comparison.trees[1].calls[b]
        time = work[0].get(a, 0) + work[1].get(b, 0)
        if x.kind == "op" and time and (found := changed_input(x, y)) and found[0] == "dtype":
            changed[found[1].removeprefix("dtype ")] += time
    whole = comparison.work.control + comparison.work.test
    if not changed or changed.total() < OTHER_DTYPE * whole:
        return []
    before, _, after = changed.most_common(1)[0][0].partition(" → ")
    return [Reason("dtype", "the same operators have inputs of another dtype", before, after)]


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
    if max(shares) < MOSTLY:
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
        "states of the step are of the slowest rank, which is another one on each side although both take"
        " as long: compare one with --rank"
    )
    return [Reason("slowest-rank", message, *map(str, ranks))]


def _usually_slowest(side: Side) -> int | None:
    """The rank that is the slowest in nearly all steps, if there is one."""
    slowest = Counter(step.rank for steps in side.steps.values() for step in steps)
    rank, steps = max(slowest.items(), key=lambda item: (item[1], -item[0]), default=(None, 0))
    return rank if steps >= USUALLY * slowest.total() else None
