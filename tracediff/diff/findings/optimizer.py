"""Finding of the optimizer: another one, or another implementation (per tensor, foreach, fused, compiled)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tracediff.diff.findings import kinds
from tracediff.diff.findings.evidence import collapsed
from tracediff.diff.findings.finding import Evidence, Finding
from tracediff.diff.findings.matched_work import (
    Sums,
    add_members,
    largest_sums,
    matters,
    noun_of,
    of_sums,
    reaches,
    weight,
)
from tracediff.diff.groups import Member
from tracediff.formatting import change, counts
from tracediff.profile.kernels.match_names import is_generated

if TYPE_CHECKING:
    from tracediff.diff.comparison import Comparison

PHASE = "optimizer"
STEP = re.compile(r"^Optimizer\.step#([\w.]{1,80})\.step$")
FEW_FOREACH = 3
"""Fewer kinds of foreach operators may be helpers of an implementation that is none."""


def optimizers(comparison: Comparison) -> list[Finding]:
    """optimizer-change: the step is another optimizer's, or runs operators of another kind."""
    sides: tuple[list[Member], list[Member]] = ([], [])
    covers, changed = set(), 0
    for i, group in enumerate(comparison.work.groups):
        if group.phase == PHASE:
            covers.add(i)
            changed += abs(group.delta)
            for members, own in zip(sides, group.sides, strict=True):
                members.extend(own)
    difference = _difference(_names(comparison), (_runs(sides[0]), _runs(sides[1])))
    if not difference or not matters(comparison, changed):
        return []
    us, number = comparison.us, comparison.number
    n, ns = [[sum(getattr(m, what) for m in side) for side in sides] for what in ("count", "ns")]
    times = collapsed(change(us(ns[0]), us(ns[1])))
    delta = ns[1] - ns[0]
    return [
        Finding(
            kinds.OPTIMIZER_CHANGE,
            f"the optimizer {difference}: {counts(*map(number, n))} {noun_of(comparison)}, {times} per step",
            f"{reaches(comparison)}It is all work inside of the optimizer's step.",
            delta_us=us(delta),
            weight_us=weight(comparison, delta),
            evidence=_evidence(comparison, sides),
            covers=frozenset(covers),
        )
    ]


def _difference(names: tuple[str, str], runs: tuple[str, str]) -> str:
    """``is SGD instead of AdamW``, else ``runs foreach operators instead of operators per tensor``; empty if neither is
    another, or a side has no optimizer.
    """
    if all(names) and names[0] != names[1]:
        return f"is {names[1]} instead of {names[0]}"
    return f"runs {runs[1]} instead of {runs[0]}" if all(runs) and runs[0] != runs[1] else ""


def _names(comparison: Comparison) -> tuple[str, str]:
    """The optimizers whose steps both sides run: ``AdamW``; empty where that is not recorded."""
    steps = [(match[1], op) for op in comparison.ops if (match := STEP.match(op.raw_name))]
    control = sorted({name for name, op in steps if op.control_count})
    test = sorted({name for name, op in steps if op.test_count})
    return ", ".join(control), ", ".join(test)


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
    sums: dict[str, Sums] = {}
    for side, members in enumerate(sides):
        for member in members:
            add_members(sums.setdefault(member.op or member.name, [0, 0, 0, 0]), side, (member,))
    return tuple(of_sums(comparison, name, entry) for name, entry in largest_sums(sums))
