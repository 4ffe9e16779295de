"""Durations per operation on both sides, and their difference: one of the pair of figures that HTA's users know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracediff.charts.labels import choice
from tracediff.charts.op_bars import TOP, Bar, draw_op_bars, op_hover, ops_of, which_device
from tracediff.charts.theme import palette
from tracediff.formatting import time_unit

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from tracediff.diff.comparison import Comparison


def duration_diff(
    comparison: Comparison,
    top: int = TOP,
    sort: str = "change",
    device: str | None = None,
    time: str = "self",
    *,
    theme: str = "light",
) -> go.Figure:
    """Time of each operation per step on both sides, and the difference.

    Args:
        top: how many. sort: one of SORTS.
        device: gpu or cpu; by default gpu where there is any.
        time: ``self`` (without what it calls) or ``total``; on the GPU they are the same.
    """
    device = which_device(comparison, device)
    choice("time", time, ("self", "total"))
    us = comparison.us
    bars = [
        Bar(
            op,
            *((us(op.control_self), us(op.test_self)) if time == "self" else (us(op.control_total), us(op.test_total))),
            op_hover(comparison, op),
        )
        for op in ops_of(comparison, device)
    ]
    theme_colours = palette(theme)
    unit = time_unit(v for b in bars for v in (b.control, b.test))
    what = "GPU time" if device == "gpu" else f"{time} time on the host"
    return draw_op_bars(
        comparison,
        bars,
        order=(top, sort, theme),
        words=(what, "changed"),
        unit=unit,
        colours=[theme_colours.change(1), theme_colours.change(-1)],
    )
