"""Findings of the critical path: work that changed where the step does not wait for it. Only where both sets hold the
table `critical`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracediff.diff.findings import kinds
from tracediff.diff.findings.finding import Evidence, Finding
from tracediff.formatting import time

if TYPE_CHECKING:
    from tracediff.diff.comparison import Comparison

LEAST = 0.01
"""Change of all time of a kind of work, as a part of the longer step, from which it is told."""
ON_PATH = 0.1
"""Part of that change on the path up to which it is work that the step does not wait for."""
KINDS = ("gpu_compute", "gpu_comm", "gpu_copy", "op", "call")
SHOWN = 5


def off_path(comparison: Comparison) -> list[Finding]:
    """off-path: work takes longer or less, and next to nothing of it is on the step's critical path."""
    rows = next((of.rows for of in comparison.tables if of.schema.name == "critical"), ())
    us = comparison.us
    least = LEAST * max(comparison.step_time.control, comparison.step_time.test)
    found = []
    for row in rows:
        on_path, whole = (row.test[k] - row.control[k] for k in range(2))
        if row.key[0] in KINDS and abs(whole) >= least and abs(on_path) <= ON_PATH * abs(whole):
            found.append((whole, on_path, row))
    found.sort(key=lambda f: (-abs(f[0]), f[2].key))
    if not found:
        return []
    whole, on_path, largest = found[0]
    title = (
        f"{largest.key[1]}: {time(abs(us(whole)))} {'slower' if whole > 0 else 'faster'}, {time(us(on_path))} on "
        f"the step"
    )
    detail = "The step does not wait for it: that change is no reason for the step's."
    evidence = tuple(
        Evidence(row.key[1], None, None, us(row.control[1]), us(row.test[1])) for _, _, row in found[:SHOWN]
    )
    return [Finding(kinds.OFF_PATH, title, detail, evidence=evidence)]


RULES = (off_path,)
