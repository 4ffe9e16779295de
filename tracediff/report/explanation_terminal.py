"""The explanation in a terminal: facts, then a table of lines that add up to the step's change."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tracediff.errors import printable
from tracediff.explain.explanation import Explanation
from tracediff.present.explanation_lines import ExplanationLine, explanation_table
from tracediff.present.shorten import shortened_pairs

WIDE = 110
"""Columns from which what happened is beside the line."""
FIGURES = 36
"""Columns that the times and the margins need."""
LABEL_PART = 0.5
"""Part of the other columns that labels get beside what happened."""
FOLDED = 80
"""Columns of a label, however wide the screen or pipe."""
UNTESTED = "untested: fewer than 3 runs per side"


def explanation(
    found: Explanation, width: int, *, is_tested: bool, most: int | None = None, detailed: int | None = None
) -> list[RenderableType]:
    """Why the step changed, in a table that adds up.

    Args:
        width: columns; where they are few, what happened is below the line.
        most: lines of causes; the smaller ones are one line. None for all, with whole names and reasons.
        detailed: the largest of them, of which what happened is shown; None for all.
    """
    shown = explanation_table(found, most)
    if not shown.lines:
        return []
    labels = [printable(line.label) for line in shown.lines]
    beside, room = width >= WIDE, max(width - FIGURES, 1)
    label_room = min(int(LABEL_PART * room), max(map(len, labels), default=0)) if beside else room
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="bold", show_edge=False, expand=True)
    why, its_time, its_part = shown.heads
    table.add_column(
        why,
        width=max(min(label_room, FOLDED), len(why)) + 2 if beside else None,
        ratio=None if beside else 1,
        overflow="fold",
    )
    table.add_column(its_time, justify="right", no_wrap=True)
    table.add_column(its_part, justify="right", no_wrap=True)
    if beside:
        table.add_column("" if is_tested else UNTESTED, ratio=1, overflow="fold", header_style="dim")
    reason_room = room - label_room if beside else room - 2
    by_size = sorted(range(len(labels)), key=lambda k: -abs(shown.lines[k].delta_us))[:detailed]
    names = labels if most is None else shortened_pairs(labels, label_room)
    for k, (line, label) in enumerate(zip(shown.lines, names, strict=True)):
        reason = printable(line.because)
        reason = reason if most is None else _fitting(reason, reason_room) if k in by_size else ""
        _add(table, line, Text(label), Text(reason, style="dim"), beside=beside)
    total = shown.total
    closing = [Text(total.because, style="dim")] if beside else []
    table.add_row(Text(total.label, style="bold"), total.times, total.step, *closing)
    return [table, Text()]


def _fitting(reason: str, room: int) -> str:
    """The first parts of ``reason`` that fit a line; the first one always, cut if it must be."""
    while len(reason) > room and "; " in reason:
        reason = reason.rpartition("; ")[0]
    return reason if len(reason) <= room else f"{reason[: room - 1]}…"


def _add(table: Table, line: ExplanationLine, label: Text, reason: Text, *, beside: bool) -> None:
    indented = Padding(label, (0, 0, 0, 2))
    if beside:
        table.add_row(indented, line.times, line.step, reason)
    elif reason:
        below = Padding(reason, (0, 0, 0, 2))
        table.add_row(Padding(Group(label, below), (0, 0, 0, 2)), line.times, line.step)
    else:
        table.add_row(indented, line.times, line.step)
