"""The explanation in a terminal: facts, then a table of lines that add up to the step's change."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tracediff.errors import printable
from tracediff.explain.explanation import Cause, Explanation
from tracediff.explain.wording import exposure_label
from tracediff.formatting import Unit, time_unit

WHY, ITS_TIME, THE_STEP = "Why", "its time", "the step"
WIDE = 110
"""Columns from which what happened is beside the line."""
UNTESTED = "untested: fewer than 3 runs per side"
CLOSED = "0 ns unexplained"


def explanation(found: Explanation, width: int, *, is_tested: bool) -> list[RenderableType]:
    """Why the step changed; the column of its time is all time of a line, that of the step its part of the change.

    Args:
        width: columns; where they are few, what happened is below the line.
    """
    lines: list[RenderableType] = [Padding(Text(printable(sentence(f.text))), (0, 2)) for f in found.facts]
    control, test = (float(us) / 1000 for us in found.root.path)
    unit = unit_of(found)
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="bold", show_edge=False, expand=True)
    beside = width >= WIDE
    table.add_column(WHY, ratio=3, overflow="fold")
    table.add_column(f"{ITS_TIME} ({unit.name})", justify="right", no_wrap=True)
    table.add_column(THE_STEP, justify="right", no_wrap=True)
    if beside:
        table.add_column("" if is_tested else UNTESTED, ratio=4, overflow="fold", header_style="dim")
    for cause in found.causes:
        label, reason = Text(printable(cause.label)), Text(printable(because(cause)), style="dim")
        figures = _times(unit, cause.control_us, cause.test_us), unit.signed(cause.delta_us)
        if beside:
            table.add_row(Padding(label, (0, 0, 0, 2)), *figures, reason)
        else:
            table.add_row(
                Padding(Group(label, Padding(reason, (0, 0, 0, 2))) if reason else label, (0, 0, 0, 2)), *figures
            )
    exposure = sum(found.exposure_us.values())
    for text, us in ((exposure_label(found.exposure_us, found.scale_us), exposure), ("rest", found.rest_us)):
        if unit.signed(us).strip("+−0.,"):
            table.add_row(f"  {text}", "", unit.signed(us))
    closing = [Text(CLOSED, style="dim")] if beside else []
    table.add_row(Text("step", style="bold"), _times(unit, control, test), unit.signed(found.change_us), *closing)
    return [*lines, *([Text()] if lines else []), table, Text()]


def unit_of(found: Explanation) -> Unit:
    """The unit in which the smallest line still has digits."""
    largest = max(float(us) / 1000 for us in found.root.path)
    small = time_unit([largest / 20])
    return Unit(small.name, small.size, 1 if largest >= 100 * small.size else 2)


def because(cause: Cause) -> str:
    """What happened and why, in one line."""
    tested = "" if cause.significance.result in ("untested", "faster", "slower") else "not significant"
    return "; ".join(filter(None, (cause.what, *(reason.text for reason in cause.reasons), tested)))


def sentence(text: str) -> str:
    """``text`` with a capital letter."""
    return text[:1].upper() + text[1:]


def _times(unit: Unit, control: float, test: float) -> str:
    return f"{unit.plain(control)} → {unit.plain(test)}"
