"""Findings of the critical path: work that changed but that the step does not wait for. Only if both sets have the
table `critical`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracediff.diff.findings import kinds
from tracediff.diff.findings.finding import Evidence, Finding
from tracediff.formatting import signed_time, time
from tracediff.profile.kernels.display_names import display_name
from tracediff.runtimes import may_wait

if TYPE_CHECKING:
    from tracediff.diff.comparison import Comparison

LEAST = 0.01
"""Smallest change of a name's total time that is reported, as a fraction of the longer step."""
ON_PATH = 0.1
"""Largest fraction of that change on the critical path for work that the step does not wait for."""
KINDS = ("gpu_compute", "gpu_comm", "gpu_copy", "op", "call")
SHOWN = 5


def off_path(comparison: Comparison) -> list[Finding]:
    """off-path: the time of some work changed, and almost none of the change is on the step's critical path."""
    rows = next((table.rows for table in comparison.tables if table.schema.name == "critical"), ())
    us = comparison.us
    least = LEAST * max(comparison.step_time.control, comparison.step_time.test)
    found = []
    for row in rows:
        on_path, whole = (row.test[k] - row.control[k] for k in range(2))
        if (
            row.key[0] in KINDS
            and not may_wait(row.key[1])
            and all((row.control[1], row.test[1]))
            and abs(whole) >= least
            and abs(on_path) <= ON_PATH * abs(whole)
        ):
            found.append((whole, on_path, row))
    found.sort(key=lambda f: (-abs(f[0]), f[2].key))
    if not found:
        return []
    whole, on_path, largest = found[0]
    title = (
        f"{display_name(largest.key[1])} is {time(abs(us(whole)))} per step {'slower' if whole > 0 else 'faster'}, "
        f"{signed_time(us(on_path))} on the critical path"
    )
    detail = "The step does not wait for it, so it does not explain the change of the step."
    evidence = tuple(
        Evidence(display_name(row.key[1]), None, None, us(row.control[1]), us(row.test[1]))
        for _, _, row in found[:SHOWN]
    )
    return [Finding(kinds.OFF_PATH, title, detail, evidence=evidence)]


RULES = (off_path,)
