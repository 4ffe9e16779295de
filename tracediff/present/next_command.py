"""`Comparison` → the command that looks closer at the work that changed most, or at what of the host did."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from itertools import chain

from tracediff.diff.comparison import Comparison
from tracediff.diff.groups import Group
from tracediff.diff.views import kernels_of
from tracediff.explain.explanation import Cause
from tracediff.explain.facts import NOT_STEADY
from tracediff.explain.leaves import HOST, LOADING, OPERATORS, QUEUE, WAITING
from tracediff.explain.tree import SINGLE
from tracediff.present.answer import same_gpu_work
from tracediff.runtimes import call_role

PARTS = {
    LOADING: "--table loading",
    WAITING: "--table synchronisations",
    QUEUE: "--table launches",
    OPERATORS: "--device cpu",
}
"""What of the host changed → the option that shows its parts; of all else the critical path has them."""
AFTER_WARM_UP = "leave out the steps that warm up (--skip-first), or record after the warm-up"
WITH_STEPS = "record after the warm-up, with p.step() after each step"
MORE_RUNS = "record more runs per side"


def next_command(comparison: Comparison, command: str) -> str | None:
    """``command``, which compared the sides, with what looks closer: at the first row of changed work, or where the
    first line is of the host, at its events or their table; None if nothing changed.
    """
    explanation = comparison.explanation
    if explanation is None:
        return None
    if any(fact.code == NOT_STEADY for fact in explanation.facts):
        whole_file = comparison.control.whole_file or comparison.test.whole_file
        return WITH_STEPS if whole_file else AFTER_WARM_UP
    if comparison.verdict.result == "inconclusive" or same_gpu_work(comparison) is not None:
        return MORE_RUNS
    explain = command.replace(" compare ", " explain ", 1)
    first = next(iter(explanation.causes), None)
    rows = [row for row in comparison.work_changes if row.delta]
    if first is not None and (first.trail[:1] == (HOST,) or first.node.label == HOST or not rows):
        if name := _event(comparison, first):
            members = (member for group in comparison.work.groups for member in chain(*group.members))
            is_work = any(name in (member.op, member.name) for member in members)
            return f"{explain} {shlex.quote(name)}{'' if is_work and first.node.note != SINGLE else ' --events'}"
        return f"{command} {PARTS.get(''.join((*first.trail, first.node.label)[1:2]), '--table critical')}"
    return f"{explain} {shlex.quote(_largest(rows[0].groups))}" if rows else None


def _event(comparison: Comparison, cause: Cause) -> str:
    """What a line of one operator or call of the host, or of a single event, is called; empty for other lines."""
    if cause.node.note != SINGLE and OPERATORS not in cause.trail:
        return ""
    name = cause.node.label.removeprefix("one ").removesuffix(" on the host").split(" in ")[0]
    ops = [op for op in comparison.ops if name in (op.name, op.raw_name, call_role(op.raw_name))]
    return max(ops, key=lambda op: abs(op.delta)).name if ops else ""


def _largest(groups: Sequence[Group]) -> str:
    """The operator, or else the family or the only kernel, of the largest of ``groups``."""
    largest = max(groups, key=lambda g: (abs(g.delta), g.name))
    member = (largest.members.control or largest.members.test)[0]
    return member.op or (largest.name if len(groups) == 1 else kernels_of(largest.family))
