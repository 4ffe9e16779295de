"""`Comparison` → where the step went, as a Markdown table with bars of text: GitHub strips scripts and data: images."""

from __future__ import annotations

from tracediff.diff.comparison import Comparison
from tracediff.formatting import time_unit
from tracediff.present import sections
from tracediff.report.bars import bars
from tracediff.report.escape import escaped

BAR = 16
"""Blocks of the bars on both sides of zero together."""
LEAST_BAR = 0.05
"""Fraction of the step that at least makes a whole bar: small changes have small bars."""
ALIGNED = ":--|--:|--:|--:|--:|:--"
"""Bars of times that fell end, and bars of times that rose begin, where their columns meet."""


def step_lines(comparison: Comparison) -> list[str]:
    """The table of states, the step as its last row, and the sentence that the states add up to it."""
    step, us = comparison.step_time, comparison.us
    unit = time_unit([us(step.control), us(step.test)])
    rows = sections.step_rows(comparison)
    drawn = bars((row.delta_us for row in rows), BAR + 2, LEAST_BAR * us(max(step.control, step.test)))
    lines = [
        f"| state | control ({unit.name}) | test ({unit.name}) | change ({unit.name}) | less | more |",
        f"|{ALIGNED}|",
    ]
    for row in rows:
        less, more = (drawn.blocks(row.delta_us) if side else "" for side in (row.delta_us < 0, row.delta_us > 0))
        lines.append(
            _line(
                escaped(row.name),
                unit.plain(row.control_us),
                unit.plain(row.test_us),
                unit.signed(row.delta_us),
                less,
                more,
            )
        )
    lines.append(
        _line("**step**", unit.plain(us(step.control)), unit.plain(us(step.test)), unit.signed(us(step.delta)), "", "")
    )
    return [*lines, "", f"The states add up to the step: {step.residual / comparison.scale:g} ns unexplained."]


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
