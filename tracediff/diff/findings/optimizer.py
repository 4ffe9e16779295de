"""Finding of the optimizer's implementation: one operator per tensor, foreach, fused or compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracediff.diff.findings import kinds
from tracediff.diff.findings.evidence import collapsed
from tracediff.diff.findings.finding import Evidence, Finding
from tracediff.diff.findings.kernels import matters, noun_of, reaches, weight
from tracediff.diff.groups import Member
from tracediff.formatting import change, counts
from tracediff.profile.kernels.match_names import is_generated

if TYPE_CHECKING:
    from tracediff.diff.comparison import Comparison

PHASE = "optimizer"
FEW_FOREACH = 3
"""Fewer kinds of foreach operators may be helpers of an implementation that is none."""
SHOWN = 5


def optimizers(comparison: Comparison) -> list[Finding]:
    """optimizer-change: the optimizer's step runs operators of another kind."""
    sides: tuple[list[Member], list[Member]] = ([], [])
    covers, changed = set(), 0
    for i, group in enumerate(comparison.work.groups):
        if group.phase == PHASE:
            covers.add(i)
            changed += abs(group.delta)
            for members, own in zip(sides, group.sides, strict=True):
                members.extend(own)
    before, after = map(_runs, sides)
    if not before or not after or before == after or not matters(comparison, changed):
        return []
    us, number = comparison.us, comparison.number
    n, ns = [[sum(getattr(m, what) for m in side) for side in sides] for what in ("count", "ns")]
    times = collapsed(change(us(ns[0]), us(ns[1])))
    delta = ns[1] - ns[0]
    return [
        Finding(
            kinds.OPTIMIZER_CHANGE,
            f"the optimizer runs {after} instead of {before}: {counts(*map(number, n))} {noun_of(comparison)}, "
            f"{times} per step",
            f"{reaches(comparison)}It is all work inside of the optimizer's step.",
            delta_us=us(delta),
            weight_us=weight(comparison, delta),
            evidence=_evidence(comparison, sides),
            covers=frozenset(covers),
        )
    ]


def _runs(members: list[Member]) -> str:
    """What an optimizer with this work runs, in words; empty without work."""
    ops = {m.op or m.name for m in members}
    if any(is_generated(m.name) for m in members):
        return "compiled code"
    if any("::_fused_" in op for op in ops):
        return "fused operators"
    if sum("::_foreach_" in op for op in ops) >= FEW_FOREACH:
        return "foreach operators"
    return "operators per tensor" if ops else ""


def _evidence(comparison: Comparison, sides: tuple[list[Member], list[Member]]) -> tuple[Evidence, ...]:
    """The operators, the largest change first."""
    sums: dict[str, list[int]] = {}
    for k, members in enumerate(sides):
        for member in members:
            entry = sums.setdefault(member.op or member.name, [0, 0, 0, 0])
            entry[k] += member.count
            entry[k + 2] += member.ns
    us, number = comparison.us, comparison.number
    largest = sorted(sums.items(), key=lambda item: (-abs(item[1][3] - item[1][2]), item[0]))
    return tuple(Evidence(name, number(e[0]), number(e[1]), us(e[2]), us(e[3])) for name, e in largest[:SHOWN])
