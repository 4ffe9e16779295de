"""The command that looks closer at an explanation."""

from __future__ import annotations

import shlex

from tracediff.diff.comparison import Comparison
from tracediff.explain.leaves import HOST
from tracediff.profile.tables.critical import SCHEMA as CRITICAL


def next_command(comparison: Comparison, command: str) -> str | None:
    """``command``, which compared the sides, with what looks closer: of a change of the host the table critical, else
    the work that changed most in its first line; None if nothing changed.
    """
    found = comparison.explanation
    if found is None:
        return None
    first = next(iter(found.causes), None)
    chain = (*first.trail, first.label) if first else (HOST,)
    rows = [row for row in comparison.work_changes if row.delta]
    if chain[0] == HOST or not rows:
        return f"{command} --table {CRITICAL.name}" if first else None
    inside = {step for node in first.node.walk() for step in node.children if isinstance(step, int)} if first else ()
    member = _member(comparison, tuple(inside) or rows[0].groups)
    return f"{command.replace(' compare ', ' explain ', 1)} {shlex.quote(member)}"


def _member(comparison: Comparison, positions: tuple[int, ...]) -> str:
    """The operator, or else the kernel, of the largest of the groups at ``positions``."""
    largest = max((comparison.work.groups[p] for p in positions), key=lambda g: (abs(g.delta), g.name))
    member = (largest.control or largest.test)[0]
    return member.op or largest.name
