"""The command that looks closer at an explanation."""

from __future__ import annotations

import shlex

from tracediff.diff.comparison import Comparison
from tracediff.explain.explanation import Cause
from tracediff.explain.facts import NOT_STEADY
from tracediff.explain.leaves import HOST, LOADING, OPERATORS, QUEUE, WAITING
from tracediff.explain.tree import SINGLE
from tracediff.runtimes import call_role

TABLES = {LOADING: "loading", WAITING: "synchronisations", QUEUE: "launches"}
"""What of the host changed → the table that has its parts; of all else the critical path has."""
AFTER_WARM_UP = "leave out the steps that warm up (--skip-first), or record after the warm-up"


def next_command(comparison: Comparison, command: str) -> str | None:
    """``command``, which compared the sides, with what looks closer at its first line: the events of a name, a table of
    the host, or the work that changed most; None if nothing changed.
    """
    found = comparison.explanation
    if found is None:
        return None
    if any(fact.code == NOT_STEADY for fact in found.facts):
        return AFTER_WARM_UP
    explain = command.replace(" compare ", " explain ", 1)
    first = next(iter(found.causes), None)
    rows = [row for row in comparison.work_changes if row.delta]
    if first is not None and (first.trail[:1] == (HOST,) or first.node.label == HOST or not rows):
        if name := _event(comparison, first):
            return f"{explain} {shlex.quote(name)}{' --events' if first.node.note == SINGLE else ''}"
        return f"{command} --table {TABLES.get(''.join((*first.trail, first.node.label)[1:2]), 'critical')}"
    if not rows:
        return None
    inside = {step for node in first.node.walk() for step in node.children if isinstance(step, int)} if first else ()
    return f"{explain} {shlex.quote(_member(comparison, tuple(inside) or rows[0].groups))}"


def _event(comparison: Comparison, cause: Cause) -> str:
    """What a line of one operator or call of the host, or of a single event, is called; empty for other lines."""
    if cause.node.note != SINGLE and OPERATORS not in cause.trail:
        return ""
    name = cause.node.label.removeprefix("one ").removesuffix(" on the host").split(" in ")[0]
    called = [op for op in comparison.ops if name in (op.name, op.raw_name, call_role(op.raw_name))]
    return max(called, key=lambda op: abs(op.delta)).name if called else ""


def _member(comparison: Comparison, positions: tuple[int, ...]) -> str:
    """The operator, or else the kernel, of the largest of the groups at ``positions``."""
    largest = max((comparison.work.groups[p] for p in positions), key=lambda g: (abs(g.delta), g.name))
    member = (largest.control or largest.test)[0]
    return member.op or largest.name
