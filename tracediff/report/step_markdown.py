"""`Comparison` → where the step went, as a Markdown table with bars of text: GitHub strips scripts and data: images."""

from __future__ import annotations

from tracediff.diff.comparison import Comparison
from tracediff.present import sections
from tracediff.report.bars import bars
from tracediff.report.escape import escaped
from tracediff.report.table_markdown import table_lines, time_heads

BAR = 16
"""Blocks of the bars on both sides of zero together."""
LEAST_BAR = 0.05
"""Fraction of the step that at least makes a whole bar: small changes have small bars."""


def step_lines(comparison: Comparison) -> list[str]:
    """The table of states, the step as its last row, and the sentence that the states add up to it. Bars of times that
    fell end, and bars of times that rose begin, where their columns meet.
    """
    step = sections.step_sums(comparison)
    longest = max(step.whole.control_us, step.whole.test_us)
    drawn = bars((row.delta_us for row in step.rows), BAR + 2, LEAST_BAR * longest)
    rows = []
    for row in step.rows:
        less, more = (drawn.blocks(row.delta_us) if side else "" for side in (row.delta_us < 0, row.delta_us > 0))
        rows.append([escaped(row.name), *row.times(step.unit), less, more])
    heads = ["state", *time_heads(step.unit), "less", "more"]
    table = table_lines(heads, "lrrrrl", [*rows, ["**step**", *step.whole.times(step.unit), "", ""]])
    return [*table, "", f"The states add up to the step: {sections.unexplained_ns(comparison)} ns unexplained."]
