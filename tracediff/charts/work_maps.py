"""What the call tree and the tree map share: arguments of boxes, texts and titles."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tracediff.charts.boxes import Box, arrays
from tracediff.charts.theme import palette
from tracediff.formatting import count, time, time_unit

if TYPE_CHECKING:
    from tracediff.diff.comparison import Comparison

WHOLE = "all work"
HOW = "Size: the larger of the two sides. Colour: relative change. Click to zoom."


def box_arguments(
    comparison: Comparison, boxes: list[Box], theme: str, with_titles: bool, size: str = "work"
) -> dict[str, Any]:
    """The arguments of a plotly trace of ``boxes``, sized by the larger side and coloured by the change; with
    ``with_titles`` boxes leave room for their titles.
    """
    unit_us = 0.001 if size == "count" else time_unit([comparison.us(boxes[0].size)]).size
    return arrays(
        comparison,
        boxes,
        colours=palette(theme),
        unit_us=unit_us,
        with_titles=with_titles,
        amount_text=amount_text(comparison, size),
    )


def amount_text(comparison: Comparison, size: str) -> Callable[[int], str]:
    """The function from a numerator to its text: a count or a time."""
    if size == "count":
        return lambda numerator: count(comparison.number(numerator))
    return lambda numerator: time(comparison.us(numerator))


def work_title(comparison: Comparison) -> str:
    """The name of the quantity that the boxes measure."""
    return "GPU time" if comparison.control.has_gpu or comparison.test.has_gpu else "operator self time"


def map_title(comparison: Comparison, boxes: list[Box], what: str, size: str = "work") -> str:
    """``what``, and the uppermost box that changed most."""
    top = [box for box in boxes if box.parent == 0]
    largest = max(top, key=lambda b: abs(b.test - b.control))
    change = largest.test - largest.control
    if not change:
        return f"{what}: nothing changed"
    return f"{what}: {largest.name} changed most, {'+' if change > 0 else ''}{amount_text(comparison, size)(change)}"
